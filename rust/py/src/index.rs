//! `index`, and `Index`: the index of a chunked file.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use seglake::OrBug;
use seglake::format::chunked;
use seglake::format::{IndexSource, Options, detect};
use seglake::source::{FileSource, Source, open_regular};
use seglake::verbs;

use crate::destination::{Destination, ERROR, Existing};
use crate::error::{OVERWRITE, detached, raise_new};
use crate::keywords::with_keywords;
use crate::ledger::Ledger;
use crate::options::Named;
use crate::passes::about;
use crate::read_options::ReadArguments;
use crate::remote::{Filesystem, StorageOptions};
use crate::typed::typed;
use crate::verify::{Progress, teller};

/// The index of a chunked file, as it is on disk and as far as it agrees with the file.
///
/// >>> index = seglake.open("orders.chunks").index()
/// >>> len(index), index.ok
/// (2, True)
#[pyclass(frozen, module = "seglake.types")]
pub(crate) struct Index {
    path: Option<PathBuf>,
    index: chunked::Index,
}

impl Index {
    /// Reads an index, held against its log.
    pub(crate) fn read(
        log: &dyn Source,
        index: &dyn Source,
        options: &Options,
    ) -> seglake::Result<Self> {
        Ok(Self {
            path: index.path().map(Path::to_path_buf),
            index: chunked::Index::read(log, index, options)?,
        })
    }

    /// The index that `options` say a log has; `None` where it has none.
    pub(crate) fn of(log: &dyn Source, options: &Options) -> seglake::Result<Option<Self>> {
        let index = match &options.index {
            IndexSource::Source(index) => Some(index.clone()),
            IndexSource::Beside => log.beside(chunked::INDEX_EXTENSION)?,
            _ => None,
        };
        let read = |index: Arc<dyn Source>| Self::read(log, &*index, options);
        index.map(read).transpose()
    }
}

#[pymethods]
impl Index {
    /// The index's path; None where it is no file.
    ///
    /// >>> orders = seglake.open("orders.chunks")
    /// >>> orders.index().path
    /// 'orders.index'
    #[getter]
    fn path(&self) -> Option<&OsStr> {
        self.path.as_deref().map(Path::as_os_str)
    }

    /// The index's length in bytes.
    ///
    /// >>> orders = seglake.open("orders.chunks")
    /// >>> orders.index().nbytes
    /// 40
    #[getter]
    const fn nbytes(&self) -> u64 {
        self.index.size
    }

    /// Whether all of it agrees with the file.
    ///
    /// >>> orders = seglake.open("orders.chunks")
    /// >>> orders.index().ok
    /// True
    #[getter]
    fn ok(&self) -> bool {
        self.index.spans.iter().all(|span| span.cause.is_none())
    }

    /// The items that hold, as IndexItems.
    ///
    /// >>> orders = seglake.open("orders.chunks")
    /// >>> orders.index().items
    /// [IndexItem(offset=0, position=0), IndexItem(offset=2, position=128)]
    #[getter]
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let items = self.index.items.iter();
        items.map(|item| index_item(py, item)).collect()
    }

    /// The IndexItem whose chunk would be the last of those after the end of the file; None where there are none. It is there if
    /// the file was cut off, or if the index is that of another one: then the index is the only list of what is missing.
    ///
    /// >>> orders = seglake.open("orders.chunks")
    /// >>> orders.index().beyond is None
    /// True
    #[getter]
    fn beyond<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let item = self.index.beyond.as_ref();
        item.map(|item| index_item(py, item)).transpose()
    }

    /// The index's own ranges as Spans in order; an item that holds is a `record`.
    ///
    /// >>> orders = seglake.open("orders.chunks")
    /// >>> [span.kind for span in orders.index().ledger()]
    /// ['record', 'record']
    fn ledger(&self) -> Ledger {
        Ledger::of_index(
            self.path.as_deref(),
            self.index.size,
            self.index.spans.clone(),
        )
    }

    fn __len__(&self) -> usize {
        self.index.items.len()
    }

    fn __repr__(&self) -> String {
        let state = if self.ok() { "ok" } else { "damaged" };
        format!(
            "Index({}, nbytes={}, items={}, {state})",
            about(self.path.as_deref(), "index"),
            self.index.size,
            self.index.items.len(),
        )
    }
}

fn index_item<'py>(py: Python<'py>, item: &chunked::Item) -> PyResult<Bound<'py, PyAny>> {
    typed(py, "IndexItem", (item.offset, item.file_offset))
}

with_keywords! {
/// Builds the index of a chunked file anew, from its sound chunks, and returns it. It appears when it is complete: at `destination`,
/// or beside the file with the extension `index`.
///
/// if_exists: what is done with an index that exists already. "error" raises FileExistsError; "overwrite" replaces it once the new
///     one is complete, unless it knows more than the file has (`Index.beyond`).
/// progress: called as in `verify`.
/// format, options, filesystem, storage_options: as in `open`. The index of a file elsewhere needs a `destination`.
///
/// Raises ValueError where the source is of another format, has no path on this machine and none is given, or would be replaced itself;
/// and where an existing index knows more than the file has. OSError; LimitError. Damage of the file is no error: chunks that are
/// damaged have no item.
///
/// >>> seglake.index("orders.chunks", "new.index").items
/// [IndexItem(offset=0, position=0), IndexItem(offset=2, position=128)]
fn index(source: &Bound<'_, PyAny>, destination: Option<Destination> = None; IndexArguments<'a> {
    if_exists: Existing = ERROR,
    format: Option<&'a str> = None,
    options: Option<Named> = None,
    progress: Option<Progress> = None,
    filesystem: Option<Filesystem> = None,
    storage_options: Option<StorageOptions> = None,
}) -> Index;
}

impl IndexArguments<'_> {
    fn index(self, source: &Bound<'_, PyAny>, destination: Option<Destination>) -> PyResult<Index> {
        let py = source.py();
        let is_named = self.format.is_some();
        let format = self.format.or(Some(chunked::FORMAT.name));
        let arguments = ReadArguments::new(format, None, self.options).within(
            source,
            self.filesystem,
            self.storage_options,
        )?;
        let (given, format) = arguments.open(source)?;
        let (source, options) = (given.source, given.options);
        // One that cannot be told may be chunked: it is damaged at its beginning, or empty.
        let found = match is_named {
            true => Some(format),
            false => detached(py, || detect(&*source, &options))?.format,
        };
        // No chunk would be found in another one, so an index of nothing would be written.
        if let Some(found) = found.filter(|found| **found != chunked::FORMAT) {
            return Err(PyValueError::new_err(format!(
                "expected a chunked file, found {}: only chunked files have an index beside them",
                found.name
            )));
        }
        let destination = destination.map(|path| path.0);
        if given.is_elsewhere && destination.is_none() {
            return Err(PyValueError::new_err(
                "the file is not on this machine, so its index cannot be written beside it: name a destination for it",
            ));
        }
        let tell = teller(self.progress, source.len());
        let built = py.detach(|| {
            let destination = destination.or_else(|| source.path().and_then(chunked::beside));
            verbs::index(
                source.clone(),
                &options,
                destination.as_deref(),
                self.if_exists.0,
                tell,
            )?;
            let destination =
                destination.or_bug("a path, without which building an index fails")?;
            let file = FileSource::new(open_regular(&destination)?, &destination)?;
            Index::read(&*source, &file, &options)
        });
        built.map_err(|error| raise_new(py, error, OVERWRITE))
    }
}
