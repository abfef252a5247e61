//! `write_lines`: the lines of a text, as records of a log.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use seglake::Error;
use seglake::format::ColumnKind;
use seglake::store::NewRecord;

use crate::error::raise;
use crate::field_in::{FieldIn, from_python};
use crate::log::SegmentLog;
use crate::numbers::wrong_type;
use crate::value::uuid_to_python;

/// Appends the lines of a text to a log, a record each, without their line breaks, and waits once for all of them. Returns how many
/// there are, and the UUID of the last one; None where there are none.
///
/// log: a SegmentLog, open to write.
/// type: the type of the records.
/// data: the text. What follows the last line break is a line unless it is empty.
/// line_bytes: the longest line, in bytes.
///
/// Raises ValueError for a line that is longer: those before it are written. Otherwise what `SegmentLog.write` raises.
///
/// >>> from seglake._native import write_lines
/// >>> with seglake.SegmentLog("new") as log:
/// ...     write_lines(log, "line", b"first\nsecond\n", 100)[0]
/// 2
#[pyfunction]
#[pyo3(signature = (log, r#type, data, line_bytes, /))]
pub(crate) fn write_lines<'py>(
    py: Python<'py>,
    log: &SegmentLog,
    r#type: &Bound<'py, PyAny>,
    data: &Bound<'py, PyBytes>,
    line_bytes: usize,
) -> PyResult<(usize, Option<Bound<'py, PyAny>>)> {
    let FieldIn::Text(kind) = from_python(r#type, ColumnKind::Text, "type")? else {
        return Err(wrong_type("type", "str or bytes", r#type));
    };
    let (writer, text) = (log.writer()?, data.as_bytes());
    let written = py.detach(|| {
        let mut longer = None;
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        let lines = lines.map(|line| line.strip_suffix(b"\n").unwrap_or(line));
        let taken = lines.take_while(|line| {
            longer = (line.len() > line_bytes).then_some(line.len());
            longer.is_none()
        });
        let uuids = writer.write_batch(taken.map(|line| NewRecord::new(&kind, line)));
        uuids.map(|uuids| (uuids.len(), uuids.last().copied(), longer))
    });
    let written = written.map_err(|error| match error {
        // Those before it are written, as is said above.
        Error::Partial { source, .. } if matches!(*source, Error::Usage(_)) => raise(py, *source),
        error => raise(py, error),
    });
    let (count, last, longer) = written?;
    if let Some(bytes) = longer {
        return Err(PyValueError::new_err(format!(
            "the line has {bytes} bytes: at most {line_bytes} are allowed"
        )));
    }
    let last = last.map(|last| uuid_to_python(py, last.as_bytes()));
    Ok((count, last.transpose()?))
}
