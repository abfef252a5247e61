//! `repair`.

use std::path::Path;

use pyo3::prelude::*;
use seglake::verbs::{self, RepairOptions};

use crate::destination::{BESIDE, Destination, SidecarPath};
use crate::error::raise_new;
use crate::key::KeyArgument;
use crate::keywords::with_keywords;
use crate::options::Named;
use crate::parity;
use crate::protect::{nbytes, options_for};
use crate::report::Report;
use crate::typed::result;
use crate::verify::{Progress, teller};

/// A `seglake.parity.Repaired`.
type Repaired = Py<PyAny>;

with_keywords! {
/// Repairs a file and its parity sidecar, each from the other. New files take their places, or go to another path.
///
/// The repaired file is written to a new one and read back. Then the damaged file is renamed to `path` with `.damaged` appended, and
/// the new one gets its name, permissions and time of modification. So does the sidecar if it changes. To undo that, rename the
/// damaged file back. Nothing is written if nothing changes. For a link this is the file that it leads to. There has to be space for a
/// copy of the file. A repair that was interrupted is run again. What cannot be repaired stays as it is, and is in `damage`: `recover`
/// writes what is sound of such a file to a new one.
///
/// destination: where the repaired file goes, with its sidecar beside it; neither may be there. Then nothing else changes. None: new files take the places of the damaged ones.
/// force: repair also a file of which nothing is as it was protected, records that their own checksums prove, and a file without
///     checksums that was modified after it was protected.
/// sidecar, format: as in `protect`. progress: called as in `verify`. The other arguments are as there.
///
/// Raises ValueError where the sidecar is probably that of another file, or of an earlier state of it, and where there is a damaged file
/// of an earlier repair: move or remove it; FormatError where it is no sidecar; OSError, also where there is none, and where another
/// process writes one of the files.
///
/// >>> import shutil
/// >>> shutil.copy("orders.active", "new.active")
/// 'new.active'
/// >>> seglake.protect("new.active").change
/// 'created'
/// >>> with open("new.active", "r+b") as orders:
/// ...     orders.seek(60), orders.write(b"?")
/// (60, 1)
/// >>> seglake.repair("new.active").damaged, seglake.verify("new.active").ok
/// ('new.active.damaged', True)
fn repair(path: &Bound<'_, PyAny>; RepairArguments<'a> {
    destination: Option<Destination> = None,
    force: bool = false,
    sidecar: SidecarPath = BESIDE,
    format: Option<&'a str> = None,
    key: Option<KeyArgument> = None,
    options: Option<Named> = None,
    progress: Option<Progress> = None,
}) -> Repaired;
}

impl RepairArguments<'_> {
    fn repair(self, path: &Bound<'_, PyAny>) -> PyResult<Repaired> {
        let py = path.py();
        let path: Destination = path.extract()?;
        let (options, is_raw) = options_for(py, self.format, self.key, self.options)?;
        let repairing = RepairOptions::default()
            .destination(self.destination.map(|path| path.0))
            .force(self.force)
            .sidecar(self.sidecar.0)
            .raw(is_raw);
        let tell = teller(self.progress, nbytes(path.as_ref()));
        let repaired = py
            .detach(|| verbs::repair(path.as_ref(), &options, &repairing, tell))
            .map_err(|error| raise_new(py, error, "name another one, or move it"))?;
        let fields = (
            repaired.path.as_os_str(),
            repaired.sidecar.as_os_str(),
            repaired.outcome().as_str(),
            repaired.is_lossy(),
            parity::file_damage(py, &repaired.report)?,
            parity::sidecar_damage(py, &repaired.report)?,
            parity::worst(py, repaired.report.worst)?,
            parity::lost_ranges(py, &repaired.report)?,
            repaired.verified.map(Report),
            repaired.changed,
            repaired.damaged.as_deref().map(Path::as_os_str),
            repaired.damaged_sidecar.as_deref().map(Path::as_os_str),
        );
        result(py, "Repaired", fields)
    }
}
