//! Files elsewhere: what `seglake.stores` opens, read in ranges, ahead of who reads on and on.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use seglake::Result;
use seglake::source::{ReadAhead, Source};

use crate::exclusive::{forks, lock};
use crate::reading::{attached, cannot_read, copy, failed};

/// A file system of `pyarrow.fs` or `fsspec`.
pub(crate) type Filesystem = Py<PyAny>;

/// Settings of the store of a URI.
pub(crate) type StorageOptions = Py<PyAny>;

/// The module that opens them. It imports nothing that is large.
const REMOTE: &str = "seglake.stores";

/// How many reads go on now.
static READS: AtomicUsize = AtomicUsize::new(0);
/// Whether the process is about to end.
static ENDING: AtomicBool = AtomicBool::new(false);
/// How long to wait before looking again whether reads have ended.
const PAUSE: Duration = Duration::from_millis(1);
/// How long to wait for them: a store that does not answer by then may never do so.
const LONGEST: Duration = Duration::from_secs(10);

/// One of the reads that go on.
struct Reading;

impl Reading {
    /// Refuses when the process is about to end: a thread that comes back from reading to an interpreter that is gone kills it.
    fn begin() -> PyResult<Self> {
        READS.fetch_add(1, Ordering::SeqCst);
        let reading = Self;
        if ENDING.load(Ordering::SeqCst) {
            return Err(PyRuntimeError::new_err("the process is ending"));
        }
        Ok(reading)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        READS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Called when the process is about to end: waits for what is being read ahead, which nobody can call off. Ctrl-C ends the wait.
#[pyfunction]
fn end_reading(py: Python<'_>) -> PyResult<()> {
    ENDING.store(true, Ordering::SeqCst);
    let began = Instant::now();
    while READS.load(Ordering::SeqCst) > 0 && began.elapsed() < LONGEST {
        py.detach(|| std::thread::sleep(PAUSE));
        py.check_signals()?;
    }
    Ok(())
}

/// Called in a process that was just forked: the threads that read are not in it.
pub(crate) fn forked() {
    READS.store(0, Ordering::SeqCst);
}

/// Whether a text that names a file is a URI and no path.
pub(crate) fn is_uri(text: &str) -> bool {
    text.contains("://")
}

/// What the file is within: the file system that is given, or the store of its URI with the settings that are given.
pub(crate) fn within<'py>(
    source: &Bound<'py, PyAny>,
    filesystem: Option<Filesystem>,
    storage_options: Option<StorageOptions>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = source.py();
    let Some(options) = storage_options else {
        return Ok(filesystem.map(|own| own.into_bound(py)));
    };
    let found = py
        .import(REMOTE)?
        .call_method1("within", (source, filesystem, options))?;
    Ok((!found.is_none()).then_some(found))
}

/// Opens a file by its URI, or by its path or URI within `filesystem`.
pub(crate) fn open(
    source: &Bound<'_, PyAny>,
    filesystem: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Arc<dyn Source>, PathBuf)> {
    let module = source.py().import(REMOTE)?;
    opened(&module.call_method1("open_remote", (source, filesystem))?)
}

/// What `object` reads if it is a file elsewhere that is open already.
pub(crate) fn already_open(
    object: &Bound<'_, PyAny>,
) -> PyResult<Option<(Arc<dyn Source>, PathBuf)>> {
    let class = object.py().import(REMOTE)?.getattr("RemoteFile")?;
    match object.is_instance(class.cast::<PyType>()?)? {
        true => opened(object).map(Some),
        false => Ok(None),
    }
}

fn opened(file: &Bound<'_, PyAny>) -> PyResult<(Arc<dyn Source>, PathBuf)> {
    static AT_EXIT: PyOnceLock<()> = PyOnceLock::new();
    let py = file.py();
    // Now, and not on import: what is registered later is called earlier, so the store's client is still there.
    AT_EXIT.get_or_try_init(py, || {
        let end = wrap_pyfunction!(end_reading, py)?;
        py.import("atexit")?.call_method1("register", (end,))?;
        Ok::<_, PyErr>(())
    })?;
    let object = RemoteObject::new(file)?;
    let name = object.name.clone();
    let file = RemoteFile {
        name: name.clone(),
        ahead: ReadAhead::new(Arc::new(object)),
        forks: forks(),
    };
    Ok((Arc::new(file), name))
}

/// A file elsewhere, read ahead. Only the process that opened it reads it: a fork takes along neither its connections nor the
/// threads that read ahead.
struct RemoteFile {
    ahead: ReadAhead,
    name: PathBuf,
    forks: u64,
}

impl RemoteFile {
    fn check_process(&self, action: impl FnOnce() -> String) -> Result<()> {
        if self.forks == forks() {
            return Ok(());
        }
        let error = "the connections of a file elsewhere do not outlive a fork of the process: open the file again here";
        Err(failed(
            self.path(),
            action(),
            PyRuntimeError::new_err(error),
        ))
    }
}

impl Source for RemoteFile {
    fn len(&self) -> u64 {
        self.ahead.len()
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.name)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let len = buffer.len();
        self.check_process(|| cannot_read(offset, len))?;
        self.ahead.read_exact_at(offset, buffer)
    }

