//! How a log is written.

use std::time::Duration;

use crate::checksum::Key;
use crate::disk::DiskRef;
use crate::error::{Error, Result};
use crate::parity::Parameters;
use crate::setters::{choices, setters};

choices! {
    /// What a write of a log waits for.
    Durability of "durability" {
        /// The record is on the disk: it survives a loss of power. Writes of several threads share a sync.
        #[default]
        Fsync = "fsync",
        /// The operating system has the record: it survives the end of the process.
        Flush = "flush",
        /// Nothing: the record may be in the memory of the process alone.
        None = "none",
    }
}

/// Which segments are removed: sealed ones, and those that are kept as they are since they are damaged. The newest segment always stays,
/// and so does the newest that is known to be on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    #[doc(hidden)] // public for the Python extension and tests
    pub age: Option<Duration>,
    #[doc(hidden)] // public for the Python extension and tests
    pub bytes: Option<u64>,
}

setters!(Retention {
    /// Segments whose records are all older than this. If their times are ahead of the clock, segments that were sealed longer ago.
    age: Option<Duration>, from;
    /// The oldest ones, as long as all of them together have more bytes than this.
    bytes: Option<u64>, from;
});

/// How a log is written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogOptions {
    pub(crate) key: Key,
    pub(crate) segment_bytes: u64,
    pub(crate) segment_age: Option<Duration>,
    pub(crate) max_clock_ahead: Duration,
    pub(crate) durability: Durability,
    pub(crate) mark_interval: Duration,
    pub(crate) retention: Option<Retention>,
    pub(crate) seal: bool,
    pub(crate) protect: Option<Parameters>,
    pub(super) disk: DiskRef,
}

setters!(LogOptions {
    /// The key of the checksums.
    key: Key;
    /// A segment ends before it has more bytes than this, but has at least one record.
    segment_bytes: u64;
    /// A segment ends before a record that is later than its first one by this time or more. The time of a record is that of its UUID, so
    /// it goes on counting where the log is opened again, and records that are given times of the past are divided by these. If the
    /// first one is ahead of the clock, the time counts from when the segment was begun, or the log opened again.
    segment_age: Option<Duration>, from;
    /// A record whose time is further ahead of the clock than this is refused: all later ones would get its time.
    max_clock_ahead: Duration;
    /// What a write waits for.
    durability: Durability;
    /// So long after a commit the synced mark survives a loss of power as well. Readers see it at once. Damage before it is never
    /// taken for the end of the log; the records themselves are as durable as [`durability`](Self::durability) says.
    mark_interval: Duration;
    /// Which sealed segments are removed, whenever another one is sealed.
    retention: Option<Retention>, from;
    /// Whether complete segments are sealed in the background.
    seal: bool;
    /// How a parity sidecar divides each sealed segment, which it restores damaged bytes of; `None` means that there are none. They are
    /// written in the background as segments are sealed, and for sealed segments that have none when the log is opened.
    protect: Option<Parameters>, from;
});

impl LogOptions {
    /// Refuses what cannot be meant.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub(super) fn check(&self) -> Result<()> {
        match self.segment_bytes {
            0 => Err(Error::Usage(
                "segment_bytes is 0: it is at least 1".to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// These options, for a log on this disk.
    #[cfg(feature = "faults")]
    #[must_use]
    #[doc(hidden)]
    pub fn disk(mut self, disk: std::sync::Arc<dyn crate::disk::Disk>) -> Self {
        self.disk = disk.into();
        self
    }
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            key: Key::DEFAULT,
            segment_bytes: 64 << 20,
            segment_age: None,
            max_clock_ahead: Duration::from_secs(24 * 60 * 60),
            durability: Durability::default(),
            mark_interval: Duration::from_millis(100),
            retention: None,
            seal: true,
            protect: None,
            disk: DiskRef::default(),
        }
    }
}
