//! What damage probably comes from, for Python.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use seglake::format::RecordId;
use seglake::text::escape;
use seglake::verbs::{Diagnosis, Neighbour, Repair};
use uuid::Uuid;

use crate::error::unknown_id;
use crate::value::uuid_to_python;

/// A `seglake.Diagnosis`.
pub(crate) fn object<'py>(py: Python<'py>, own: &Diagnosis) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static NEIGHBOUR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static REPAIR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let fields = flat(py, own)?;
    let neighbour = |own: &Option<Neighbour>| {
        let Some(own) = own else { return Ok(None) };
        let fields = of_neighbour(py, own)?;
        if let Some(RecordId::Uuid(uuid)) = own.id {
            fields.set_item("uuid", uuid_to_python(py, &uuid)?)?;
        }
        let class = NEIGHBOUR.import(py, "seglake._types", "Neighbour")?;
        class.call((), Some(&fields)).map(Some)
    };
    fields.set_item("before", neighbour(&own.before)?)?;
    fields.set_item("after", neighbour(&own.after)?)?;
    let class = REPAIR.import(py, "seglake._types", "Repair")?;
    let repair = |own| class.call((), Some(&of_repair(py, own)?));
    let repairs = own.repairs.iter().map(repair);
    fields.set_item("repairs", repairs.collect::<PyResult<Vec<_>>>()?)?;
    let class = CLASS.import(py, "seglake._types", "Diagnosis")?;
    class.call((), Some(&fields))
}

/// The same as a dict, fit for JSON.
pub(crate) fn dict<'py>(py: Python<'py>, own: &Diagnosis) -> PyResult<Bound<'py, PyDict>> {
    let fields = flat(py, own)?;
    let neighbour = |own: &Option<Neighbour>| {
        let own = own.as_ref();
        own.map(|own| of_neighbour(py, own)).transpose()
    };
    fields.set_item("before", neighbour(&own.before)?)?;
    fields.set_item("after", neighbour(&own.after)?)?;
    let repairs = own.repairs.iter().map(|own| of_repair(py, own));
    fields.set_item("repairs", repairs.collect::<PyResult<Vec<_>>>()?)?;
    Ok(fields)
}

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
    fields.set_item("next", own.next())?;
    Ok(fields)
}

/// What a format does not have is None. The UUID is text.
fn of_neighbour<'py>(py: Python<'py>, own: &Neighbour) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("position", own.position)?;
    fields.set_item("timestamp_us", own.timestamp)?;
    for name in ["uuid", "offset", "seq", "partition", "tenant", "index"] {
        fields.set_item(name, py.None())?;
    }
    match &own.id {
        Some(RecordId::Uuid(uuid)) => {
            fields.set_item("uuid", Uuid::from_bytes(*uuid).to_string())?;
        }
        Some(RecordId::Offset(offset)) => fields.set_item("offset", offset)?,
        Some(RecordId::Seq(seq)) => fields.set_item("seq", seq)?,
        Some(RecordId::Message {
            partition,
            tenant,
            index,
        }) => {
            fields.set_item("partition", partition)?;
            fields.set_item("tenant", escape(tenant))?;
            fields.set_item("index", index)?;
        }
        Some(other) => return Err(unknown_id(other)),
        None => {}
    }
    Ok(fields)
}

fn of_repair<'py>(py: Python<'py>, own: &Repair) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("offset", own.offset)?;
    fields.set_item("bit", own.bit)?;
    fields.set_item("old", own.old)?;
    fields.set_item("new", own.new)?;
    fields.set_item("checks", own.checks)?;
    fields.set_item("start", own.start)?;
    fields.set_item("end", own.end)?;
    Ok(fields)
}
