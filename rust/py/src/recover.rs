//! `recover` and `undo_recover`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use seglake::format::Options;
use seglake::verbs::{self, RecoverOptions};

use crate::destination::{Destination, ERROR, Existing};
use crate::error::{OVERWRITE, raise, raise_new};
use crate::interrupt::signals;
use crate::json::{Reduced, hash_of, reduced, restored, written};
use crate::key::KeyArgument;
use crate::keywords::with_keywords;
use crate::options::Named;
use crate::passes::about;
use crate::read_options::ReadArguments;
use crate::remote::within;
use crate::report::Report;
use crate::source::given_in;
use crate::verify::{teller, telling};

/// What was recovered of a file, and where the rest of it is.
///
/// >>> recovered = seglake.recover("damaged.active", "sound.active")
/// >>> recovered.lost, recovered.records
/// (True, 2)
#[pyclass(frozen, module = "seglake.types")]
pub(crate) struct Recovered {
    report: Py<Report>,
    path: PathBuf,
    recovered: verbs::Recovered,
}

impl Recovered {
    fn new(py: Python<'_>, path: PathBuf, recovered: verbs::Recovered) -> PyResult<Self> {
        Ok(Self {
            report: Py::new(py, Report(recovered.source.clone()))?,
            path,
            recovered,
        })
    }

    fn restored(py: Python<'_>, json: &str) -> PyResult<Self> {
        let (path, recovered): (OsString, _) = restored(json)?;
        Self::new(py, path.into(), recovered)
    }

    fn to_json(&self) -> PyResult<String> {
        written(&(self.path.as_os_str(), &self.recovered))
    }
}

#[pymethods]
impl Recovered {
    /// What was found in the damaged file.
    ///
    /// >>> recovered = seglake.recover("damaged.active", "sound.active")
    /// >>> recovered.report.ok
    /// False
    #[getter]
    fn report(&self, py: Python<'_>) -> Py<Report> {
        self.report.clone_ref(py)
    }

    /// Whether anything was damaged: what that was is not in the new file, or, where it was an index, is made anew.
    ///
    /// >>> recovered = seglake.recover("damaged.active", "sound.active")
    /// >>> recovered.lost
    /// True
    #[getter]
    fn lost(&self) -> bool {
        self.recovered.is_lossy()
    }

    /// The new file.
    ///
    /// >>> recovered = seglake.recover("damaged.active", "sound.active")
    /// >>> recovered.path
    /// 'sound.active'
    #[getter]
    fn path(&self) -> &OsStr {
        self.path.as_os_str()
    }

    /// Its length in bytes.
    ///
    /// >>> recovered = seglake.recover("damaged.active", "sound.active")
    /// >>> recovered.nbytes == seglake.verify("sound.active").nbytes
    /// True
    #[getter]
    fn nbytes(&self) -> u64 {
        self.recovered.output.summary.bytes
    }

    /// How many records it has: all that were sound.
    ///
    /// >>> recovered = seglake.recover("damaged.active", "sound.active")
    /// >>> recovered.records
    /// 2
    #[getter]
    fn records(&self) -> u64 {
        self.recovered.output.summary.records
    }

    /// How many bytes of the damaged file are in the new one.
    ///
    /// >>> recovered = seglake.recover("damaged.active", "sound.active")
    /// >>> recovered.carried_bytes + recovered.quarantined_bytes == recovered.report.nbytes
    /// True
    #[getter]
    fn carried_bytes(&self) -> u64 {
        self.recovered.carried
    }

    /// How many bytes of the damaged file are in the quarantine.
    ///
    /// >>> recovered = seglake.recover("damaged.active", "sound.active")
    /// >>> recovered.quarantined_bytes
    /// 51
    #[getter]
    fn quarantined_bytes(&self) -> u64 {
        self.recovered.quarantined
    }