    fn beside(&self, extension: &str) -> Result<Option<Arc<dyn Source>>> {
        self.check_process(|| cannot_look(extension))?;
        self.ahead.beside(extension)
    }

    fn is_replaceable(&self) -> bool {
        true
    }

    fn confirm(&self) -> Result<()> {
        self.check_process(|| CANNOT_CONFIRM.into())?;
        self.ahead.confirm()
    }
}

const CANNOT_CONFIRM: &str = "cannot tell whether it is still the file that was opened";

fn cannot_look(extension: &str) -> String {
    format!("cannot look for the .{extension} beside it")
}

/// A `seglake.stores.RemoteFile`. Any thread reads from it, several at a time.
struct RemoteObject {
    object: Py<PyAny>,
    name: PathBuf,
    len: u64,
    reads: Mutex<Reads>,
}

/// What was read, and of how much of that it is certain that it is of one file.
#[derive(Clone, Copy, Default)]
struct Reads {
    count: u64,
    confirmed: u64,
}

impl RemoteObject {
    fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            name: object.getattr("name")?.extract()?,
            len: object.getattr("size")?.extract()?,
            object: object.clone().unbind(),
            reads: Mutex::default(),
        })
    }

    /// Calls one of the object's methods.
    fn call<T>(&self, work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> PyResult<T> {
        let _until_then = Reading::begin()?;
        attached(|py| work(self.object.bind(py)))
    }
}

impl Source for RemoteObject {
    fn len(&self) -> u64 {
        self.len
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.name)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let len = buffer.len();
        let done = self.call(|object| {
            let bytes = object.call_method1("read_at", (offset, len))?;
            copy(&bytes, buffer)
        });
        done.map_err(|error| failed(self.path(), cannot_read(offset, len), error))?;
        let mut reads = lock(&self.reads);
        reads.count += 1;
        if reads.count == 1 && len as u64 == self.len {
            // What came in one answer is of one file.
            reads.confirmed = 1;
        }
        Ok(())
    }

    fn beside(&self, extension: &str) -> Result<Option<Arc<dyn Source>>> {
        let found = self.call(|object| {
            let beside = object.call_method1("beside", (extension,))?;
            match beside.is_none() {
                true => Ok(None),
                false => Ok(Some(opened(&beside)?.0)),
            }
        });
        found.map_err(|error| failed(self.path(), cannot_look(extension), error))
    }

    fn is_replaceable(&self) -> bool {
        true
    }

    fn confirm(&self) -> Result<()> {
        // What is read while the store is asked is not of what it confirms.
        let Reads { count, confirmed } = *lock(&self.reads);
        if count == confirmed {
            return Ok(());
        }
        let done = self.call(|object| object.call_method0("confirm").map(drop));
        done.map_err(|error| failed(self.path(), CANNOT_CONFIRM, error))?;
        let mut reads = lock(&self.reads);
        reads.confirmed = reads.confirmed.max(count);
        Ok(())
    }
}
