#![no_main]

seglake_fuzz::target!("threads", tenant);
