//! `seal`.

use pyo3::prelude::*;
use seglake::verbs::{self, SealOptions};

use crate::destination::Destination;
use crate::error::raise;
use crate::key::KeyArgument;
use crate::open::is_strict;
use crate::read_options::{Opened, ReadArguments};
use crate::report::Report;
use crate::verify::teller;

/// Makes a sealed segment of an active one, and returns what was found in the source. Each record keeps the checksum that it
/// has, which is never computed anew; the new file is read back before it gets its name, and can be read by its owner alone.
///
/// trailer: whether the checksums are written behind the data.
/// overwrite: replace an existing file once the new one is complete. Otherwise it raises FileExistsError.
/// on_damage: "raise" seals nothing of a damaged file, "skip" what is sound of it: the report tells of the rest.
/// progress: called as in `verify`, with bytes of the source. The other arguments are as in `open`.
///
/// Raises DamageError, WrongKeyError (whatever `on_damage` says), ValueError where the source is no active segment, OSError.
#[pyfunction]
#[pyo3(signature = (
    source, path, *, trailer=true, on_damage="raise", key=None, overwrite=false, progress=None, filesystem=None,
))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments")]
pub(crate) fn seal(
    source: &Bound<'_, PyAny>,
    path: Destination,
    trailer: bool,
    on_damage: &str,
    key: Option<KeyArgument>,
    overwrite: bool,
    progress: Option<Py<PyAny>>,
    filesystem: Option<&Bound<'_, PyAny>>,
) -> PyResult<Report> {
    let py = source.py();
    let strict = is_strict(on_damage)?;
    let arguments = ReadArguments {
        key,
        filesystem,
        ..ReadArguments::default()
    };
    let Opened {
        source, options, ..
    } = arguments.open(source)?;
    let options = options.strict(strict);
    let seal = SealOptions::default().trailer(trailer).overwrite(overwrite);
    let tell = teller(progress, source.len());
    py.detach(|| verbs::seal(source, &options, path.as_ref(), &seal, tell))
        .map(Report)
        .map_err(|error| raise(py, error))
}
