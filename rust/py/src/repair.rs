//! `repair`.

use std::ffi::OsStr;
use std::path::Path;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use seglake::verbs::{self, RepairOptions};

use crate::destination::{BESIDE, Destination, SidecarPath};
use crate::error::raise_new;
use crate::json::{Reduced, hash_of, reduced, restored, written};
use crate::key::KeyArgument;
use crate::keywords::with_keywords;
use crate::options::Named;
use crate::parity;
use crate::protect::{nbytes, options_for};
use crate::report::Report;
use crate::verify::teller;

/// What `repair` found in a file and its sidecar, and what it changed.
///
/// >>> seglake.protect("orders.active").change
/// 'created'
/// >>> repaired = seglake.repair("orders.active")
/// >>> repaired.outcome, repaired.changed_bytes
/// ('sound', 0)
#[pyclass(frozen, module = "seglake.parity")]
pub(crate) struct Repaired(verbs::Repaired);

impl Repaired {
    fn restored(json: &str) -> PyResult<Self> {
        restored(json).map(Self)
    }

    fn to_json(&self) -> PyResult<String> {
        written(&self.0)
    }
}

#[pymethods]
impl Repaired {
    /// The repaired file.
    ///
    /// >>> seglake.protect("orders.active").change
    /// 'created'
    /// >>> seglake.repair("orders.active").path
    /// 'orders.active'
    #[getter]
    fn path(&self) -> &OsStr {
        self.0.path.as_os_str()
    }

    /// Its sidecar.
    ///
    /// >>> seglake.protect("orders.active").change
    /// 'created'
    /// >>> seglake.repair("orders.active").sidecar
    /// 'orders.active.par'
    #[getter]
    fn sidecar(&self) -> &OsStr {
        self.0.sidecar.as_os_str()
    }

    /// What was found: "sound", "repaired" (all damage was repaired) or "lost" (some could not be). If it is not "lost", `verify`
    /// finds the file sound.
    ///
    /// >>> seglake.protect("orders.active").change
    /// 'created'
    /// >>> seglake.repair("orders.active").outcome
    /// 'sound'
    #[getter]
    fn outcome(&self) -> &'static str {
        self.0.outcome().as_str()
    }

    /// Whether bytes could not be repaired, or can no longer be verified: those that `damage` calls "lost" and "unverified",
    /// and those that are damaged in `report`.
    ///
    /// >>> seglake.protect("orders.active").change
    /// 'created'
    /// >>> seglake.repair("orders.active").lost
    /// False
    #[getter]
    fn lost(&self) -> bool {
        self.0.is_lossy()
    }

    /// The ranges of the file that were damaged, with kind "repaired", "lost" or "unverified".
    ///
    /// >>> seglake.protect("orders.active").change
    /// 'created'
    /// >>> seglake.repair("orders.active").damage
    /// []
    #[getter]
    fn damage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, parity::file_damage(py, &self.0.report)?)
    }

    /// The same of the sidecar.
    ///
    /// >>> seglake.protect("orders.active").change
    /// 'created'
    /// >>> seglake.repair("orders.active").sidecar_damage
    /// []
    #[getter]
    fn sidecar_damage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, parity::sidecar_damage(py, &self.0.report)?)
    }

    /// The group of blocks with the most damage: its `band`, its number (`group`), how many parity blocks it `needs` and how many
    /// it has (`of`). None where nothing was damaged.
    ///
    /// >>> seglake.protect("orders.active").change
    /// 'created'
    /// >>> print(seglake.repair("orders.active").worst)
    /// None
    #[getter]
    fn worst<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        parity::worst(py, &self.0.report)
    }

    /// The ranges of the file that are "lost": a dict of `start`, `end` and, as above, the `worst` of the groups that its blocks are in.
    /// That is None where the sidecar has lost all blocks of it.
    ///
    /// >>> seglake.protect("orders.active").change
    /// 'created'
    /// >>> seglake.repair("orders.active").lost_ranges
    /// []
    #[getter]
    fn lost_ranges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, parity::lost_ranges(py, &self.0.report)?)
    }

    /// The report on the repaired file by its own format: bytes that were never covered, or were damaged when they were
    /// covered, may be damaged. None if the file has no format.
    ///
    /// >>> seglake.protect("orders.active").change
    /// 'created'
    /// >>> seglake.repair("orders.active").report.ok
    /// True
    #[getter]
    fn report(&self) -> Option<Report> {
        self.0.verified.clone().map(Report)
    }

    /// How many bytes of the file changed or were added.
    ///
    /// >>> seglake.protect("orders.active").change
    /// 'created'
    /// >>> seglake.repair("orders.active").changed_bytes
    /// 0
    #[getter]
    fn changed_bytes(&self) -> u64 {
        self.0.changed
    }

    /// Where the damaged file is now; None if it was not replaced.
    ///
    /// >>> seglake.protect("orders.active").change
    /// 'created'
    /// >>> print(seglake.repair("orders.active").damaged)
    /// None
    #[getter]
    fn damaged(&self) -> Option<&OsStr> {
        self.0.damaged.as_deref().map(Path::as_os_str)
    }

    /// Where the damaged sidecar is now; None if it was not replaced.
    ///
    /// >>> seglake.protect("orders.active").change
    /// 'created'
    /// >>> print(seglake.repair("orders.active").damaged_sidecar)
    /// None
    #[getter]
    fn damaged_sidecar(&self) -> Option<&OsStr> {
        self.0.damaged_sidecar.as_deref().map(Path::as_os_str)
    }

    /// All attributes as a dict of the same names, fit for JSON: each range is a dict of its fields, `report` is that of
    /// Report.to_dict.
    ///
    /// >>> seglake.protect("orders.active").change
    /// 'created'
    /// >>> seglake.repair("orders.active").to_dict()["outcome"]
    /// 'sound'
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("path", self.path())?;
        dict.set_item("sidecar", self.sidecar())?;
        dict.set_item("outcome", self.outcome())?;
        dict.set_item("lost", self.lost())?;
        let dicts = |spans: Bound<'py, PyList>| {
            let each = spans.iter().map(|span| span.call_method0("_asdict"));
            each.collect::<PyResult<Vec<_>>>()
        };
        dict.set_item("damage", dicts(self.damage(py)?)?)?;
        dict.set_item("sidecar_damage", dicts(self.sidecar_damage(py)?)?)?;
        dict.set_item("worst", self.worst(py)?)?;
        dict.set_item("lost_ranges", self.lost_ranges(py)?)?;
        let report = self.report().map(|report| report.to_dict(py));
        dict.set_item("report", report.transpose()?)?;
        dict.set_item("changed_bytes", self.changed_bytes())?;
        dict.set_item("damaged", self.damaged())?;
        dict.set_item("damaged_sidecar", self.damaged_sidecar())?;
        Ok(dict)
    }

    /// What `__reduce__` gave, as an object.
    #[staticmethod]
    #[pyo3(name = "_from_json")]
    fn from_json(json: &str) -> PyResult<Self> {
        Self::restored(json)
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
        format!(
            "Repaired({:?}, outcome={:?}, changed_bytes={})",
            self.path(),
            self.outcome(),
            self.changed_bytes()
        )
    }
}

