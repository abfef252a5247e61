//! `list_log`, `is_log_name`: a log as files to read one by one.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use seglake::Error;
use seglake::format::Options;
use seglake::store::{self, ListedLog, ListedSegment as Listed, OpenedSegment, SegmentKind};
use uuid::Uuid;

use crate::error::raise;
use crate::interrupt::signals;
use crate::key::{KeyArgument, keys};
use crate::value::uuid_to_python;

/// A segment of a log as it was when `list_log` listed it: `open` and `verify` take it for what it was then, also when it was
/// sealed since. It holds nothing open, and pickles.
///
/// >>> from seglake._native import list_log
/// >>> segments, synced = list_log("log")
/// >>> seglake.open(segments[0]).count()
/// 2
#[pyclass(frozen, eq, module = "seglake._native")]
#[derive(Clone, PartialEq)]
pub(crate) struct ListedSegment(pub(crate) Listed);

#[pymethods]
impl ListedSegment {
    /// What `__getnewargs__` gave: the path, how many bytes are to be read, up to where it was on the disk, the UUID of the last
    /// record up to there, and whether it is frozen.
    #[new]
    fn new(
        path: PathBuf,
        nbytes: u64,
        synced: Option<u64>,
        last: Option<&str>,
        is_frozen: bool,
    ) -> PyResult<Self> {
        let wrong = || PyValueError::new_err("these are not the fields of a segment of a log");
        let last = last.map(Uuid::try_parse).transpose().map_err(|_| wrong())?;
        let mut listed = Listed::named(&path).ok_or_else(wrong)?;
        (listed.nbytes, listed.synced) = (nbytes, synced);
        (listed.last, listed.is_frozen) = (last, is_frozen);
        Ok(Self(listed))
    }

    fn __getnewargs__(&self) -> (OsString, u64, Option<u64>, Option<String>, bool) {
        let own = &self.0;
        let last = own.last.map(|last| last.to_string());
        let path = own.path().into_os_string();
        (path, own.nbytes, own.synced, last, own.is_frozen)
    }

    /// The log's folder.
    ///
    /// >>> from seglake._native import list_log
    /// >>> segments, synced = list_log("log")
    /// >>> segments[1].log
    /// 'log'
    #[getter]
    fn log(&self) -> &OsStr {
        self.0.folder.as_os_str()
    }

    /// The path of its file when it was listed.
    ///
    /// >>> from seglake._native import list_log
    /// >>> segments, synced = list_log("log")
    /// >>> segments[1].path.endswith(".active")
    /// True
    #[getter]
    fn path(&self) -> OsString {
        self.0.path().into_os_string()
    }

    /// The name of its format when it was listed.
    ///
    /// >>> from seglake._native import list_log
    /// >>> segments, synced = list_log("log")
    /// >>> [segment.format for segment in segments]
    /// ['sealed', 'active']
    #[getter]
    fn format(&self) -> &'static str {
        self.0.format().name
    }

    /// Whether it was sealed when it was listed, so that its file is complete.
    ///
    /// >>> from seglake._native import list_log
    /// >>> segments, synced = list_log("log")
    /// >>> [segment.is_sealed for segment in segments]
    /// [True, False]
    #[getter]
    const fn is_sealed(&self) -> bool {
        matches!(self.0.kind, SegmentKind::Sealed)
    }

    /// How many bytes of it are to be read.
    ///
    /// >>> from seglake._native import list_log
    /// >>> segments, synced = list_log("log")
    /// >>> segments[1].nbytes == synced.byte_offset
    /// True
    #[getter]
    const fn nbytes(&self) -> u64 {
        self.0.nbytes
    }

    /// Its place in the log.
    ///
    /// >>> from seglake._native import list_log
    /// >>> segments, synced = list_log("log")
    /// >>> [segment.sequence for segment in segments]
    /// [1, 2]
    #[getter]
    const fn sequence(&self) -> u64 {
        self.0.id.sequence
    }

    /// The UUID of its first record, which is its identity: it stays when the segment is sealed.
    ///
    /// >>> from seglake._native import list_log
    /// >>> segments, synced = list_log("log")
    /// >>> segments[0].first < segments[1].first
    /// True
    #[getter]
    fn first<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        uuid_to_python(py, self.0.id.first.as_bytes())
    }

    /// The offset up to which it was on the disk, where more than that may be in the file.
    ///
    /// >>> from seglake._native import list_log
    /// >>> segments, synced = list_log("log")
    /// >>> segments[0].synced, segments[1].synced == synced.byte_offset
    /// (None, True)
    #[getter]
    const fn synced(&self) -> Option<u64> {
        self.0.synced
    }

    /// Whether it is damaged or cut off, and kept as it is.
    ///
    /// >>> from seglake._native import list_log
    /// >>> segments, synced = list_log("log")
    /// >>> segments[1].is_frozen
    /// False
    #[getter]
    const fn is_frozen(&self) -> bool {
        self.0.is_frozen
    }

    fn __repr__(&self) -> String {
        format!("ListedSegment({:?})", self.0.path())
    }
}

