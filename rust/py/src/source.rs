//! Python's things to read from: a path, a buffer, a file object.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyMemoryView, PySlice, PyString};
use seglake::format::Options;
use seglake::source::{BytesSource, FileSource, MappedSource, Source, open_regular};
use seglake::{Error, Result};

use crate::error::raise;
use crate::exclusive::{Exclusive, forks};
use crate::listed::ListedSegment;
use crate::reading::{attached, cannot_read, copy, failed};
use crate::remote;

/// What a caller gave to read from.
pub(crate) enum Given {
    /// A path on this machine.
    Path(PathBuf),
    /// Anything else, and the name to open it by again if it has one (a URI).
    Opened(Arc<dyn Source>, Option<PathBuf>),
}

impl Given {
    fn elsewhere((source, name): (Arc<dyn Source>, PathBuf)) -> Self {
        Self::Opened(source, Some(name))
    }

    /// Something to read from; a path is opened.
    pub(crate) fn open(&self, py: Python<'_>, mmap: bool) -> PyResult<Arc<dyn Source>> {
        let path = match self {
            Self::Path(path) => path,
            Self::Opened(source, _) => return Ok(source.clone()),
        };
        let opened = py.detach(|| -> Result<Arc<dyn Source>> {
            let file = open_regular(path)?;
            if mmap {
                Ok(Arc::new(mapped(&file, path)?))
            } else {
                Ok(Arc::new(FileSource::new(file, path)?))
            }
        });
        opened.map_err(|error| raise(py, with_advice(error)))
    }

    /// Whether it is a file that is not on this machine: nothing can be written beside it.
    pub(crate) const fn is_elsewhere(&self) -> bool {
        matches!(self, Self::Opened(_, Some(_)))
    }

    /// The path or URI.
    pub(crate) fn into_path(self) -> Option<PathBuf> {
        match self {
            Self::Path(path) => Some(path),
            Self::Opened(_, name) => name,
        }
    }
}

#[allow(unsafe_code)]
fn mapped(file: &File, path: &Path) -> Result<MappedSource> {
    // SAFETY: who asks for a map promises that nobody changes the file meanwhile: the docs of `open` say so.
    unsafe { MappedSource::new(file, path) }
}

/// The error for a path, which says what to do where it names many files.
fn with_advice(error: Error) -> Error {
    let Error::Io {
        path: Some(path),
        action,
        source,
        ..
    } = error
    else {
        return error;
    };
    let is_pattern = path.as_os_str().as_encoded_bytes().contains(&b'*');
    let advice = match source.kind() {
        ErrorKind::IsADirectory => {
            "expected a file, found a folder: `seglake.scan` reads its files"
        }
        ErrorKind::NotFound if is_pattern => {
            "expected a file, found a pattern: `seglake.scan` reads what matches"
        }
        _ => return Error::io(Some(&path), action, source),
    };
    let source = std::io::Error::new(source.kind(), advice);
    Error::io(Some(&path), action, source)
}

/// As [`given`], of a path or URI within a file system of `pyarrow.fs` or `fsspec`, if there is one.
pub(crate) fn given_in(
    object: &Bound<'_, PyAny>,
    filesystem: Option<&Bound<'_, PyAny>>,
) -> PyResult<Given> {
    match filesystem {
        Some(_) => remote::open(object, filesystem).map(Given::elsewhere),
        None => given(object),
    }
}

/// The path of this machine that `object` is, if it is one.
pub(crate) fn local_path(object: &Bound<'_, PyAny>) -> PyResult<Option<PathBuf>> {
    let text = object.cast::<PyString>().ok();
    let is_uri = text.is_some_and(|text| text.to_cow().is_ok_and(|text| remote::is_uri(&text)));
    let is_path = text.is_some() || object.hasattr("__fspath__")?;
    (is_path && !is_uri).then(|| object.extract()).transpose()
}

/// What `object` is to be read as: a path, a URI, a file elsewhere that is open, a buffer, or a file object.
pub(crate) fn given(object: &Bound<'_, PyAny>) -> PyResult<Given> {
    if let Ok(text) = object.cast::<PyString>()
        && text.to_cow().is_ok_and(|text| remote::is_uri(&text))
    {
        return remote::open(object, None).map(Given::elsewhere);
    }
    if let Some(path) = local_path(object)? {
        return Ok(Given::Path(path));
    }
    let opened = |source: Arc<dyn Source>| Ok(Given::Opened(source, None));
    if let Ok(segment) = object.cast::<ListedSegment>() {
        return opened(segment.get().open(object.py(), &Options::default())?.source);
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        let text = std::str::from_utf8(bytes.as_bytes());
        if text.is_ok_and(|path| Path::new(path).is_file()) {
            return Err(PyTypeError::new_err(
                "source is bytes, which are a file's content, but these are the path of a file: give that as str",
            ));
        }
        return opened(Arc::new(BytesSource::new(PyBackedBytes::from(
            bytes.clone(),
        ))));
    }
    if let Some(opened) = remote::already_open(object)? {
        return Ok(Given::elsewhere(opened));
    }
    if object.hasattr("read")? && object.hasattr("seek")? {
        let name = object.getattr("name").ok();
        let name = name.and_then(|name| name.extract().ok());
        return opened(Arc::new(FileObject::new(object, name)?));
    }
    if PyUntypedBuffer::get(object).is_ok() {
        return opened(Arc::new(Buffer::new(object)?));
    }
    let kind = object.get_type().qualname()?;
    Err(PyTypeError::new_err(format!(
        "source must be a path, a URI, a seekable binary file object or a buffer, not {kind}"
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
        attached(|py| {
            let range = (offset, offset + buffer.len() as u64);
            let slice = py.get_type::<PySlice>().call1(range)?;
            let part = self.view.bind(py).get_item(slice)?;
            copy(&part.call_method0("tobytes")?, buffer)
        })
        .map_err(|error| failed(None, cannot_read(offset, buffer.len()), error))
    }
}

/// A file object: one read at a time, each after a seek. Its own position is moved by that, and a fork shares that position:
/// two processes would move it under each other's hands, so only the one that opened it reads.
struct FileObject {
    object: Exclusive<Py<PyAny>>,
    name: Option<PathBuf>,
    len: u64,
    forks: u64,
}

impl FileObject {
    fn new(object: &Bound<'_, PyAny>, name: Option<PathBuf>) -> PyResult<Self> {
        object.call_method1("seek", (0, 2))?; // which gives nothing, if it is a map
        let len = object.call_method0("tell")?.extract()?;
        Ok(Self {
            object: Exclusive::new(object.clone().unbind()),
            name,
            len,
            forks: forks(),
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
        let len = buffer.len();
        let unusable = |error| failed(self.path(), cannot_read(offset, len), error);
        if self.forks != forks() {
            let error = "a fork of the process that opened this file object shares its position: open the file again here";
            return Err(unusable(PyRuntimeError::new_err(error)));
        }
        // Taken before the GIL, always: so no thread waits for one with the other in hand.
        let object = self.object.hold().map_err(|error| unusable(error.into()))?;
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
        attached(|py| read(py, buffer)).map_err(unusable)
    }
}
