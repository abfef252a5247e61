//! `recover` and `undo_recover`.

use std::path::{Path, PathBuf};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use seglake::format::Options;
use seglake::verbs::{self, RecoverOptions};

use crate::destination::{Destination, ERROR, Existing};
use crate::error::{OVERWRITE, detached, raise_new};
use crate::interrupt::signals;
use crate::key::KeyArgument;
use crate::keywords::with_keywords;
use crate::options::Named;
use crate::read_options::ReadArguments;
use crate::remote::{Filesystem, StorageOptions, within};
use crate::report::Report;
use crate::source::given_in;
use crate::typed::result;
use crate::verify::{Progress, teller, telling};

/// A `seglake.types.Recovered`.
type Recovered = Py<PyAny>;

with_keywords! {
/// Writes the sound records of a damaged file to a new one of the same format, with the checksums that they had, and every other
/// byte to a quarantine, with a manifest from which `undo_recover` makes the file again. The source is never touched.
///
/// The new file is read back, and the damaged one put together again from it and the quarantine, before any of them appears:
/// then all do, synced, or none does. A sound file is copied as it is.
///
/// quarantine: where the bytes go that are not in the new file; the manifest gets `.manifest.jsonl` appended to its name. None: `destination`
///     with `.quarantine` appended, and only if there are any.
/// if_exists: "error" raises FileExistsError where there is a file; "overwrite" replaces it once the new one is complete.
/// force: recover also a file in which nothing checks, which is probably read with a wrong key: all of it is put aside.
/// renumber: where a message is lost that others follow, give those other numbers, and rewrite what refers to them (oplog).
/// progress: called as in `verify`. The other arguments are as there.
///
/// Raises ValueError where nothing checks, where messages would have to be renumbered or cannot be, and where two of the files
/// are the same; what `verify` raises; OSError where a file cannot be written.
///
/// >>> recovered = seglake.recover("damaged.active", "sound.active")
/// >>> recovered.records, recovered.quarantined_bytes
/// (2, 51)
/// >>> seglake.verify("sound.active").ok
/// True
fn recover(source: &Bound<'_, PyAny>, destination: Destination; RecoverArguments<'a> {
    quarantine: Option<Destination> = None,
    renumber: bool = false,
    force: bool = false,
    format: Option<&'a str> = None,
    key: Option<KeyArgument> = None,
    if_exists: Existing = ERROR,
    options: Option<Named> = None,
    progress: Option<Progress> = None,
    filesystem: Option<Filesystem> = None,
    storage_options: Option<StorageOptions> = None,
}) -> Recovered;
}

impl RecoverArguments<'_> {
    fn recover(self, source: &Bound<'_, PyAny>, destination: Destination) -> PyResult<Recovered> {
        let py = source.py();
        // No map: where the disk is failing it would end the process.
        let arguments = ReadArguments::new(self.format, self.key, self.options).within(
            source,
            self.filesystem,
            self.storage_options,
        )?;
        let (given, _) = arguments.open(source)?;
        let (source, options) = (given.source, given.options);
        let recovery = RecoverOptions::default()
            .quarantine(self.quarantine.map(|quarantine| quarantine.0))
            .if_exists(self.if_exists.0)
            .force(self.force)
            .renumber(self.renumber);
        let tell = teller(self.progress, source.len());
        let recovered = py
            .detach(|| verbs::recover(source, &options, destination.as_ref(), &recovery, tell))
            .map_err(|error| raise_new(py, error, OVERWRITE))?;
        let summary = &recovered.output.summary;
        let fields = (
            destination.0.as_os_str(),
            recovered.is_lossy(),
            summary.bytes,
            summary.records,
            recovered.carried,
            recovered.quarantined,
            recovered.quarantine.as_deref().map(Path::as_os_str),
            recovered.manifest.as_deref().map(Path::as_os_str),
            recovered.index.as_deref().map(Path::as_os_str),
            Report(recovered.source),
        );
        result(py, "Recovered", fields)
    }
}

with_keywords! {
/// Writes the file again that `recover` made `recovered` of, bit for bit, and returns its length in bytes.
///
/// Both files are held against the manifest before anything is written, and the result before it gets its name.
///
/// quarantine: the file in which the other bytes are. None: `recovered` with `.quarantine` appended to its name; a recovered file
///     that is elsewhere needs it.
/// if_exists: "error" raises FileExistsError where there is a file; "overwrite" replaces it once the new one is complete.
/// progress: called as in `verify`, with the bytes that are read, twice.
/// filesystem, storage_options: as in `open`; `recovered` is then within it.
///
/// Raises FormatError where the manifest is none, or the files are not those that it is about; ValueError; OSError.
///
/// >>> recovered = seglake.recover("damaged.active", "sound.active")
/// >>> seglake.undo_recover("sound.active", "as-it-was.active") == seglake.verify("damaged.active").nbytes
/// True
fn undo_recover(recovered: &Bound<'_, PyAny>, destination: Destination; UndoArguments {
    quarantine: Option<PathBuf> = None,
    if_exists: Existing = ERROR,
    progress: Option<Progress> = None,
    filesystem: Option<Filesystem> = None,
    storage_options: Option<StorageOptions> = None,
}) -> u64;
}

impl UndoArguments {
    fn undo_recover(self, recovered: &Bound<'_, PyAny>, destination: Destination) -> PyResult<u64> {
        let py = recovered.py();
        let within = within(recovered, self.filesystem, self.storage_options)?;
        let given = given_in(recovered, within.as_ref())?;
        if given.is_elsewhere() && self.quarantine.is_none() {
            return Err(PyValueError::new_err(
                "the recovered file is not on this machine: name its quarantine, which is",
            ));
        }
        let source = given.open(py, false)?;
        let options = Options::default().interrupt(signals());
        let tell = telling(self.progress);
        detached(py, || {
            let quarantine = self.quarantine.as_deref();
            verbs::undo_recover(
                &source,
                quarantine,
                destination.as_ref(),
                self.if_exists.0,
                &options,
                tell,
            )
        })
    }
}
