//! The table of formats, and what every format provides: its files are opened, looked into, split, and created here.
//!
//! ```
//! use seglake::format::{FORMATS, by_name};
//!
//! for format in FORMATS {
//!     println!("{}: records by {}", format.name, format.identifier.join(", "));
//! }
//! assert_eq!(by_name("active")?.extension, "active");
//! # Ok::<(), seglake::Error>(())
//! ```

pub mod active;
#[cfg(feature = "chunked")]
pub mod chunked;
mod detect;
mod growth;
pub mod oplog;
pub mod sealed;
pub mod tenant;
mod tfrecord;

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

#[doc(hidden)]
pub use detect::resolve;
pub use detect::{Detection, detect};
pub(crate) use detect::{Other, is_sidecar, is_text, magic_of, of_sidecar, other_content};
#[doc(hidden)]
pub use growth::identity;

use crate::bug::OrBug;
#[doc(hidden)] // public for the Python extension, which compares the files of a lake
pub use crate::engine::Identity;
use crate::engine::append;
pub use crate::engine::{Format, Growth, IfExists, Position, Start, WriteOptions, Writer};
use crate::error::{Error, Result};
use crate::private::Sealed;
pub use crate::record::{Checked, Column, ColumnKind, RecordId, Rows, Scalar, Value};
#[doc(hidden)]
pub use crate::record::{Order, RecordSet, Room};
use crate::source::{FileSource, Source};
use crate::spec::Tail;
pub use crate::spec::{Dialect, Filter, Setting, Spec};
#[doc(hidden)]
pub use crate::spec::{FormatOption, OptionKind};
use crate::walk::part::{PlannedPart, text};
#[doc(hidden)]
pub use crate::walk::{Carry, Hits, Lookup, Part, Unproven};
pub use crate::walk::{Eof, IndexSource, Interrupt, OnDamage, Options, Sidecar, Step, Walk};

// One list of the types that may be a `dyn Writer`.
impl Sealed for active::Writer {}
impl Sealed for sealed::Writer {}
impl Sealed for tenant::Writer {}
#[cfg(feature = "chunked")]
impl Sealed for chunked::Writer {}
impl Sealed for oplog::Writer {}

/// All formats.
pub static FORMATS: &[&Format] = &[
    &active::FORMAT,
    &sealed::FORMAT,
    &tenant::FORMAT,
    #[cfg(feature = "chunked")]
    &chunked::FORMAT,
    &oplog::FORMAT,
    &tfrecord::FORMAT,
];

/// Returns the format with this name.
///
/// # Errors
/// [`Error::Usage`] if no format has this name.
pub fn by_name(name: &str) -> Result<&'static Format> {
    FORMATS
        .iter()
        .copied()
        .find(|format| format.name == name)
        .ok_or_else(|| {
            let names: Vec<_> = FORMATS.iter().map(|format| format.name).collect();
            Error::Usage(format!(
                "there is no format {name:?}: it is one of {}",
                names.join(", ")
            ))
        })
}

/// Begins a walk of a file.
///
/// # Errors
/// [`Error::Format`] if the format cannot be detected. [`Error::Usage`] if the start is not valid for this file,
/// or the filter names a column that the format lacks. [`Error::Io`].
pub fn open(source: Arc<dyn Source>, options: &Options, start: Start<'_>) -> Result<Box<dyn Walk>> {
    resolve(&*source, options)?.open(source, options, start)
}

/// Opens a file to look up records.
///
/// # Errors
/// The same as [`open`].
#[doc(hidden)]
pub fn lookup(source: Arc<dyn Source>, options: &Options) -> Result<Box<dyn Lookup>> {
    resolve(&*source, options)?.look_up(source, options)
}

