//! The integration tests of the crate, as modules of one binary, so that only one is linked. The name of a test begins with that of
//! its file: `cargo test --test integration oplog_writer::` runs those of `oplog_writer.rs`.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

// Code that several tests share.
mod common;
#[cfg(unix)]
mod crashes;
mod diagnoses;
#[cfg(unix)]
mod fault_samples;
mod messages;
mod recovery;
mod renumbering;
#[cfg(unix)]
mod simulated;
mod splitting;
mod tenant_segments;
mod vectors;

mod active;
mod active_numbers;
mod active_search;
mod checksum;
mod chunked;
mod chunked_lies;
mod chunked_lookup;
mod chunked_payload;
mod chunked_search;
mod chunked_writer;
mod columns;
mod columns_ahead;
mod corpus;
#[cfg(unix)]
mod crash_append;
#[cfg(unix)]
mod crash_calls;
#[cfg(unix)]
mod crash_log;
#[cfg(unix)]
mod crash_parity;
#[cfg(unix)]
mod crash_repair;
#[cfg(unix)]
mod crash_snapshot;
#[cfg(unix)]
mod crash_whole;
mod detection;
mod diagnose;
mod diagnose_flips;
mod diagnose_report;
mod endings;
#[cfg(unix)]
mod faults;
#[cfg(unix)]
mod faults_append;
mod filter;
mod golden;
mod growth;
mod growth_end;
#[cfg(unix)]
mod growth_parity;
mod growth_whole;
mod hostile;
mod misses;
mod oplog;
mod oplog_autobase;
mod oplog_keys;
mod oplog_limits;
mod oplog_messages;
mod oplog_reading;
mod oplog_writer;
#[cfg(unix)]
mod output;
mod parity;
mod parity_damage;
#[cfg(unix)]
mod parity_once;
mod parity_patterns;
mod parity_proofs;
#[cfg(unix)]
mod parity_reading;
mod parts;
mod parts_planning;
mod parts_threads;
#[cfg(unix)]
mod protect;
mod protect_again;
mod read_ahead;
mod reader;
mod recover;
mod recover_autobase;
mod recover_changing;
#[cfg(unix)]
mod recover_faults;
mod recover_oplog;
mod recover_refusals;
mod repair;
mod seal;
mod sealed;
mod sealed_limits;
mod sealed_lookup;
mod sealed_torn;
mod steps;
mod store;
mod store_bound;
mod store_clock;
mod store_end;
mod store_files;
mod store_follow;
mod store_mark;
mod store_protect;
mod store_snapshot;
mod store_source;
mod store_trouble;
mod store_write;
mod tenant;
mod tenant_ledger;
mod tenant_limits;
mod tenant_listed;
mod tenant_lookup;
mod tenant_names;
mod tenant_writer;
mod tfrecord;
mod uuid6;
mod verify_parallel;
mod wanted;
mod writer;
