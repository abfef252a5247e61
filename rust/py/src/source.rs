//! Python's things to read from: a path, a buffer, a file object.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyMemoryView, PySlice, PyString};
use seglake::source::{BytesSource, FileSource, MappedSource, Source, open_regular};
use seglake::{Error, Result};

use crate::error::raise;

/// What `source` is, and the path to open it by again if it has one.
pub(crate) fn source(
    object: &Bound<'_, PyAny>,
    mmap: Option<bool>,
) -> PyResult<(Arc<dyn Source>, Option<PathBuf>)> {
    let py = object.py();
    if object.is_instance_of::<PyString>() || object.hasattr("__fspath__")? {
        let path: PathBuf = object.extract()?;
        let opened = py.detach(|| -> Result<Arc<dyn Source>> {
            let file = open_regular(&path)?;
            if mmap == Some(true) {
                Ok(Arc::new(MappedSource::new(&file, &path)?))
            } else {
                Ok(Arc::new(FileSource::new(file, &path)?))
            }
        });
        return Ok((opened.map_err(|error| raise(py, error))?, Some(path)));
    }
    if mmap == Some(true) {
        return Err(PyValueError::new_err(
            "mmap=True needs a path: a buffer is in memory already, and a file object cannot be mapped",
        ));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok((
            Arc::new(BytesSource::new(PyBackedBytes::from(bytes.clone()))),
            None,
        ));
    }
    if object.hasattr("read")? && object.hasattr("seek")? {
        return Ok((Arc::new(FileObject::new(object)?), None));
    }
    if PyUntypedBuffer::get(object).is_ok() {
        return Ok((Arc::new(Buffer::new(object)?), None));
    }
    let kind = object.get_type().qualname()?;
    Err(PyTypeError::new_err(format!(
        "source must be a path, a seekable binary file object or a buffer, not {kind}"
    )))
}

/// A buffer that somebody may write to: read in windows under the GIL, so what is checked is what is returned.
struct Buffer {
    view: Py<PyAny>,
    len: u64,
}

impl Buffer {
    fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let view = PyMemoryView::from(object)?.call_method1("cast", ("B",))?;
        let len = view.len()? as u64;
        Ok(Self {
            view: view.unbind(),
            len,
        })
    }
}

impl Source for Buffer {
    fn len(&self) -> u64 {
        self.len
    }

    fn path(&self) -> Option<&Path> {
        None
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        Python::attach(|py| {
            let slice = py
                .get_type::<PySlice>()
                .call1((offset, offset + buffer.len() as u64))?;
            copy(
                &self
                    .view
                    .bind(py)
                    .get_item(slice)?
                    .call_method0("tobytes")?,
                buffer,
            )
        })
        .map_err(|error| failed(None, offset, buffer.len(), &error))
    }
}

/// A file object: one read at a time, each after a seek. Its own position is moved by that.
struct FileObject {
    object: Mutex<Py<PyAny>>,
    name: Option<PathBuf>,
    len: u64,
}

impl FileObject {
    fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let name = object
            .getattr("name")
            .ok()
            .and_then(|name| name.extract().ok());
        let len = object.call_method1("seek", (0, 2))?.extract()?;
        Ok(Self {
            object: Mutex::new(object.clone().unbind()),
            name,
            len,
        })
    }
}

impl Source for FileObject {
    fn len(&self) -> u64 {
        self.len
    }

    fn path(&self) -> Option<&Path> {
        self.name.as_deref()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        // The lock is taken before the GIL, always: so no thread waits for one with the other in hand.
        let object = self.object.lock().unwrap_or_else(PoisonError::into_inner);
        let read = |py: Python<'_>, buffer: &mut [u8]| -> PyResult<()> {
            let object = object.bind(py);
            object.call_method1("seek", (offset,))?;
            let mut done = 0;
            while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
                let bytes = object.call_method1("read", (rest.len(),))?;
                let bytes = bytes.cast::<PyBytes>().map_err(|_| {
                    PyTypeError::new_err("read() gave no bytes: open the file in binary mode")
                })?;
                let read = bytes.len()?;
                let Some(rest) = rest.get_mut(..read).filter(|_| read > 0) else {
                    return Err(PyValueError::new_err(format!(
                        "read() gave {read} bytes: has the file shrunk?"
                    )));
                };
                copy(bytes, rest)?;
                done += read;
            }
            Ok(())
        };
        Python::attach(|py| read(py, buffer))
            .map_err(|error| failed(self.path(), offset, buffer.len(), &error))
    }
}

fn copy(bytes: &Bound<'_, PyAny>, buffer: &mut [u8]) -> PyResult<()> {
    let bytes = bytes.cast::<PyBytes>()?.as_bytes();
    if bytes.len() != buffer.len() {
        return Err(PyValueError::new_err(format!(
            "{} bytes came instead of {}",
            bytes.len(),
            buffer.len()
        )));
    }
    buffer.copy_from_slice(bytes);
    Ok(())
}

fn failed(path: Option<&Path>, offset: u64, len: usize, error: &PyErr) -> Error {
    let action = format!("cannot read {len} bytes at offset {offset}");
    Error::Io {
        path: path.map(Into::into),
        action,
        source: std::io::Error::other(error.to_string()),
    }
}
