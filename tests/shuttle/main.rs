//! Tests of threads that wait for each other, and of losses of power while they do. A seed decides which thread goes on, so that each
//! run can be had again.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod schedule;
#[path = "../rust/simulated/mod.rs"]
mod simulated;

mod commits;
mod crash;
mod errors;
mod history;
mod model;
mod oracle;
mod waits;
mod workload;
