#![no_main]

seglake_fuzz::target!("convert", tenant);
