#![no_main]

seglake_fuzz::target!("write", active);
