//! What a log says of its segments and its recovery, as named tuples of Python.

use std::path::Path;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use seglake::store::{Recovery, Segment, Skipped, Unread};
use seglake::text;

use crate::error;
use crate::typed::typed;

/// An item of `log.segments()`.
pub(crate) fn segment_to_python<'py>(
    py: Python<'py>,
    segment: &Segment,
) -> PyResult<Bound<'py, PyAny>> {
    let fields = (
        segment.id.sequence,
        segment.id.first,
        segment.kind.extension(),
        segment.path.as_os_str(),
        segment.is_frozen,
    );
    typed(py, "LogSegment", fields)
}

/// `log.unread`.
pub(crate) fn unread_to_python<'py>(
    py: Python<'py>,
    folder: &Path,
    unread: &Unread,
) -> PyResult<Bound<'py, PyAny>> {
    let fields = (
        folder.as_os_str(),
        unread.id.sequence,
        unread.offset,
        unread.nbytes,
        unread.records,
        unread.to_string(),
    );
    typed(py, "LogUnread", fields)
}

/// `UnreadWarning`.
pub(crate) fn warn_of_unread(py: Python<'_>, folder: &Path, unread: &Unread) -> PyResult<()> {
    let class = py.import("seglake._errors")?.getattr("UnreadWarning")?;
    let text = unread_to_python(py, folder, unread)?.str()?;
    error::warn(py, &class, text.to_string())
}

/// `ClockAheadWarning`.
pub(crate) fn warn_of_clock(py: Python<'_>, folder: &Path, ahead: Duration) -> PyResult<()> {
    let class = py.import("seglake._errors")?.getattr("ClockAheadWarning")?;
    let text = format!(
        "{}: the time of the last record is {} s ahead of the clock: records of the present time get times after it. Set the clock, or begin \
         another log",
        text::path(folder),
        ahead.as_secs()
    );
    error::warn(py, &class, text)
}

/// `DamageWarning`, for each thing that was passed over.
pub(crate) fn warn_of_skipped(py: Python<'_>, skipped: Vec<Skipped>) -> PyResult<()> {
    for own in skipped {
        let text = format!("{own}: it is skipped");
        error::warn(py, error::damage_warning(py)?, text)?;
    }
    Ok(())
}

/// An item of `log.recovered`.
pub(crate) fn recovery_to_python<'py>(
    py: Python<'py>,
    step: &Recovery,
) -> PyResult<Bound<'py, PyAny>> {
    let (kind, segment, byte_offset, nbytes, reason) = match step {
        Recovery::TornTail {
            segment,
            offset,
            bytes,
        } => ("torn_tail", segment, Some(offset), Some(bytes), None),
        Recovery::Frozen { segment, reason } => ("frozen", segment, None, None, Some(reason)),
        Recovery::Rewritten { segment, bytes } => ("rewritten", segment, None, Some(bytes), None),
        other => return Err(PyValueError::new_err(format!("{other:?}"))),
    };
    let fields = (kind, segment.sequence, byte_offset, nbytes, reason);
    typed(py, "LogRecovery", fields)
}
