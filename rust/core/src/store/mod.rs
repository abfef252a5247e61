//! A durable log: a folder of segments, from writing to following.
//!
//! The newest segment is an [active](crate::format::active) file that records are appended to. A segment that is full is sealed in
//! the background. Each of them is a file of a documented format, which all other tools read by itself. docs/formats/log.md
//! describes the folder, and what survives what.
//!
//! [`SegmentLog`] writes: one process, any number of threads. [`LogReader`] reads beside it, [`Tail`] follows.
//!
//! ```
//! use seglake::Options;
//! use seglake::store::{LogOptions, LogReader, NewRecord, SegmentLog, TailFrom};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("orders");
//!
//! let log = SegmentLog::open(&path, LogOptions::default())?;
//! let uuid = log.write("order.paid", "{}")?; // on the disk when it returns
//! log.write_batch([NewRecord::new(b"order.sent", b"1"), NewRecord::new(b"order.sent", b"2")])?;
//!
//! let reader = LogReader::open(&path, Options::default())?;
//! assert_eq!(reader.get(&uuid)?.and_then(|record| record.uuid()), Some(uuid));
//! let mut tail = reader.tail(TailFrom::After(uuid))?;
//! let mut followed = 0;
//! while let Some(record) = tail.poll()? {
//!     println!("{} bytes", record.value().len());
//!     followed += 1;
//! }
//! assert_eq!(followed, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod commit;
mod end;
mod folder;
mod lock;
mod log;
mod mark;
mod marking;
mod name;
mod options;
mod reader;
mod recovery;
mod sealing;
mod skipped;
mod snapshot;
mod source;
mod state;
mod tail;

pub use folder::Segment;
#[doc(hidden)]
pub use folder::{is_beside_segment, is_log_name};
pub use log::SegmentLog;
pub use mark::Synced;
pub use name::{SegmentId, SegmentKind};
pub use options::{Durability, LogOptions, Retention};
pub use reader::LogReader;
pub use recovery::Recovery;
pub use skipped::{Skipped, Unread};
#[doc(hidden)]
pub use source::{ListedLog, ListedSegment, OpenedSegment};
pub use state::NewRecord;
pub use tail::{Tail, TailFrom};