    /// The file that those are in; None where there are none and no file was named.
    ///
    /// >>> recovered = seglake.recover("damaged.active", "sound.active")
    /// >>> recovered.quarantine
    /// 'sound.active.quarantine'
    #[getter]
    fn quarantine(&self) -> Option<&OsStr> {
        self.recovered.quarantine.as_deref().map(Path::as_os_str)
    }

    /// The file that says where each byte of the damaged file is now; None where there is no quarantine.
    ///
    /// >>> recovered = seglake.recover("damaged.active", "sound.active")
    /// >>> recovered.manifest
    /// 'sound.active.quarantine.manifest.jsonl'
    #[getter]
    fn manifest(&self) -> Option<&OsStr> {
        self.recovered.manifest.as_deref().map(Path::as_os_str)
    }

    /// The index of the new file (chunked, where the damaged file had one), or None.
    ///
    /// >>> recovered = seglake.recover("damaged.active", "sound.active")
    /// >>> print(recovered.index)
    /// None
    #[getter]
    fn index(&self) -> Option<&OsStr> {
        self.recovered.index.as_deref().map(Path::as_os_str)
    }

    /// All attributes as a dict of the same names, fit for JSON: `report` is that of Report.to_dict.
    ///
    /// >>> recovered = seglake.recover("damaged.active", "sound.active")
    /// >>> recovered.to_dict()["quarantined_bytes"]
    /// 51
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("path", self.path())?;
        dict.set_item("lost", self.lost())?;
        dict.set_item("nbytes", self.nbytes())?;
        dict.set_item("records", self.records())?;
        dict.set_item("carried_bytes", self.carried_bytes())?;
        dict.set_item("quarantined_bytes", self.quarantined_bytes())?;
        dict.set_item("quarantine", self.quarantine())?;
        dict.set_item("manifest", self.manifest())?;
        dict.set_item("index", self.index())?;
        dict.set_item("report", self.report.bind(py).call_method0("to_dict")?)?;
        Ok(dict)
    }

    /// What `__reduce__` gave, as an object.
    #[staticmethod]
    #[pyo3(name = "_from_json")]
    fn from_json(py: Python<'_>, json: &str) -> PyResult<Self> {
        Self::restored(py, json)
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
        let state = if self.lost() {
            "something was damaged"
        } else {
            "nothing was damaged"
        };
        format!(
            "Recovered({}, nbytes={}, records={}, carried_bytes={}, quarantined_bytes={}, {state})",
            about(Some(&self.path), self.recovered.source.format.name),
            self.nbytes(),
            self.records(),
            self.carried_bytes(),
            self.quarantined_bytes()
        )
    }
}

with_keywords! {
/// Writes the sound records of a damaged file to a new one of the same format, with the checksums that they had, and every other
/// byte to a quarantine, with a manifest from which `undo_recover` makes the file again. The source is never touched.
///
/// The new file is read back, and the damaged one put together again from it and the quarantine, before any of them appears:
/// then all do, synced, or none does. A sound file is copied as it is.
///
/// quarantine: where the bytes go that are not in the new file; the manifest gets `.manifest.jsonl` appended to its name. None: `destination`
///     with `.quarantine` appended, and only if there are any.
/// if_exists: "error" raises FileExistsError where there is a file; "overwrite" replaces it once the new one is complete.
/// force: recover also a file in which nothing checks, which is probably read with a wrong key: all of it is put aside.
/// renumber: where a message is lost that others follow, give those other numbers, and rewrite what refers to them (oplog).
/// progress: called as in `verify`. The other arguments are as there.
///
/// Raises ValueError where nothing checks, where messages would have to be renumbered or cannot be, and where two of the files
/// are the same; what `verify` raises; OSError where a file cannot be written.
///
/// >>> recovered = seglake.recover("damaged.active", "sound.active")
/// >>> recovered.records, recovered.quarantined_bytes
/// (2, 51)
/// >>> seglake.verify("sound.active").ok
/// True
#[pyo3(text_signature = "(source, destination, *, quarantine=None, renumber=False, force=False, format=None, key=None, if_exists=\"error\", options=None, progress=None, filesystem=None, storage_options=None)")]
fn recover(source: &Bound<'_, PyAny>, destination: Destination; RecoverArguments<'a> {
    quarantine: Option<Destination> = None,
    renumber: bool = false,
    force: bool = false,
    format: Option<&'a str> = None,
    key: Option<KeyArgument> = None,
    if_exists: Existing = ERROR,
    options: Option<Named> = None,
    progress: Option<Py<PyAny>> = None,
    filesystem: Option<Py<PyAny>> = None,
    storage_options: Option<Py<PyAny>> = None,
}) -> Recovered;
}

