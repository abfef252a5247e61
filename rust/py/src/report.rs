//! What was found in a file, for Python.

use std::ffi::OsStr;
use std::path::Path;

use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use seglake::columns::{damage, damage_schema};

use crate::arrow::{schema_capsule, stream_capsule};
use crate::diagnosis;
use crate::error::raise;
use crate::json::{Reduced, hash_of, reduced, restored, written};
use crate::parity;
use crate::passes::about;
use crate::typed::{as_plain, span, typed};

/// What `Report.to_dict` gives.
const ATTRIBUTES: [&str; 15] = [
    "path",
    "format",
    "ok",
    "checked",
    "nbytes",
    "records",
    "repaired_records",
    "first_timestamp_us",
    "last_timestamp_us",
    "totals",
    "damage",
    "damage_truncated",
    "wrong_key",
    "parity",
    "diagnoses",
];

/// What was found in a file, or in the part of it that has been read.
///
/// >>> report = seglake.verify("damaged.active")
/// >>> report.ok, report.records
/// (False, 2)
#[pyclass(frozen, module = "seglake")]
pub(crate) struct Report(pub(crate) seglake::verbs::Report);

impl Report {
    fn to_json(&self) -> PyResult<String> {
        written(&self.0)
    }
}

#[pymethods]
impl Report {
    /// Whether nothing is damaged.
    ///
    /// >>> report = seglake.verify("damaged.active")
    /// >>> report.ok
    /// False
    #[getter]
    fn ok(&self) -> bool {
        self.0.is_sound()
    }

    /// Whether nothing is damaged, as `ok`.
    fn __bool__(&self) -> bool {
        self.ok()
    }

    /// The file, or None for a buffer.
    ///
    /// >>> report = seglake.verify("damaged.active")
    /// >>> report.path
    /// 'damaged.active'
    #[getter]
    fn path(&self) -> Option<&OsStr> {
        self.0.summary.path.as_deref().map(Path::as_os_str)
    }

