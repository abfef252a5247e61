#![no_main]

seglake_fuzz::target!("parts", tenant);