impl RecoverArguments<'_> {
    fn recover(self, source: &Bound<'_, PyAny>, destination: Destination) -> PyResult<Recovered> {
        let py = source.py();
        let within = within(source, &self.filesystem, &self.storage_options)?;
        let arguments = ReadArguments {
            format: self.format,
            key: self.key,
            options: self.options.as_ref(),
            // Where the disk is failing a map would end the process.
            mmap: false,
            filesystem: within.as_ref(),
            ..ReadArguments::default()
        };
        let (given, _) = arguments.open(source)?;
        let (source, options) = (given.source, given.options);
        let recovery = RecoverOptions::default()
            .quarantine(self.quarantine.map(|quarantine| quarantine.0))
            .if_exists(self.if_exists.0)
            .force(self.force)
            .renumber(self.renumber);
        let tell = teller(self.progress, source.len());
        let recovered = py
            .detach(|| verbs::recover(source, &options, destination.as_ref(), &recovery, tell))
            .map_err(|error| raise_new(py, error, OVERWRITE))?;
        Recovered::new(py, destination.0, recovered)
    }
}

/// Writes the file again that `recover` made `recovered` of, bit for bit, and returns its length in bytes.
///
/// Both files are held against the manifest before anything is written, and the result before it gets its name.
///
/// quarantine: the file in which the other bytes are. None: `recovered` with `.quarantine` appended to its name; a recovered file
///     that is elsewhere needs it.
/// if_exists: "error" raises FileExistsError where there is a file; "overwrite" replaces it once the new one is complete.
/// progress: called as in `verify`, with the bytes that are read, twice.
/// filesystem, storage_options: as in `open`; `recovered` is then within it.
///
/// Raises FormatError where the manifest is none, or the files are not those that it is about; ValueError; OSError.
///
/// >>> recovered = seglake.recover("damaged.active", "sound.active")
/// >>> seglake.undo_recover("sound.active", "as-it-was.active") == seglake.verify("damaged.active").nbytes
/// True
#[pyfunction]
#[pyo3(signature = (recovered, destination, *, quarantine=None, if_exists=ERROR, progress=None, filesystem=None, storage_options=None))]
#[pyo3(
    text_signature = "(recovered, destination, *, quarantine=None, if_exists=\"error\", progress=None, filesystem=None, storage_options=None)"
)]
pub(crate) fn undo_recover(
    recovered: &Bound<'_, PyAny>,
    destination: Destination,
    quarantine: Option<PathBuf>,
    if_exists: Existing,
    progress: Option<Py<PyAny>>,
    filesystem: Option<Py<PyAny>>,
    storage_options: Option<Py<PyAny>>,
) -> PyResult<u64> {
    let py = recovered.py();
    let within = within(recovered, &filesystem, &storage_options)?;
    let given = given_in(recovered, within.as_ref())?;
    if given.is_elsewhere() && quarantine.is_none() {
        return Err(PyValueError::new_err(
            "the recovered file is not on this machine: name its quarantine, which is",
        ));
    }
    let source = given.open(py, false)?;
    let options = Options::default().interrupt(signals());
    let tell = telling(progress);
    py.detach(|| {
        let quarantine = quarantine.as_deref();
        verbs::undo_recover(
            &source,
            quarantine,
            destination.as_ref(),
            if_exists.0,
            &options,
            tell,
        )
    })
    .map_err(|error| raise(py, error))
}