    /// The format's name.
    ///
    /// >>> report = seglake.verify("damaged.active")
    /// >>> report.format
    /// 'active'
    #[getter]
    fn format(&self) -> &'static str {
        self.0.format.name
    }

    /// How records were checked: "checksum", or where the file has no checksums "parity" (by its sidecar) or "structure".
    ///
    /// >>> report = seglake.verify("damaged.active")
    /// >>> report.checked
    /// 'checksum'
    #[getter]
    fn checked(&self) -> &'static str {
        self.0.summary.checked.as_str()
    }

    /// How many bytes of the file are accounted for: all of them once it has been read to its end.
    ///
    /// >>> report = seglake.verify("damaged.active")
    /// >>> report.nbytes == sum(total.nbytes for total in report.totals)
    /// True
    #[getter]
    fn nbytes(&self) -> u64 {
        self.0.summary.bytes
    }

    /// How many records are sound.
    ///
    /// >>> report = seglake.verify("damaged.active")
    /// >>> report.records
    /// 2
    #[getter]
    fn records(&self) -> u64 {
        self.0.summary.records
    }

    /// How many records have damaged bytes that the file's parity sidecar restores. They are not among the sound ones.
    ///
    /// >>> seglake.verify("damaged.active").repaired_records
    /// 0
    #[getter]
    fn repaired_records(&self) -> u64 {
        self.0.summary.repaired
    }

    /// The least time of a record, in microseconds since 1970-01-01 UTC.
    ///
    /// >>> report = seglake.verify("damaged.active")
    /// >>> report.first_timestamp_us
    /// 1718427600000000
    #[getter]
    fn first_timestamp_us(&self) -> Option<i64> {
        self.0.summary.first_timestamp
    }

    /// The greatest time of a record, in microseconds since 1970-01-01 UTC.
    ///
    /// >>> report = seglake.verify("damaged.active")
    /// >>> report.last_timestamp_us
    /// 1718434800000000
    #[getter]
    fn last_timestamp_us(&self) -> Option<i64> {
        self.0.summary.last_timestamp
    }

    /// Bytes and ranges by kind and cause, as Totals.
    ///
    /// >>> report = seglake.verify("damaged.active")
    /// >>> [(total.kind, total.ranges) for total in report.totals]
    /// [('record', 2), ('corrupt', 1)]
    #[getter]
    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let row = |total: &seglake::ledger::Total| {
            let cause = total.cause.map(|cause| cause.as_str());
            let fields = (total.kind.as_str(), cause, total.bytes, total.ranges);
            typed(py, "Total", fields)
        };
        self.0.summary.totals.rows().iter().map(row).collect()
    }

    /// The first 10,000 damaged ranges, in file order, as Spans.
    ///
    /// >>> report = seglake.verify("damaged.active")
    /// >>> [(span.start, span.end) for span in report.damage]
    /// [(54, 105)]
    #[getter]
    pub(crate) fn damage<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let damage = self.0.summary.damage.iter();
        damage.map(|damaged| span(py, damaged)).collect()
    }

    /// Whether there are more damaged ranges than `damage` names; `totals` counts them all.
    ///
    /// >>> report = seglake.verify("damaged.active")
    /// >>> report.damage_truncated
    /// False
    #[getter]
    fn damage_truncated(&self) -> bool {
        self.0.summary.truncated
    }

    /// Whether nothing checked though the structure is sound to the end: the key is probably not the file's.
    ///
    /// >>> seglake.verify("orders.active", key=bytes([7] * 32)).wrong_key
    /// True
    #[getter]
    fn wrong_key(&self) -> bool {
        self.0.summary.wrong_key()
    }

    /// What the file's parity sidecar says of both, as ParityReport. None where the file was verified without one.
    ///
    /// >>> seglake.protect("orders.active").change
    /// 'created'
    /// >>> seglake.verify("orders.active").parity.outcome
    /// 'sound'
    #[getter]
    fn parity<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let own = self.0.parity.as_ref();
        own.map(|own| parity::report(py, own)).transpose()
    }

    /// What the first damaged ranges probably come from, as Diagnosis, in the order of `damage`: empty unless `verify` was asked
    /// to explain.
    ///
    /// >>> [diagnosis] = seglake.verify("damaged.active").diagnoses
    /// >>> diagnosis.start, diagnosis.cause
    /// (54, 'checksum_mismatch')
    #[getter]
    fn diagnoses<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let diagnoses = self.0.diagnoses.iter();
        diagnoses.map(|own| diagnosis::object(py, own)).collect()
    }

    /// The schema of the damaged ranges, for Arrow's PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &damage_schema())
    }

    /// The damaged ranges that `damage` names as Arrow, one row each, with what they probably come from: for Arrow's PyCapsule
    /// interface, as in `pyarrow.table(report)`.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema; // a wish that may be left unfulfilled
        let batch = damage(&self.0).map_err(|error| raise(py, error))?;
        stream_capsule(py, damage_schema(), std::iter::once(Ok(batch)))
    }

    /// All attributes as a dict of the same names, fit for JSON: each total, damaged range and diagnosis is a dict of its
    /// fields.
    ///
    /// >>> report = seglake.verify("damaged.active")
    /// >>> report.to_dict()["records"]
    /// 2
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        as_plain(slf, &ATTRIBUTES)
    }

    /// What `__reduce__` gave, as an object.
    #[staticmethod]
    #[pyo3(name = "_from_json")]
    fn from_json(json: &str) -> PyResult<Self> {
        restored(json).map(Self)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced(slf, "_from_json", slf.get().to_json()?)
    }

    fn __eq__(&self, other: &Self) -> PyResult<bool> {
        Ok(self.to_json()? == other.to_json()?)
    }

    fn __hash__(&self) -> PyResult<u64> {
        Ok(hash_of(&self.to_json()?))
    }

    fn __repr__(&self) -> String {
        let Self(report) = self;
        let state = match (report.is_sound(), report.summary.wrong_key()) {
            (true, _) => "ok",
            (false, true) => "probably the wrong key",
            (false, false) => "damaged",
        };
        // All of them: `damage` holds only the first.
        let damaged = report
            .summary
            .totals
            .rows()
            .iter()
            .filter(|total| total.cause.is_some());
        let ranges: u64 = damaged.map(|total| total.ranges).sum();
        format!(
            "Report({}, nbytes={}, records={}, damaged ranges={ranges}, {state})",
            about(report.summary.path.as_deref(), report.format.name),
            report.summary.bytes,
            report.summary.records,
        )
    }
}
