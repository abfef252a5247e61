#![no_main]

seglake_fuzz::target!("windows", sealed);
