//! `protect`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use seglake::format::Options;
use seglake::parity::Parameters;
use seglake::verbs::{self, ProtectOptions};

use crate::destination::{BESIDE, Destination, SidecarPath};
use crate::error::raise;
use crate::json::{Reduced, hash_of, reduced, restored, written};
use crate::key::KeyArgument;
use crate::keywords::with_keywords;
use crate::options::Named;
use crate::read_options::ReadArguments;
use crate::report::Report;
use crate::verify::teller;

/// The name of a format for files that have none of the others.
const RAW: &str = "raw";

/// The options that say what a file is, and whether it has no format.
pub(crate) fn options_for(
    py: Python<'_>,
    format: Option<&str>,
    key: Option<KeyArgument>,
    options: Option<&Named>,
) -> PyResult<(Options, bool)> {
    let is_raw = format == Some(RAW);
    let arguments = ReadArguments {
        format: format.filter(|_| !is_raw),
        key,
        options,
        ..ReadArguments::default()
    };
    let (options, _, _) = arguments.options(py)?;
    Ok((options, is_raw))
}

/// The length of a file, for progress. What cannot be read is raised later.
pub(crate) fn nbytes(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// What `protect` covered of a file, and what became of its sidecar.
///
/// >>> protected = seglake.protect("orders.active")
/// >>> protected.change, protected.covered_bytes == protected.nbytes
/// ('created', True)
#[pyclass(frozen, module = "seglake.parity")]
pub(crate) struct Protected {
    path: PathBuf,
    protected: verbs::Protected,
    report: Option<Py<Report>>,
}

impl Protected {
    fn new(py: Python<'_>, path: PathBuf, protected: verbs::Protected) -> PyResult<Self> {
        let report = protected.report.clone();
        let report = report.map(|report| Py::new(py, Report(report)));
        Ok(Self {
            path,
            report: report.transpose()?,
            protected,
        })
    }

    fn restored(py: Python<'_>, json: &str) -> PyResult<Self> {
        let (path, protected): (OsString, _) = restored(json)?;
        Self::new(py, path.into(), protected)
    }

    fn to_json(&self) -> PyResult<String> {
        written(&(self.path.as_os_str(), &self.protected))
    }
}

#[pymethods]
impl Protected {
    /// The file.
    ///
    /// >>> seglake.protect("orders.active").path
    /// 'orders.active'
    #[getter]
    fn path(&self) -> &OsStr {
        self.path.as_os_str()
    }

    /// Its sidecar.
    ///
    /// >>> seglake.protect("orders.active").sidecar
    /// 'orders.active.par'
    #[getter]
    fn sidecar(&self) -> &OsStr {
        self.protected.sidecar.as_os_str()
    }

    /// What became of the sidecar: "created", "extended", "rewritten" (it had more superseded bytes than others), or "unchanged".
    ///
    /// >>> seglake.protect("orders.active").change, seglake.protect("orders.active").change
    /// ('created', 'unchanged')
    #[getter]
    fn change(&self) -> &'static str {
        self.protected.change.as_str()
    }

    /// Whether the sidecar was damaged, and repaired before that.
    ///
    /// >>> seglake.protect("orders.active").healed
    /// False
    #[getter]
    fn healed(&self) -> bool {
        self.protected.healed
    }

    /// The profile: how many data and parity blocks a group has.
    ///
    /// >>> seglake.protect("orders.active", profile="128+4").profile
    /// '128+4'
    #[getter]
    fn profile(&self) -> String {
        self.protected.parameters.to_string()
    }

    /// The length of the file in bytes.
    ///
    /// >>> seglake.protect("orders.active").nbytes == seglake.verify("orders.active").nbytes
    /// True
    #[getter]
    fn nbytes(&self) -> u64 {
        self.protected.size
    }

    /// How many bytes of the file are covered, from its beginning: all, but for unused space and a torn tail.
    ///
    /// >>> protected = seglake.protect("orders.active")
    /// >>> protected.covered_bytes == protected.nbytes
    /// True
    #[getter]
    fn covered_bytes(&self) -> u64 {
        self.protected.covered
    }

    /// The length of the sidecar in bytes.
    ///
    /// >>> seglake.protect("orders.active").sidecar_bytes
    /// 800
    #[getter]
    fn sidecar_bytes(&self) -> u64 {
        self.protected.sidecar_bytes
    }

    /// Where what was verified by its own format begins: 0, or where the file was covered to if only what was appended had to be.
    ///
    /// >>> seglake.protect("orders.active").verified_from
    /// 0
    /// >>> protected = seglake.protect("orders.active")
    /// >>> protected.verified_from == protected.nbytes
    /// True
    #[getter]
    fn verified_from(&self) -> u64 {
        self.protected.verified_from
    }

    /// What was found in the file by its own format, from `verified_from` on, or None where it was not verified (`format="raw"`).
    ///
    /// >>> seglake.protect("orders.active").report.ok
    /// True
    #[getter]
    fn report(&self, py: Python<'_>) -> Option<Py<Report>> {
        self.report.as_ref().map(|report| report.clone_ref(py))
    }

    /// All attributes as a dict of the same names, fit for JSON: `report` is that of Report.to_dict.
    ///
    /// >>> seglake.protect("orders.active").to_dict()["sidecar"]
    /// 'orders.active.par'
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("path", self.path())?;
        dict.set_item("sidecar", self.sidecar())?;
        dict.set_item("change", self.change())?;
        dict.set_item("healed", self.healed())?;
        dict.set_item("profile", self.profile())?;
        dict.set_item("nbytes", self.nbytes())?;
        dict.set_item("covered_bytes", self.covered_bytes())?;
        dict.set_item("sidecar_bytes", self.sidecar_bytes())?;
        dict.set_item("verified_from", self.verified_from())?;
        let report = self.report.as_ref();
        let report = report.map(|report| report.bind(py).call_method0("to_dict"));
        dict.set_item("report", report.transpose()?)?;
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
        format!(
            "Protected({:?}, sidecar={:?}, change={:?}, covered_bytes={}, sidecar_bytes={})",
            self.path(),
            self.sidecar(),
            self.change(),
            self.covered_bytes(),
            self.sidecar_bytes()
        )
    }
}

