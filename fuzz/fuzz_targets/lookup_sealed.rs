#![no_main]

seglake_fuzz::target!("lookup", sealed);
