//! Batches that Rust writes, for `benches/python/log.py`, which compares Python's with them.

use std::path::Path;
use std::time::Instant;

use seglake::store::{Durability, NewRecord};

use super::{ENDLESS, VALUE_BYTES, open};
use crate::messages::TYPE;

/// The argument that makes this program write batches to a new log, and print how many records it wrote a second.
pub(crate) const BATCHES: &str = "--log-batches";

/// Takes the log's folder, what its writes wait for, the number of batches, and that of records in each.
pub(crate) fn print_rate(arguments: &[String]) {
    let [path, durability, batches, records] = arguments else {
        panic!("{BATCHES} takes a folder, a durability and two numbers")
    };
    let log = open(
        Path::new(path),
        durability.parse::<Durability>().unwrap(),
        ENDLESS,
    );
    let (batches, records): (usize, usize) = (batches.parse().unwrap(), records.parse().unwrap());
    let value = [0x5a; VALUE_BYTES];
    let begun = Instant::now();
    for _ in 0..batches {
        let batch = (0..records).map(|_| NewRecord::new(TYPE, &value));
        assert_eq!(log.write_batch(batch).unwrap().len(), records);
    }
    println!(
        "{}",
        (batches * records) as f64 / begun.elapsed().as_secs_f64()
    );
    log.close().unwrap();
}