/// Splits a file into parts of about `target_bytes` each.
///
/// Returns one part, the whole file, in each of these cases:
/// - The file is at most `target_bytes` long.
/// - Its format has no parts (active, oplog, tfrecord).
/// - Parts might give something else than the whole: a sealed segment whose trailer does not prove the index, a
///   tenant segment without a sound table of contents with a checksum, or a chunked segment with a header that
///   fails its check or does not ascend.
///
/// Reads the index, the table of contents or the chunks' headers once, and no records. Of a file of at most
/// `target_bytes` only what format detection needs is read.
///
/// # Errors
/// The same as [`open`].
#[doc(hidden)] // public for the Python extension, which divides files among Spark's tasks
pub fn split(source: Arc<dyn Source>, options: &Options, target_bytes: u64) -> Result<Vec<Part>> {
    let format = resolve(&*source, options)?;
    let (size, target) = (source.len(), target_bytes.max(1));
    let is_whole = size <= target || options.eof == Eof::Growing;
    if is_whole || format.tail != Tail::Complete && source.is_written()? {
        return Ok(vec![Part::whole(format, size)]);
    }
    let plans = match format.split {
        Some(split) => split(&source, options, target)?,
        None => Vec::new(),
    };
    if plans.len() < 2 {
        return Ok(vec![Part::whole(format, size)]);
    }
    let part = |PlannedPart { bytes, json }| Part {
        format,
        size,
        bytes,
        plan: Some(json),
    };
    Ok(plans.into_iter().map(part).collect())
}

/// A part in its JSON form.
#[derive(Serialize, Deserialize)]
struct PartJson {
    format: String,
    /// The length of the file, in bytes.
    size: u64,
    bytes: u64,
    /// What the format needs to walk the part. `None` means the whole file.
    plan: Option<serde_json::Value>,
}

impl Part {
    /// Parses a part from the JSON that [`to_json`](Self::to_json) returned.
    ///
    /// # Errors
    /// [`Error::Usage`] if the JSON is not a part.
    pub fn from_json(json: &str) -> Result<Self> {
        let PartJson {
            format,
            size,
            bytes,
            plan,
        } = serde_json::from_str(json)
            .map_err(|error| Error::Usage(format!("this is not a part of a file: {error}")))?;
        Ok(Self {
            format: by_name(&format)?,
            size,
            bytes,
            plan: plan.as_ref().map(text),
        })
    }

    /// Returns the part as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let json = PartJson {
            format: self.format.name.to_owned(),
            size: self.size,
            bytes: self.bytes,
            plan: self
                .plan
                .as_deref()
                .and_then(|text| serde_json::from_str(text).ok()),
        };
        serde_json::to_string(&json).or_bug_default("a part with a JSON form")
    }
}

/// Creates a file of this format, or opens one to append to.
///
/// # Errors
/// [`Error::Io`] if the file exists and may be neither appended to nor overwritten, if another writer has it open,
/// or if it cannot be opened. [`Error::Damage`] if an existing file cannot be appended to, [`Error::Format`] if it is probably of
/// another format or program. [`Error::Usage`].
pub fn create(
    format: &Format,
    path: impl AsRef<Path>,
    options: &WriteOptions,
) -> Result<Box<dyn Writer>> {
    let path = path.as_ref();
    let created = (format.create)(path, options);
    let nothing_is_sound = match &created {
        Err(Error::Damage(damage)) => damage.offset == 0 && !damage.wrong_key,
        _ => false,
    };
    match nothing_is_sound.then(|| refusal_of_other(format, path, options)) {
        Some(Ok(Some(other))) => Err(other),
        _ => created,
    }
}

/// The error for appending to a file that is probably of another format or program.
fn refusal_of_other(format: &Format, path: &Path, options: &WriteOptions) -> Result<Option<Error>> {
    let source = FileSource::open_on(options.on(), path)?;
    let other = other_content(&source, &append::reading(options), format)?;
    Ok(other.map(|(what, _)| Error::Format {
        path: Some(path.to_path_buf()),
        message: format!(
            "cannot append: expected the format {}, and {what}",
            format.name
        ),
        next: Some("nothing was changed: name another file, or the format that it has"),
    }))
}
