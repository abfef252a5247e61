#![no_main]

seglake_fuzz::targets!();
