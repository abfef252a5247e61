#![no_main]

seglake_fuzz::target!("write", sealed);
