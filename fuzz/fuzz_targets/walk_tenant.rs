#![no_main]

seglake_fuzz::target!("walk", tenant);
