//! `list_log`, `is_log_name`: a log as files to read one by one.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use seglake::Error;
use seglake::format::Options;
use seglake::source::{Bound as Reached, SaidBy};
use seglake::store::{
    self, ListedLog, ListedSegment as Listed, OpenedSegment, SegmentKind, Synced, Unread,
};
use uuid::Uuid;

use crate::error::{detached, raise};
use crate::interrupt::signals;
use crate::key::{KeyArgument, keys};
use crate::log_facts::unread_to_python;
use crate::typed::typed;

/// A segment of a log as it was when `list_log` listed it: `open` and `verify` take it for what it was then, also when it was
/// sealed since. It holds nothing open, and pickles.
///
/// >>> from seglake._native import list_log
/// >>> segments, synced = list_log("log")
/// >>> seglake.open(segments[0]).count_rows()
/// 2
#[pyclass(frozen, eq, module = "seglake._native")]
#[derive(Clone)]
pub(crate) struct ListedSegment(pub(crate) Listed, Option<Unread>);

impl PartialEq for ListedSegment {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// How far a segment has to reach, to pickle: the offset, the UUID of the last record, what says so, and whether what is after it
/// was on the disk as well.
type BoundFields = (u64, Option<String>, String, bool);

fn bound_of((offset, last, said_by, is_complete): BoundFields) -> PyResult<Reached> {
    let last = last.as_deref().map(Uuid::try_parse).transpose();
    let mut all = SaidBy::ALL.iter().copied();
    Ok(Reached {
        offset,
        last: last.map_err(|_| wrong())?.map(Uuid::into_bytes),
        said_by: all.find(|own| own.as_str() == said_by).ok_or_else(wrong)?,
        is_complete,
    })
}

fn wrong() -> PyErr {
    PyValueError::new_err("these are not the fields of a segment of a log")
}

impl ListedSegment {
    /// Its path, if it was sealed when it was listed. An active segment has no sidecar, and one that was sealed since is read as it was.
    pub(crate) fn sealed_path(&self) -> Option<PathBuf> {
        self.is_sealed().then(|| self.0.path())
    }
}

#[pymethods]
impl ListedSegment {
    /// What `__getnewargs__` gave: the path, how many bytes are to be read, how far it has to reach, whether it is open, and whether
    /// it is frozen.
    #[new]
    fn new(
        path: PathBuf,
        nbytes: u64,
        bound: Option<BoundFields>,
        is_open: bool,
        is_frozen: bool,
    ) -> PyResult<Self> {
        let listed = Listed {
            nbytes,
            bound: bound.map(bound_of).transpose()?,
            is_open,
            is_frozen,
            ..Listed::named(&path).ok_or_else(wrong)?
        };
        Ok(Self(listed, None))
    }