impl ListedSegment {
    /// Opens it. Refuses a format that it does not have.
    pub(crate) fn open(&self, py: Python<'_>, options: &Options) -> PyResult<OpenedSegment> {
        let opened = py.detach(|| self.0.open());
        let opened = opened.map_err(|error| raise(py, error))?;
        match options.format {
            Some(given) if given != opened.format => {
                let error = Error::Format {
                    path: Some(self.0.path()),
                    message: format!(
                        "is {} by now, not {}: segments of a log are active and sealed",
                        opened.format.name, given.name
                    ),
                    next: Some(
                        "leave the format out, or name the files of one format with a pattern",
                    ),
                };
                Err(raise(py, error))
            }
            _ => Ok(opened),
        }
    }
}

/// Whether a file of this name makes its folder that of a log.
///
/// >>> from seglake._native import is_log_name
/// >>> is_log_name("_mark"), is_log_name("orders.sealed")
/// (True, False)
#[pyfunction]
#[pyo3(signature = (name, /))]
pub(crate) fn is_log_name(name: OsString) -> bool {
    name.to_str().is_some_and(store::is_log_name)
}

/// Lists a log: its segments at one moment, in order, and how far it was known to be on the disk then. The key is as in `open`.
///
/// Raises OSError where the folder cannot be read, FormatError where segments are missing, WrongKeyError where nothing checks under
/// the key.
///
/// >>> from seglake._native import list_log
/// >>> segments, synced = list_log("log")
/// >>> len(segments), synced.sequence
/// (2, 2)
#[pyfunction]
#[pyo3(signature = (folder, *, key=None))]
pub(crate) fn list_log<'py>(
    py: Python<'py>,
    folder: PathBuf,
    key: Option<KeyArgument>,
) -> PyResult<(Bound<'py, PyTuple>, Option<Bound<'py, PyAny>>)> {
    let (keys, _) = keys(py, key.as_ref())?;
    let options = Options::default().keys(keys).interrupt(signals());
    let listed = py.detach(|| ListedLog::read(&folder, &options));
    let listed = listed.map_err(|error| raise(py, error))?;
    let segments = listed.segments.into_iter().map(ListedSegment);
    let segments = PyTuple::new(py, segments.collect::<Vec<_>>())?;
    let synced = listed.synced.map(|synced| mark_to_python(py, synced));
    Ok((segments, synced.transpose()?))
}

/// A `LogMark`.
pub(crate) fn mark_to_python<'py>(
    py: Python<'py>,
    (sequence, offset, last): (u64, u64, Uuid),
) -> PyResult<Bound<'py, PyAny>> {
    let fields = (sequence, offset, uuid_to_python(py, last.as_bytes())?);
    let class = py.import("seglake._types")?.getattr("LogMark")?;
    class.call1(fields)
}
