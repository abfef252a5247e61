#![no_main]

seglake_fuzz::target!("seal", active);