    fn __getnewargs__(&self) -> (OsString, u64, Option<BoundFields>, bool, bool) {
        let own = &self.0;
        let bound = own.bound.map(|bound| {
            let last = bound.last.map(|last| Uuid::from_bytes(last).to_string());
            let said_by = bound.said_by.as_str().to_owned();
            (bound.offset, last, said_by, bound.is_complete)
        });
        let path = own.path().into_os_string();
        (path, own.nbytes, bound, own.is_open, own.is_frozen)
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
    fn first(&self) -> Uuid {
        self.0.id.first
    }

    /// The offset that its records have to reach, where that is known: up to there it was on the disk.
    ///
    /// >>> from seglake._native import list_log
    /// >>> segments, synced = list_log("log")
    /// >>> segments[0].synced, segments[1].synced == synced.byte_offset
    /// (None, True)
    #[getter]
    fn synced(&self) -> Option<u64> {
        self.0.bound.map(|bound| bound.offset)
    }

    /// Whether it was being written: what is after `synced` is not read.
    ///
    /// >>> from seglake._native import list_log
    /// >>> segments, synced = list_log("log")
    /// >>> [segment.is_open for segment in segments]
    /// [False, True]
    #[getter]
    const fn is_open(&self) -> bool {
        self.0.is_open
    }

    /// It as it was when it was being written, and on the disk up to this offset, with this UUID of the last record.
    ///
    /// >>> from seglake._native import list_log
    /// >>> segments, synced = list_log("log")
    /// >>> segments[1].up_to(synced.byte_offset, str(synced.last)) == segments[1]
    /// True
    #[pyo3(signature = (synced, last, /))]
    fn up_to(&self, synced: u64, last: Option<String>) -> PyResult<Self> {
        let fields = (synced, last, SaidBy::Mark.as_str().to_owned(), true);
        Self::new(self.0.path(), synced, Some(fields), true, false)
    }

    /// What readers leave out of it, as a LogUnread; None where that is nothing, and in a copy.
    ///
    /// >>> from seglake._native import list_log
    /// >>> segments, synced = list_log("log")
    /// >>> segments[1].unread is None
    /// True
    #[getter]
    fn unread<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let unread = self.1.as_ref();
        unread
            .map(|unread| unread_to_python(py, &self.0.folder, unread))
            .transpose()
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

    /// Opens it, and raises DamageError where its file ends before it has to. The key is as in `open`.
    ///
    /// >>> from seglake._native import list_log
    /// >>> segments, synced = list_log("log")
    /// >>> segments[1].check()
    #[pyo3(signature = (*, key=None))]
    fn check(&self, py: Python<'_>, key: Option<KeyArgument>) -> PyResult<()> {
        let keys = keys(py, key.as_ref())?;
        let options = Options::default().keys(keys);
        detached(py, || self.0.check(&options))
    }

    fn __repr__(&self) -> String {
        format!("ListedSegment({:?})", self.0.path())
    }
}

impl ListedSegment {
    /// Opens it. Refuses a format that it does not have.
    pub(crate) fn open(&self, py: Python<'_>, options: &Options) -> PyResult<OpenedSegment> {
        let opened = detached(py, || self.0.open(options))?;
        match options.format {
            Some(given) if given.name != opened.format.name => {
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

/// Whether a file of this name makes its folder that of a log: it is a synced mark, or a segment.
///
/// >>> from seglake._native import is_log_name
/// >>> is_log_name("_mark"), is_log_name("orders.sealed")
/// (True, False)
#[pyfunction]
#[pyo3(signature = (name, /))]
pub(crate) fn is_log_name(name: OsString) -> bool {
    name.to_str().is_some_and(store::is_log_name)
}

/// Whether a file of this name belongs to a segment of a log, whether or not that is still there: its parity sidecar, or what a repair or
/// a recovery put aside.
///
/// >>> from seglake._native import is_beside_segment
/// >>> is_beside_segment("00000000000000000001-1eeafd69-b6b0-69f3-b9f1-1b8e6a30ade3.sealed.par")
/// True
#[pyfunction]
#[pyo3(signature = (name, /))]
pub(crate) fn is_beside_segment(name: OsString) -> bool {
    name.to_str().is_some_and(store::is_beside_segment)
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
    let keys = keys(py, key.as_ref())?;
    let options = Options::default().keys(keys).interrupt(signals());
    let listed = detached(py, || ListedLog::read(&folder, &options))?;
    let unread_of = |own: &Listed| listed.unread.filter(|unread| unread.id == own.id);
    let segments = listed.segments.into_iter();
    let segments = segments.map(|own| ListedSegment(own.clone(), unread_of(&own)));
    let segments = PyTuple::new(py, segments.collect::<Vec<_>>())?;
    let synced = listed.synced.map(|synced| mark_to_python(py, synced));
    Ok((segments, synced.transpose()?))
}

/// A `LogMark`.
pub(crate) fn mark_to_python<'py>(py: Python<'py>, synced: Synced) -> PyResult<Bound<'py, PyAny>> {
    let fields = (synced.sequence, synced.offset, synced.uuid);
    typed(py, "LogMark", fields)
}
