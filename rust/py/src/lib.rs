//! `seglake._native`: the Python extension module. One file a class or verb; each converts arguments, releases the GIL
//! around the work, and maps errors.

#![allow(
    clippy::doc_lazy_continuation,
    reason = "docstrings are Python's, whose examples are no quotes"
)]

mod arrow;
mod batches;
mod convert;
mod coverage;
mod destination;
mod detect;
mod diagnosis;
mod durable;
mod error;
mod exclusive;
mod field_in;
mod field_in_arrow;
mod fields;
mod filters;
mod formats;
mod growth;
mod ids;
mod index;
mod interrupt;
mod json;
mod key;
mod keywords;
mod ledger;
mod listed;
mod log;
mod log_batch;
mod log_facts;
mod log_options;
mod lookup;
mod message;
mod names;
mod numbers;
mod open;
mod options;
mod parity;
mod part;
mod passes;
mod position;
mod protect;
mod read_options;
mod reader;
mod reading;
#[allow(
    unsafe_op_in_unsafe_fn,
    reason = "what PyO3 makes of methods in a macro"
)]
mod record;
mod records;
mod recover;
mod remote;
mod reopening;
mod repair;
mod report;
mod row_hashes;
mod seal;
mod source;
mod tail;
mod texts;
mod typed;
mod unclosed;
mod uuids;
mod value;
mod verify;
mod write_options;
mod writer;

use pyo3::prelude::*;

/// Batches and windows come and go in sizes that the C library takes from the system each time, which then clears them page by
/// page. This one keeps what was given back for a second.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Called in a process that was just forked.
#[pyfunction]
fn forked() {
    exclusive::forked();
    remote::forked();
}

#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::{
        arrow::Schema,
        batches::{Batch, Batches, arrow_stream, collect},
        convert::convert,
        coverage::{coverage, verify_parity},
        detect::detect,
        diagnosis::report_words,
        durable::{rename, rename_new, sync_file, sync_folder},
        formats::formats,
        growth::{identity, resume},
        index::{Index, index},
        ledger::Ledger,
        listed::{ListedSegment, is_beside_segment, is_log_name, list_log},
        log::SegmentLog,
        message::{decode_message, decode_system, encode_message},
        open::open,
        part::Part,
        position::Position,
        protect::protect,
        reader::Reader,
        record::Record,
        records::Records,
        recover::{recover, undo_recover},
        repair::repair,
        report::Report,
        row_hashes::row_hashes,
        seal::seal,
        tail::Tail,
        unclosed::keep_unclosed,
        uuids::uuid_array,
        value::uuid6,
        verify::verify,
        writer::{Writer, create},
    };

    use pyo3::types::IntoPyDict;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let os = module.py().import("os")?;
        if let Ok(register) = os.getattr("register_at_fork") {
            let forked = wrap_pyfunction!(forked, module)?;
            register.call(
                (),
                Some(&[("after_in_child", forked)].into_py_dict(module.py())?),
            )?;
        }
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
