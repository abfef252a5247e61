//! What damage probably comes from, for Python.

use std::collections::BTreeSet;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use seglake::format::{RecordId, Scalar};
use seglake::ledger::{Cause, Kind};
use seglake::parity;
use seglake::verbs::{Diagnosis, Edit, Neighbour, Reason, Repair};

use crate::span::span;
use crate::value::scalar_to_python;

/// A `seglake.types.Diagnosis`.
pub(crate) fn object<'py>(py: Python<'py>, own: &Diagnosis) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static NEIGHBOUR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static REPAIR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static EDIT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let fields = flat(py, own)?;
    let neighbour = |own: &Option<Neighbour>| {
        let Some(own) = own else { return Ok(None) };
        let fields = of_neighbour(py, own, scalar_to_python)?;
        let class = NEIGHBOUR.import(py, "seglake._types", "Neighbour")?;
        class.call((), Some(&fields)).map(Some)
    };
    fields.set_item("before", neighbour(&own.before)?)?;
    fields.set_item("after", neighbour(&own.after)?)?;
    let class = REPAIR.import(py, "seglake._types", "Repair")?;
    let repair = |own| class.call((), Some(&of_repair(py, own)?));
    let repairs = own.repairs.iter().map(repair);
    fields.set_item("repairs", repairs.collect::<PyResult<Vec<_>>>()?)?;
    let ranges = own.ranges.iter().map(|own| span(py, own));
    fields.set_item("ranges", ranges.collect::<PyResult<Vec<_>>>()?)?;
    let class = EDIT.import(py, "seglake._types", "Edit")?;
    let edit = |own| class.call((), Some(&of_edit(py, own)?));
    let edits = own.edits.iter().map(edit);
    fields.set_item("edits", edits.collect::<PyResult<Vec<_>>>()?)?;
    fields.set_item("place", (own.place.start, own.place.end))?;
    let class = CLASS.import(py, "seglake._types", "Diagnosis")?;
    class.call((), Some(&fields))
}

/// The same as a dict, fit for JSON.
pub(crate) fn dict<'py>(py: Python<'py>, own: &Diagnosis) -> PyResult<Bound<'py, PyDict>> {
    let fields = flat(py, own)?;
    let neighbour = |own: &Option<Neighbour>| {
        let own = own.as_ref();
        own.map(|own| of_neighbour(py, own, plain)).transpose()
    };
    fields.set_item("before", neighbour(&own.before)?)?;
    fields.set_item("after", neighbour(&own.after)?)?;
    let repairs = own.repairs.iter().map(|own| of_repair(py, own));
    fields.set_item("repairs", repairs.collect::<PyResult<Vec<_>>>()?)?;
    let ranges = own.ranges.iter();
    let ranges = ranges.map(|own| span(py, own)?.call_method0("_asdict"));
    fields.set_item("ranges", ranges.collect::<PyResult<Vec<_>>>()?)?;
    let edits = own.edits.iter().map(|own| of_edit(py, own));
    fields.set_item("edits", edits.collect::<PyResult<Vec<_>>>()?)?;
    fields.set_item("place", [own.place.start, own.place.end])?;
    Ok(fields)
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

fn flat<'py>(py: Python<'py>, own: &Diagnosis) -> PyResult<Bound<'py, PyDict>> {
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
    fields.set_item("regained", own.regained)?;
    fields.set_item("is_sound", own.is_sound)?;
    fields.set_item("missing_bytes", own.missing.map(|own| own.bytes))?;
    let records = own.missing.and_then(|own| own.records);
    fields.set_item("missing_records", records)?;
    Ok(fields)
}

fn of_neighbour<'py>(
    py: Python<'py>,
    own: &Neighbour,
    to_python: ToPython,
) -> PyResult<Bound<'py, PyDict>> {
    let id = PyDict::new(py);
    let values = own.id.as_ref().map_or(&[][..], RecordId::values);
    for (name, value) in own.identifier.iter().zip(values) {
        id.set_item(name, to_python(py, value)?)?;
    }
    let fields = PyDict::new(py);
    fields.set_item("position", own.position)?;
    fields.set_item("timestamp_us", own.timestamp)?;
    fields.set_item("id", id)?;
    Ok(fields)
}

/// How a value that a record is found by becomes one of Python.
type ToPython = for<'py> fn(Python<'py>, &Scalar) -> PyResult<Bound<'py, PyAny>>;

/// A value as JSON has it, where a UUID is text.
fn plain<'py>(py: Python<'py>, value: &Scalar) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Scalar::Uuid(_) => Ok(value.to_string().into_pyobject(py)?.into_any()),
        value => scalar_to_python(py, value),
    }
}

fn of_repair<'py>(py: Python<'py>, own: &Repair) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("byte_offset", own.offset)?;
    fields.set_item("bit", own.bit)?;
    fields.set_item("old", own.old)?;
    fields.set_item("new", own.new)?;
    fields.set_item("checks", &*own.checks)?;
    fields.set_item("start", own.start)?;
    fields.set_item("end", own.end)?;
    Ok(fields)
}

fn of_edit<'py>(py: Python<'py>, own: &Edit) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("start", own.start)?;
    fields.set_item("end", own.end)?;
    fields.set_item("nbytes", own.bytes)?;
    fields.set_item("source", own.from)?;
    Ok(fields)
}