with_keywords! {
/// Makes the parity sidecar of a file, from which `repair` restores damaged bytes, or extends it if the file has grown. The file
/// itself is never written to.
///
/// First the file is verified by its format; a damaged one is refused. All of it is covered, but for unused space and a torn tail
/// of a file that is appended to. What is covered must not change afterwards: append to the file, and protect it again. That costs
/// what was appended: complete bands that are covered are not read, so damage there is left to `verify`.
///
/// profile: data and parity blocks of a group: "128+8", "128+4", "128+16" or "128+8-long". None: that of an existing sidecar,
///     "128+8" for a new one.
/// as_it_is: begin a new sidecar for the file as it is, damaged or not. An existing one is replaced.
/// lazy: leave the last 16 MiB as they are until what is not covered of them is 1/16 of what is.
/// sidecar: the path of the sidecar. "auto": `path` with `.par` appended; for a link without one, that of the file that it leads to.
/// format: as in `verify`, or "raw" for a file of any other kind: it is not verified, and covered whole.
/// progress: called as in `verify`. The other arguments are as there.
///
/// Raises DamageError where the file is damaged, by its format or by what the sidecar covers; WrongKeyError; FormatError where the
/// format cannot be told, or the sidecar is none; ValueError where the sidecar has another profile; OSError, also where another
/// process writes the sidecar.
///
/// >>> seglake.protect("orders.active").change
/// 'created'
/// >>> seglake.protect("orders.active").change
/// 'unchanged'
#[pyo3(text_signature = "(path, *, profile=None, as_it_is=False, lazy=False, sidecar=\"auto\", format=None, key=None, options=None, progress=None)")]
fn protect(path: &Bound<'_, PyAny>; ProtectArguments<'a> {
    profile: Option<&'a str> = None,
    as_it_is: bool = false,
    lazy: bool = false,
    sidecar: SidecarPath = BESIDE,
    format: Option<&'a str> = None,
    key: Option<KeyArgument> = None,
    options: Option<Named> = None,
    progress: Option<Py<PyAny>> = None,
}) -> Protected;
}

impl ProtectArguments<'_> {
    fn protect(self, path: &Bound<'_, PyAny>) -> PyResult<Protected> {
        let py = path.py();
        let path: Destination = path.extract()?;
        let (options, is_raw) = options_for(py, self.format, self.key, self.options.as_ref())?;
        let parameters = self.profile.map(str::parse::<Parameters>).transpose();
        let parameters = parameters.map_err(|error| raise(py, error))?;
        let protection = ProtectOptions::default()
            .sidecar(self.sidecar.0)
            .parameters(parameters)
            .as_it_is(self.as_it_is)
            .lazy(self.lazy)
            .raw(is_raw);
        let tell = teller(self.progress, nbytes(path.as_ref()));
        let protected = py
            .detach(|| verbs::protect(path.as_ref(), &options, &protection, tell))
            .map_err(|error| raise(py, error))?;
        Protected::new(py, path.0, protected)
    }
}
