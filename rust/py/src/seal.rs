//! `seal`.

use pyo3::prelude::*;
use seglake::Error;
use seglake::verbs::{self, SealOptions};

use crate::destination::{Destination, ERROR, Existing};
use crate::error::{OVERWRITE, raise_new};
use crate::key::KeyArgument;
use crate::keywords::with_keywords;
use crate::open::on_damage;
use crate::read_options::{OpenSource, ReadArguments};
use crate::remote::{Filesystem, StorageOptions};
use crate::report::Report;
use crate::verify::{Progress, teller};

with_keywords! {
/// Makes a sealed segment of an active one, and returns what was found in the source. Each record keeps the checksum that it
/// has, which is never computed anew; the new file is read back before it gets its name.
///
/// trailer: whether the checksums are written after the data.
/// if_exists: "error" raises FileExistsError where there is a file; "overwrite" replaces it once the new one is complete.
/// on_damage: "raise" seals nothing of a damaged file, "skip" what is sound of it: the report tells of the rest.
/// progress: called as in `verify`, with bytes of the source. The other arguments are as in `open`.
///
/// Raises DamageError, WrongKeyError (whatever `on_damage` says), ValueError where the source is no active segment, OSError.
///
/// >>> seglake.seal("orders.active", "new.sealed").records
/// 3
fn seal(source: &Bound<'_, PyAny>, destination: Destination; SealArguments<'a> {
    trailer: bool = true,
    on_damage: &'a str = "raise",
    key: Option<KeyArgument> = None,
    if_exists: Existing = ERROR,
    progress: Option<Progress> = None,
    filesystem: Option<Filesystem> = None,
    storage_options: Option<StorageOptions> = None,
}) -> Report;
}

impl SealArguments<'_> {
    fn seal(self, source: &Bound<'_, PyAny>, destination: Destination) -> PyResult<Report> {
        let py = source.py();
        let on_damage = on_damage(self.on_damage)?;
        let arguments = ReadArguments::new(None, self.key, None).within(
            source,
            self.filesystem,
            self.storage_options,
        )?;
        let OpenSource {
            source, options, ..
        } = arguments.give(source)?;
        let options = options.on_damage(on_damage);
        let seal = SealOptions::default()
            .trailer(self.trailer)
            .if_exists(self.if_exists.0);
        let tell = teller(self.progress, source.len());
        py.detach(|| verbs::seal(source, &options, destination.as_ref(), &seal, tell))
            .map(Report)
            .map_err(|error| raise_new(py, with_advice(error), OVERWRITE))
    }
}

/// The error for a file whose format cannot be told, which `seal` takes no name of.
fn with_advice(error: Error) -> Error {
    match error {
        Error::Format { path, message, .. } => Error::Format {
            path,
            message,
            next: Some("only an active segment is sealed"),
        },
        error => error,
    }
}
