#![no_main]

seglake_fuzz::target!("parts", active);
