#![no_main]

seglake_fuzz::target!("diagnose", oplog);
