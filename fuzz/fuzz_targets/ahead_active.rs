#![no_main]

seglake_fuzz::target!("ahead", active);
