//! The parity sidecar that a file is read by.

use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString};
use seglake::Error;
use seglake::format::Options;
use seglake::parity::{self, FileKind, FileSpan, ProtectedSource, SidecarSpan, WorstGroup};
use seglake::source::{FileSource, Source};
use seglake::verbs::{ParityReport, open_sidecar};

use crate::error::{detached, raise};
use crate::listed::ListedSegment;
use crate::numbers::wrong_type;
use crate::source::{Given, given_in, local_path};
use crate::typed::{span_of, typed};

/// What stands for the sidecar beside a file, if there is one.
const BESIDE: &str = "auto";

/// Where the sidecar of a file is.
pub(crate) enum SidecarArgument {
    /// Beside the file, if that is on this machine and there is one: elsewhere each look costs a request.
    Auto,
    /// What is named: a path, a URI, a file object or a buffer.
    Named(Py<PyAny>),
}

/// The default of `sidecar`.
pub(crate) const AUTO: Option<SidecarArgument> = Some(SidecarArgument::Auto);

impl<'py> FromPyObject<'_, 'py> for SidecarArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // Python would take a number for an open file.
        if object.is_instance_of::<PyInt>() {
            return Err(wrong_type(
                "sidecar",
                "\"auto\", None or a sidecar",
                &object,
            ));
        }
        let is_auto = object.cast::<PyString>().is_ok_and(|text| *text == BESIDE);
        Ok(match is_auto {
            true => Self::Auto,
            false => Self::Named(object.to_owned().unbind()),
        })
    }
}

impl<'py> IntoPyObject<'py> for &SidecarArgument {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            SidecarArgument::Auto => PyString::new(py, BESIDE).into_any(),
            SidecarArgument::Named(named) => named.bind(py).clone(),
        })
    }
}

/// The sidecar of this path, which has to be there.
fn named_sidecar(py: Python<'_>, path: &Path) -> PyResult<Arc<dyn Source>> {
    let opened = py.detach(|| FileSource::open(path));
    let of_sidecar = |error| match error {
        Error::Io { path, source, .. } => {
            Error::io(path.as_deref(), "cannot open the parity sidecar", source)
        }
        error => error,
    };
    match opened {
        Ok(sidecar) => Ok(Arc::new(sidecar)),
        Err(error) => Err(raise(py, of_sidecar(error))),
    }
}

impl SidecarArgument {
    /// Opens the sidecar of what is to be read, if there is one. It is opened before the file: so the file has all that it covers, also
    /// where it grows and is protected at this moment.
    pub(crate) fn open(
        &self,
        object: &Bound<'_, PyAny>,
        filesystem: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Arc<dyn Source>>> {
        let py = object.py();
        let path = match self {
            Self::Named(named) => {
                return match given_in(named.bind(py), filesystem)? {
                    Given::Path(path) => named_sidecar(py, &path).map(Some),
                    given => given.open(py, false).map(Some),
                };
            }
            Self::Auto if filesystem.is_some() => return Ok(None),
            Self::Auto => match object.cast::<ListedSegment>() {
                Ok(segment) => segment.get().sealed_path(),
                Err(_) => local_path(object)?,
            },
        };
        let Some(path) = path else {
            return Ok(None);
        };
        let sidecar = detached(py, || open_sidecar(&path, &Options::default()))?;
        Ok(sidecar.map(|sidecar| Arc::new(sidecar) as Arc<dyn Source>))
    }

    /// The file by its sidecar.
    pub(crate) fn apply(
        &self,
        file: Arc<dyn Source>,
        sidecar: Arc<dyn Source>,
        py: Python<'_>,
    ) -> PyResult<Arc<dyn Source>> {
        let is_named = matches!(self, Self::Named(_));
        detached(py, || {
            let protected = ProtectedSource::open(file, sidecar)?;
            if is_named {
                protected.refuse_without_frames()?;
            }
            Ok(protected as Arc<dyn Source>)
        })
    }
}

type Spans<'py> = Vec<Bound<'py, PyAny>>;

/// The damaged ranges of a file, as Spans.
pub(crate) fn file_damage<'py>(py: Python<'py>, report: &parity::Report) -> PyResult<Spans<'py>> {
    let range = |own: &FileSpan| ((own.start, own.end), own.kind.as_str(), own.cause);
    damage(py, report.file.iter().map(range))
}

/// The same of its sidecar.
pub(crate) fn sidecar_damage<'py>(
    py: Python<'py>,
    report: &parity::Report,
) -> PyResult<Spans<'py>> {
    let range = |own: &SidecarSpan| ((own.start, own.end), own.kind.as_str(), own.cause);
    damage(py, report.sidecar.iter().map(range))
}

fn damage<'py>(
    py: Python<'py>,
    ranges: impl Iterator<Item = ((u64, u64), &'static str, Option<parity::Cause>)>,
) -> PyResult<Spans<'py>> {
    ranges
        .filter_map(|(range, kind, cause)| Some(span_of(py, range, kind, Some(cause?.as_str()))))
        .collect()
}

/// The lost ranges of a file, each with the worst of its groups.
pub(crate) fn lost_ranges<'py>(
    py: Python<'py>,
    report: &parity::Report,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let ranges = report.lost.iter().map(|range| {
        let dict = PyDict::new(py);
        dict.set_item("start", range.start)?;
        dict.set_item("end", range.end)?;
        dict.set_item("worst", worst(py, range.worst)?)?;
        Ok(dict)
    });
    ranges.collect()
}

pub(crate) fn worst(
    py: Python<'_>,
    group: Option<WorstGroup>,
) -> PyResult<Option<Bound<'_, PyDict>>> {
    let Some(own) = group else { return Ok(None) };
    let dict = PyDict::new(py);
    dict.set_item("band", own.band)?;
    dict.set_item("group", own.group)?;
    dict.set_item("needs", own.damaged)?;
    dict.set_item("of", own.parity)?;
    Ok(Some(dict))
}

/// A `seglake.parity.ParityReport`.
pub(crate) fn report<'py>(py: Python<'py>, own: &ParityReport) -> PyResult<Bound<'py, PyAny>> {
    let refused = match own.report.refused {
        _ if own.is_of_an_earlier_state => Some("earlier_state"),
        refused => refused.map(|why| why.as_str()),
    };
    let sidecar = own.sidecar.as_deref();
    let fields = (
        sidecar.map(|path| path.as_os_str()),
        own.outcome().as_str(),
        refused,
        file_damage(py, &own.report)?,
        sidecar_damage(py, &own.report)?,
        worst(py, own.report.worst)?,
        own.bytes(FileKind::Unverified),
        own.bytes(FileKind::Uncovered),
        lost_ranges(py, &own.report)?,
        own.covered(),
    );
    typed(py, "ParityReport", fields)
}
