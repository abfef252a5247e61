//! Locks, threads and clocks for code whose threads wait for each other. No other module of that code names those of the standard
//! library, so that tests can put others in their place.

mod system;

pub(crate) use system::*;
