//! TFRecord, the files of TensorFlow's datasets and TensorBoard's events: records of any bytes, one after the other.
//!
//! ```text
//! file:    record*
//! record:  length u64 ‖ masked crc of length u32 ‖ data ‖ masked crc of data u32
//! ```
//! Integers are little-endian. A masked crc is the CRC-32C of the bytes, rotated right by 15 bits, plus 0xa282ead8. Nothing names,
//! numbers or orders a record: it is identified by where it begins. docs/formats/tfrecord.md has the rules.
//!
//! `layout` has the fields and the checks in their order, `walk` the scan, with the search for the end of damage and the records as
//! rows, and `candidates` explains damage to `verify`.

mod candidates;
mod layout;
mod walk;

use std::path::Path;

use layout::{HEADER_BYTES, encode, header};
use walk::TfRecordWalk;

use crate::engine::append::AppendedFile;
use crate::engine::{Format, Likelihood, WalkingLookup, append};
use crate::error::{Finding, Result};
use crate::ledger::{Kind, Span};
use crate::record::{Checked, Column, ColumnKind};
use crate::saturating::saturating_usize;
use crate::source::{Source, Window, data_end_after};
use crate::spec::settings::{APPENDS, ZERO_TORN_TAIL};
use crate::spec::{FirstUnit, Spec, Tail};
use crate::walk::{Begin, Options};

/// The format's entry in the table.
pub(crate) static FORMAT: Format = Format {
    spec: Spec {
        name: "tfrecord",
        extension: "tfrecord",
        identifier: &["position"],
        checked: Checked::Checksum,
        has_plain_values: true,
        marks_damage: false,
        open_options: &[],
        create_options: &[APPENDS, ZERO_TORN_TAIL],
        applies: &[],
        family: "tfrecord",
        first_unit: FirstUnit::Bytes,
        tail: Tail::Bytes,
        columns: |_| COLUMNS,
    },
    numbered: None,
    detect,
    walk: |source, options, opening| {
        Ok(Box::new(TfRecordWalk::open(
            source,
            options,
            opening.begin,
        )?))
    },
    split: None,
    index: None,
    lookup: |source, options| Ok(Box::new(WalkingLookup::new(&FORMAT, source, options))),
    create: |path, options| {
        let writer = AppendedFile::open(&FORMAT, path, options, TfRecordWalk::open, encode)?;
        Ok(Box::new(writer))
    },
    unfinished: Some(is_unfinished),
    // Zeros at the end are left out too: TensorFlow takes them for damage.
    salvage: |salvage| {
        let (source, options) = (salvage.source(), salvage.options());
        let mut walk = TfRecordWalk::open(source, options, Begin::Beginning)?;
        salvage.carry_those(&mut walk, |span| span.kind == Kind::Record)
    },
    candidates: |source, _| Ok(Some(Box::new(candidates::TfRecords(source.clone())))),
    stated: None,
};

/// The columns of a record.
const COLUMNS: &[Column] = &[Column::new("value", ColumnKind::Binary)];

/// Certain if the length of the first record is proven and fits; otherwise likely if the name is one that TensorFlow or TensorBoard
/// gives ("Detecting").
fn detect(source: &dyn Source, _: &Options) -> Result<Likelihood> {
    let mut window = Window::default();
    let head = saturating_usize(source.len()).min(HEADER_BYTES);
    let bytes = window.exact(source, 0, head, head)?;
    Ok(match header(bytes, source.len()) {
        Ok(Some(_)) => Likelihood::Certain("the first record's length is proven".to_owned()),
        _ if source.path().is_some_and(is_named) => {
            Likelihood::Likely("the name is that of a TFRecord file".to_owned())
        }
        _ => Likelihood::No,
    })
}

/// Whether a name is `*.tfrecords`, `*.tfrecord-00000-of-00010` or `events.out.tfevents.*`, and not that of a parity sidecar. The
/// extension `tfrecord` counts as those of other formats do.
fn is_named(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return false;
    };
    let is_of_shard = |byte: u8| b"s-of0123456789".contains(&byte);
    match name.rsplit_once(".tfrecord") {
        Some((_, rest)) => !rest.is_empty() && rest.bytes().all(is_of_shard),
        None => name.starts_with("events.out.tfevents.") && !name.ends_with(".par"),
    }
}

/// Whether a torn tail is one record that was not written to its end, or zeros.
fn is_unfinished(source: &dyn Source, options: &Options, tail: &Span) -> Result<bool> {
    let beginning = append::beginning(source, &(tail.start..source.len()), HEADER_BYTES)?;
    Ok(match header(&beginning, source.len() - tail.start) {
        Err(Finding::TooLong { .. }) => true,
        // Nothing tells what a few bytes at the beginning of a file are.
        Err(Finding::Truncated { .. }) if tail.start > 0 => true,
        _ => data_end_after(source, tail.start, || options.poll())? == tail.start,
    })
}
