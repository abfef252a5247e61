//! `protect`.

use std::path::Path;

use pyo3::prelude::*;
use seglake::format::Options;
use seglake::parity::Parameters;
use seglake::verbs::{self, ProtectOptions};

use crate::destination::{BESIDE, Destination, SidecarPath};
use crate::error::{detached, raise};
use crate::key::KeyArgument;
use crate::keywords::with_keywords;
use crate::options::Named;
use crate::read_options::ReadArguments;
use crate::report::Report;
use crate::typed::result;
use crate::verify::{Progress, teller};

/// The name of a format for files that have none of the others.
const RAW: &str = "raw";

/// The options that say what a file is, and whether it has no format.
pub(crate) fn options_for(
    py: Python<'_>,
    format: Option<&str>,
    key: Option<KeyArgument>,
    options: Option<Named>,
) -> PyResult<(Options, bool)> {
    let is_raw = format == Some(RAW);
    let format = format.filter(|_| !is_raw);
    let (options, _) = ReadArguments::new(format, key, options).options(py)?;
    Ok((options, is_raw))
}

/// The length of a file, for progress. What cannot be read is raised later.
pub(crate) fn nbytes(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// A `seglake.parity.Protected`.
type Protected = Py<PyAny>;

with_keywords! {
/// Makes the parity sidecar of a file, from which `repair` restores damaged bytes, or extends it if the file has grown. The file
/// itself is never written to.
///
/// First the file is verified by its format; a damaged one is refused. All of it is covered, but for unused space and a torn tail
/// of a file that is appended to. What is covered must not change afterwards: append to the file, and protect it again. That costs
/// what was appended: complete bands that are covered are not read, so damage there is left to `verify`.
///
/// profile: data and parity blocks of a group: "128+8", "128+4", "128+16" or "128+8-long". None: that of an existing sidecar,
///     "128+8" for a new one.
/// as_it_is: begin a new sidecar for the file as it is, damaged or not. An existing one is replaced.
/// lazy: leave the last 16 MiB as they are until what is not covered of them is 1/16 of what is.
/// sidecar: the path of the sidecar. "auto": `path` with `.par` appended; for a link without one, that of the file that it leads to.
/// format: as in `verify`, or "raw" for a file of any other kind: it is not verified, and covered whole.
/// progress: called as in `verify`. The other arguments are as there.
///
/// Raises DamageError where the file is damaged, by its format or by what the sidecar covers; WrongKeyError; FormatError where the
/// format cannot be told, or the sidecar is none; ValueError where the sidecar has another profile; OSError, also where another
/// process writes the sidecar.
///
/// >>> seglake.protect("orders.active").change
/// 'created'
/// >>> seglake.protect("orders.active").change
/// 'unchanged'
fn protect(path: &Bound<'_, PyAny>; ProtectArguments<'a> {
    profile: Option<&'a str> = None,
    as_it_is: bool = false,
    lazy: bool = false,
    sidecar: SidecarPath = BESIDE,
    format: Option<&'a str> = None,
    key: Option<KeyArgument> = None,
    options: Option<Named> = None,
    progress: Option<Progress> = None,
}) -> Protected;
}

impl ProtectArguments<'_> {
    fn protect(self, path: &Bound<'_, PyAny>) -> PyResult<Protected> {
        let py = path.py();
        let path: Destination = path.extract()?;
        let (options, is_raw) = options_for(py, self.format, self.key, self.options)?;
        let parameters = self.profile.map(str::parse::<Parameters>).transpose();
        let parameters = parameters.map_err(|error| raise(py, error))?;
        let protection = ProtectOptions::default()
            .sidecar(self.sidecar.0)
            .parameters(parameters)
            .as_it_is(self.as_it_is)
            .lazy(self.lazy)
            .raw(is_raw);
        let tell = teller(self.progress, nbytes(path.as_ref()));
        let protected = detached(py, || {
            verbs::protect(path.as_ref(), &options, &protection, tell)
        })?;
        let fields = (
            path.0.as_os_str(),
            protected.sidecar.as_os_str(),
            protected.change.as_str(),
            protected.healed,
            protected.parameters.to_string(),
            protected.size,
            protected.covered,
            protected.sidecar_bytes,
            protected.verified_from,
            protected.report.map(Report),
        );
        result(py, "Protected", fields)
    }
}
