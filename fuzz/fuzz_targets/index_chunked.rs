#![no_main]

seglake_fuzz::target!("index", chunked);
