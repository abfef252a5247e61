#![no_main]

seglake_fuzz::target!("recover", oplog);
