#![no_main]

seglake_fuzz::target!("strict", active);
