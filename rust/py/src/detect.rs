//! `detect`.

use pyo3::prelude::*;
use seglake::format;

use crate::error::detached;
use crate::key::KeyArgument;
use crate::keywords::with_keywords;
use crate::options::Named;
use crate::read_options::ReadArguments;
use crate::remote::{Filesystem, StorageOptions, within};
use crate::source::given_in;
use crate::typed::result;

/// A `seglake.types.Detection`.
type Detection = Py<PyAny>;

with_keywords! {
/// Tells a file's format by its content, and by its extension where the content does not tell. Formats without a magic number
/// (active, oplog, tfrecord) are told by their first records; an oplog's are decoded as `dialect` among the `options` says, which are as in `open`.
///
/// Raises OSError where the file cannot be read.
///
/// >>> seglake.detect("orders.sealed").format
/// 'sealed'
fn detect(source: &Bound<'_, PyAny>; DetectArguments {
    key: Option<KeyArgument> = None,
    options: Option<Named> = None,
    filesystem: Option<Filesystem> = None,
    storage_options: Option<StorageOptions> = None,
}) -> Detection;
}

impl DetectArguments {
    fn detect(self, source: &Bound<'_, PyAny>) -> PyResult<Detection> {
        let py = source.py();
        let within = within(source, self.filesystem, self.storage_options)?;
        let arguments = ReadArguments::new(None, self.key, self.options).general();
        let (options, ..) = arguments.options(py)?;
        let source = given_in(source, within.as_ref())?.open(py, false)?;
        let found = detached(py, || format::detect(&*source, &options))?;
        let confidence = match found.format {
            Some(_) if found.certain => "certain",
            Some(_) => "likely",
            None => "unknown",
        };
        let name = found.format.map(|format| format.name);
        result(py, "Detection", (name, confidence, found.reason))
    }
}
