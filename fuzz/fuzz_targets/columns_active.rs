#![no_main]

seglake_fuzz::target!("columns", active);
