//! `coverage` and `verify_parity`: a file of any kind and its parity sidecar.

use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;
use seglake::format::Options;
use seglake::parity::{Coverage, Files};
use seglake::source::Source;
use seglake::verbs;

use crate::error::detached;
use crate::interrupt::signals;
use crate::keywords::with_keywords;
use crate::parity::{AUTO, SidecarArgument};
use crate::remote::{Filesystem, StorageOptions, within};
use crate::source::given_in;
use crate::typed::typed;
use crate::verify::{Progress, teller};

/// A `seglake.parity.Coverage`.
type FileCoverage = Py<PyAny>;

/// A `seglake.parity.ParityReport`.
type ParityReport = Py<PyAny>;

with_keywords! {
/// What the parity sidecar of a file covers, by the sidecar's heads alone: neither is verified, which `verify` does. None where
/// there is no sidecar. `source` and `sidecar` are as there.
///
/// Raises OSError where the file cannot be read, or the sidecar may not be.
///
/// >>> seglake.protect("orders.active").change
/// 'created'
/// >>> coverage = seglake.parity.coverage("orders.active")
/// >>> coverage.profile, coverage.state, coverage.covered_bytes == coverage.nbytes
/// ('128+8', 'covered', True)
fn coverage(source: &Bound<'_, PyAny>; CoverageArguments {
    sidecar: Option<SidecarArgument> = AUTO,
    filesystem: Option<Filesystem> = None,
    storage_options: Option<StorageOptions> = None,
}) -> Option<FileCoverage>;
}

impl CoverageArguments {
    fn coverage(self, source: &Bound<'_, PyAny>) -> PyResult<Option<FileCoverage>> {
        let py = source.py();
        let within = within(source, self.filesystem, self.storage_options)?;
        let Some((file, sidecar)) = opened(source, self.sidecar, within.as_ref())? else {
            return Ok(None);
        };
        let found = detached(py, || Coverage::read(Files::new(&*file, &*sidecar)))?;
        let path = sidecar.path().map(Path::as_os_str);
        let profile = found.map(|found| found.set.parameters.to_string());
        let covered = found.map(|found| found.covered);
        let fields = (path, sidecar.len(), profile, covered, file.len());
        Ok(Some(typed(py, "Coverage", fields)?.unbind()))
    }
}

with_keywords! {
/// Verifies a file of any kind by its parity sidecar, and the sidecar by the file. Unlike `verify` it does not look at the format
/// of the file, so it is for what was protected as "raw". None where there is no sidecar. The arguments are as there.
///
/// Raises OSError where the file cannot be read, or the sidecar may not be.
///
/// >>> seglake.protect("orders.active").change
/// 'created'
/// >>> seglake.parity.verify("orders.active").outcome
/// 'sound'
fn verify_parity(source: &Bound<'_, PyAny>; VerifyParityArguments {
    sidecar: Option<SidecarArgument> = AUTO,
    progress: Option<Progress> = None,
    filesystem: Option<Filesystem> = None,
    storage_options: Option<StorageOptions> = None,
}) -> Option<ParityReport>;
}

impl VerifyParityArguments {
    fn verify_parity(self, source: &Bound<'_, PyAny>) -> PyResult<Option<ParityReport>> {
        let py = source.py();
        let within = within(source, self.filesystem, self.storage_options)?;
        let Some((file, sidecar)) = opened(source, self.sidecar, within.as_ref())? else {
            return Ok(None);
        };
        let options = Options::default().interrupt(signals());
        let tell = teller(self.progress, file.len());
        let report = detached(py, || verbs::verify_parity(file, sidecar, &options, tell))?;
        Ok(Some(crate::parity::report(py, &report)?.unbind()))
    }
}

type Pair = (Arc<dyn Source>, Arc<dyn Source>);

/// A file and its sidecar, if it has one.
fn opened(
    source: &Bound<'_, PyAny>,
    sidecar: Option<SidecarArgument>,
    filesystem: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<Pair>> {
    // A file that is not there has no sidecar either, and that is an error.
    let file = given_in(source, filesystem)?.open(source.py(), false)?;
    let sidecar = sidecar.map(|sidecar| sidecar.open(source, filesystem));
    let sidecar = sidecar.transpose()?.flatten();
    Ok(sidecar.map(|sidecar| (file, sidecar)))
}
