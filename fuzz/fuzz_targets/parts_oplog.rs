#![no_main]

seglake_fuzz::target!("parts", oplog);
