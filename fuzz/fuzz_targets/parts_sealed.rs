#![no_main]

seglake_fuzz::target!("parts", sealed);
