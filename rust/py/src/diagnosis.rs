//! What damage probably comes from, for Python.

use std::collections::BTreeSet;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use seglake::format::RecordId;
use seglake::ledger::{Cause, Kind};
use seglake::parity;
use seglake::verbs::{Diagnosis, Neighbour, Reason, Repair};

use crate::typed::{span, typed, typed_by_name};
use crate::value::scalar_to_python;

/// A `seglake.types.Diagnosis`.
pub(crate) fn object<'py>(py: Python<'py>, own: &Diagnosis) -> PyResult<Bound<'py, PyAny>> {
    let fields = PyDict::new(py);
    fields.set_item("start", own.span.start)?;
    fields.set_item("end", own.span.end)?;
    fields.set_item("kind", own.span.kind.as_str())?;
    fields.set_item("cause", own.span.cause.map(|cause| cause.as_str()))?;
    fields.set_item("reason", own.reason.as_str())?;
    let certainty = own.certainty.map(|certainty| certainty.as_str());
    fields.set_item("certainty", certainty)?;
    fields.set_item("evidence", &own.evidence)?;
    fields.set_item("against", &own.against)?;
    let around = |own: &Option<Neighbour>| own.as_ref().map(|own| neighbour(py, own)).transpose();
    fields.set_item("before", around(&own.before)?)?;
    fields.set_item("after", around(&own.after)?)?;
    let repairs = own.repairs.iter().map(|own| repair(py, own));
    fields.set_item("repairs", repairs.collect::<PyResult<Vec<_>>>()?)?;
    fields.set_item("regained", own.regained)?;
    fields.set_item("is_sound", own.is_sound)?;
    fields.set_item("missing_bytes", own.missing.map(|own| own.bytes))?;
    let records = own.missing.and_then(|own| own.records);
    fields.set_item("missing_records", records)?;
    let ranges = own.ranges.iter().map(|own| span(py, own));
    fields.set_item("ranges", ranges.collect::<PyResult<Vec<_>>>()?)?;
    let edits = own.edits.iter();
    let edits = edits.map(|own| typed(py, "Edit", (own.start, own.end, &own.bytes, &own.from)));
    fields.set_item("edits", edits.collect::<PyResult<Vec<_>>>()?)?;
    fields.set_item("place", (own.place.start, own.place.end))?;
    typed_by_name("Diagnosis", &fields)
}

fn neighbour<'py>(py: Python<'py>, own: &Neighbour) -> PyResult<Bound<'py, PyAny>> {
    let id = PyDict::new(py);
    let values = own.id.iter().flat_map(RecordId::values);
    for (name, value) in own.identifier.iter().zip(values) {
        id.set_item(name, scalar_to_python(py, value)?)?;
    }
    typed(py, "Neighbour", (own.position, own.timestamp, id))
}

fn repair<'py>(py: Python<'py>, own: &Repair) -> PyResult<Bound<'py, PyAny>> {
    let fields = (
        own.offset,
        own.bit,
        own.old,
        own.new,
        &*own.checks,
        own.start,
        own.end,
    );
    typed(py, "Repair", fields)
}

/// The words that reports use: the kinds of ranges, those of parity sidecars included, the causes of damage, and the reasons.
///
/// >>> from seglake._native import report_words
/// >>> kinds, causes, reasons = report_words()
/// >>> "torn_tail" in kinds, "bad_uuid" in causes, "consequence" in reasons
/// (True, True, True)
#[pyfunction]
pub(crate) fn report_words() -> (Words, Words, Words) {
    let kinds = Kind::ALL.iter().map(|kind| kind.as_str());
    let of_file = parity::FileKind::ALL.iter().map(|kind| kind.as_str());
    let of_sidecar = parity::SidecarKind::ALL.iter().map(|kind| kind.as_str());
    let causes = Cause::ALL.iter().map(|cause| cause.as_str());
    let by_sidecar = parity::Cause::ALL.iter().map(|cause| cause.as_str());
    let reasons = Reason::ALL.iter().map(|reason| reason.as_str());
    (
        kinds.chain(of_file).chain(of_sidecar).collect(),
        causes.chain(by_sidecar).collect(),
        reasons.collect(),
    )
}

type Words = BTreeSet<&'static str>;
