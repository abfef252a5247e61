//! The table of formats, and what every format provides.
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
mod part;
pub mod sealed;
pub mod tenant;
mod tfrecord;

use std::path::Path;
use std::sync::Arc;

#[doc(hidden)]
pub use detect::resolve;
pub use detect::{Detection, detect};
pub(crate) use detect::{Other, is_sidecar, is_text, magic_of, of_sidecar, other_content};
#[doc(hidden)]
pub use growth::identity;
#[doc(hidden)] // public for the Python extension, which divides files among Spark's tasks
pub use part::split;

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
pub use crate::spec::{Dialect, Filter, Setting, Spec};
#[doc(hidden)]
pub use crate::spec::{FormatOption, OptionKind};
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
