//! The keyword arguments of reading that several functions share.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use seglake::columns::Limits;
use seglake::format::{Format, IndexSource, Options, by_name, resolve};
use seglake::source::{CappedSource, Source};

use crate::error::{detached, raise};
use crate::interrupt::signals;
use crate::key::{self, KeyArgument};
use crate::listed::ListedSegment;
use crate::options::{Named, Reading};
use crate::parity::SidecarArgument;
use crate::remote::{Filesystem, StorageOptions, within};
use crate::source::{Given, given_in};

/// What says how a file is to be understood; `None` is the default.
#[derive(Default)]
pub(crate) struct ReadArguments<'a, 'py> {
    format: Option<&'a str>,
    key: Option<KeyArgument>,
    options: Option<Named>,
    general: bool,
    mmap: bool,
    filesystem: Option<Bound<'py, PyAny>>,
    sidecar: Option<SidecarArgument>,
}

/// An open source.
pub(crate) struct OpenSource {
    pub(crate) source: Arc<dyn Source>,
    /// The path to open it by again, if it has one.
    pub(crate) path: Option<PathBuf>,
    pub(crate) is_elsewhere: bool,
    /// With the format as far as it is named, listed or told. Of a segment of a log the filter keeps what was not there when it was
    /// listed from being read.
    pub(crate) options: Options,
    /// The bounds of a batch.
    pub(crate) limits: Limits,
}

impl<'a, 'py> ReadArguments<'a, 'py> {
    pub(crate) fn new(
        format: Option<&'a str>,
        key: Option<KeyArgument>,
        options: Option<Named>,
    ) -> Self {
        Self {
            format,
            key,
            options,
            ..Self::default()
        }
    }

    /// The options of all formats may be among them.
    pub(crate) fn general(mut self) -> Self {
        self.general = true;
        self
    }

    pub(crate) fn mmap(self, mmap: bool) -> Self {
        Self { mmap, ..self }
    }

    /// The parity sidecar to read it by.
    pub(crate) fn sidecar(self, sidecar: Option<SidecarArgument>) -> Self {
        Self { sidecar, ..self }
    }

    /// Where the source is, if not on this machine or at a URI.
    pub(crate) fn within(
        mut self,
        source: &Bound<'py, PyAny>,
        filesystem: Option<Filesystem>,
        storage_options: Option<StorageOptions>,
    ) -> PyResult<Self> {
        self.filesystem = within(source, filesystem, storage_options)?;
        Ok(self)
    }

    /// The options, the format as far as it is named, and the bounds of a batch.
    pub(crate) fn options(&self, py: Python<'_>) -> PyResult<(Options, Limits)> {
        let format = self.format.map(by_name).transpose();
        let format = format.map_err(|error| raise(py, error))?;
        let given = Reading::new(py, self.options.as_ref(), self.general, format)?;
        let keys = key::keys(py, self.key.as_ref())?;
        let options = given
            .options
            .format(format.map(|format| &**format))
            .keys(keys)
            .index(self.index_source(given.index.as_ref())?)
            .interrupt(signals());
        Ok((options, given.limits))
    }

    fn index_source(&self, index: Option<&Bound<'_, PyAny>>) -> PyResult<IndexSource> {
        let Some(index) = index else {
            return Ok(IndexSource::Beside);
        };
        match index.cast::<PyBool>() {
            Ok(wanted) if wanted.is_true() => Ok(IndexSource::Beside),
            Ok(_) => Ok(IndexSource::None),
            Err(_) => {
                let index = given_in(index, self.filesystem.as_ref())?.open(index.py(), false)?;
                Ok(IndexSource::Source(index))
            }
        }
    }

    /// Opens a source, to be read by the sidecar that the arguments name or that is beside it. That is opened before it.
    fn give_by_sidecar(&self, object: &Bound<'_, PyAny>) -> PyResult<OpenSource> {
        let Some(named) = &self.sidecar else {
            return self.give(object);
        };
        let sidecar = named.open(object, self.filesystem.as_ref())?;
        let mut given = self.give(object)?;
        if let Some(sidecar) = sidecar {
            given.source = named.apply(given.source, sidecar, object.py())?;
        }
        Ok(given)
    }

    /// Opens a source to read what it has since it was read: at most so many bytes.
    pub(crate) fn give_since(
        &self,
        object: &Bound<'_, PyAny>,
        size: Option<u64>,
    ) -> PyResult<OpenSource> {
        let mut given = self.give_by_sidecar(object)?;
        if let Some(size) = size {
            given.source = Arc::new(CappedSource::new(given.source, size));
        }
        Ok(given)
    }

    /// Opens a source, and tells its format where it is not named. The options are strict, and have the format.
    pub(crate) fn open(
        &self,
        object: &Bound<'_, PyAny>,
    ) -> PyResult<(OpenSource, &'static Format)> {
        let py = object.py();
        let mut given = self.give_by_sidecar(object)?;
        let format = detached(py, || resolve(&*given.source, &given.options))?;
        given.options = given.options.format(format);
        Ok((given, format))
    }

    /// Opens a source.
    pub(crate) fn give(&self, object: &Bound<'_, PyAny>) -> PyResult<OpenSource> {
        let py = object.py();
        let (options, limits) = self.options(py)?;
        if let Ok(segment) = object.cast::<ListedSegment>() {
            let opened = segment.get().open(py, &options)?;
            return Ok(OpenSource {
                source: opened.source,
                is_elsewhere: false,
                path: None,
                options: options.format(opened.format).filter(opened.filter),
                limits,
            });
        }
        let given = given_in(object, self.filesystem.as_ref())?;
        if self.mmap && !matches!(given, Given::Path(_)) {
            return Err(PyValueError::new_err(
                "memory_map=True needs a path: a buffer is in memory already, and a file object or a file elsewhere cannot be mapped",
            ));
        }
        Ok(OpenSource {
            source: given.open(py, self.mmap)?,
            is_elsewhere: given.is_elsewhere(),
            path: given.into_path(),
            options,
            limits,
        })
    }
}

/// The most threads that read unless more are asked for: each has memory for a few batches.
const MOST_THREADS: usize = 8;

/// How many threads to read with; `None` is one for each core, as far as these help.
pub(crate) fn thread_count(threads: Option<usize>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
    threads.unwrap_or_else(|| cores().min(MOST_THREADS))
}