with_keywords! {
/// Repairs a file and its parity sidecar, each from the other. New files take their places, or go to another path.
///
/// The repaired file is written to a new one and read back. Then the damaged file is renamed to `path` with `.damaged` appended, and
/// the new one gets its name, permissions and time of modification. So does the sidecar if it changes. To undo that, rename the
/// damaged file back. Nothing is written if nothing changes. For a link this is the file that it leads to. There has to be space for a
/// copy of the file. A repair that was interrupted is run again. What cannot be repaired stays as it is, and is in `damage`: `recover`
/// writes what is sound of such a file to a new one.
///
/// destination: where the repaired file goes, with its sidecar beside it; neither may be there. Then nothing else changes. None: new files take the places of the damaged ones.
/// force: repair also a file of which nothing is as it was protected, records that their own checksums prove, and a file without
///     checksums that was modified after it was protected.
/// sidecar, format: as in `protect`. progress: called as in `verify`. The other arguments are as there.
///
/// Raises ValueError where the sidecar is probably that of another file, or of an earlier state of it, and where there is a damaged file
/// of an earlier repair: move or remove it; FormatError where it is no sidecar; OSError, also where there is none, and where another
/// process writes one of the files.
///
/// >>> import shutil
/// >>> shutil.copy("orders.active", "new.active")
/// 'new.active'
/// >>> seglake.protect("new.active").change
/// 'created'
/// >>> with open("new.active", "r+b") as orders:
/// ...     orders.seek(60), orders.write(b"?")
/// (60, 1)
/// >>> seglake.repair("new.active").damaged, seglake.verify("new.active").ok
/// ('new.active.damaged', True)
#[pyo3(text_signature = "(path, *, destination=None, force=False, sidecar=\"auto\", format=None, key=None, options=None, progress=None)")]
fn repair(path: &Bound<'_, PyAny>; RepairArguments<'a> {
    destination: Option<Destination> = None,
    force: bool = false,
    sidecar: SidecarPath = BESIDE,
    format: Option<&'a str> = None,
    key: Option<KeyArgument> = None,
    options: Option<Named> = None,
    progress: Option<Py<PyAny>> = None,
}) -> Repaired;
}

impl RepairArguments<'_> {
    fn repair(self, path: &Bound<'_, PyAny>) -> PyResult<Repaired> {
        let py = path.py();
        let path: Destination = path.extract()?;
        let (options, is_raw) = options_for(py, self.format, self.key, self.options.as_ref())?;
        let repairing = RepairOptions::default()
            .destination(self.destination.map(|path| path.0))
            .force(self.force)
            .sidecar(self.sidecar.0)
            .raw(is_raw);
        let tell = teller(self.progress, nbytes(path.as_ref()));
        py.detach(|| verbs::repair(path.as_ref(), &options, &repairing, tell))
            .map(Repaired)
            .map_err(|error| raise_new(py, error, "name another one, or move it"))
    }
}
