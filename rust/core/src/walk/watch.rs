//! What a file is checked by that is read with a parity sidecar.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use super::{Hits, UnprovenPolicy, Walk};
use crate::error::{Error, Result};
use crate::own::Own;
use crate::parity::{Refused, Report};
use crate::source::Source;

/// What a file is checked by that is read [with a parity sidecar](crate::format::with_parity). The [`Options`](super::Options) that it
/// is read with have it.
pub trait ParityCheck: Own + Send + Sync + Debug {
    /// The sidecar, if it has a name.
    fn sidecar(&self) -> Option<&Path>;

    /// The file as it is.
    fn file(&self) -> &Arc<dyn Source>;

    /// Refuses a source that is not the one that was opened with the sidecar.
    ///
    /// # Errors
    /// [`Error::Usage`].
    fn check_source(&self, source: &dyn Source) -> Result<()>;

    /// Why the sidecar was refused, if it was: as what it is, or as that of another file.
    fn refused(&self) -> Option<Refused>;

    /// What the sidecar says of the file and of itself. Reads what was not read yet of both.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Interrupted`].
    fn report(&self) -> Result<Report>;

    /// Whether the sidecar is of an earlier state of the file: it has other bytes for a record that its own checksum
    /// proves. Then the file counts as it is.
    ///
    /// # Errors
    /// As [`report`](Self::report).
    fn is_of_an_earlier_state(&self) -> Result<bool>;

    /// Whether that is known by what was read: the same as [above](Self::is_of_an_earlier_state) once any byte was read that differs from
    /// what was covered.
    ///
    /// # Errors
    /// As [`report`](Self::report).
    fn is_known_to_be_of_an_earlier_state(&self) -> Result<bool>;

    /// Refuses a sidecar without any frame: one that was named for a file is expected to have some.
    ///
    /// # Errors
    /// [`Error::Format`].
    fn refuse_without_frames(&self) -> Result<()> {
        if self.refused() != Some(Refused::NoFrame) {
            return Ok(());
        }
        Err(Error::Format {
            path: self.sidecar().map(Path::to_path_buf),
            message: "expected a frame in the sidecar, found none".to_owned(),
            next: Some("it is none, or nothing of it is left: name another with `parity`"),
        })
    }
}

/// How a file is read that is compared with its sidecar.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// Whether damage is an error.
    pub(crate) strict: bool,
    /// Whether records that are restored are given.
    pub(crate) repairs: bool,
    /// What becomes of records that nothing proves, if reading is not strict.
    pub(crate) unproven: UnprovenPolicy,
    /// Whether the walk goes through the whole file, so that damage before what it met counts.
    pub(crate) is_whole: bool,
}

/// Compares with the sidecar what is read of a file.
pub(crate) trait Watch: ParityCheck {
    /// A walk that is compared.
    fn watch(self: Arc<Self>, walk: Box<dyn Walk>, reading: Reading) -> Box<dyn Walk>;

    /// What of the records that a look-up found is given. Records that are not proven are not found. In strict reading they are the
    /// error.
    fn judge_hits(&self, hits: Hits, reading: Reading) -> Result<Hits>;
}
