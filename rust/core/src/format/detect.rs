//! Detects the format of a file.

use std::fmt;
use std::path::Path;

use super::{FORMATS, by_name};
use crate::engine::{Format, Likelihood};
use crate::error::{Error, Result};
use crate::parity::MAGIC;
use crate::saturating::saturating_usize;
use crate::source::Source;
use crate::text;
use crate::walk::Options;

/// How much of a file's beginning is read, to tell what other programs wrote.
const HEAD_BYTES: usize = 4096;
/// Fewer bytes are not classified as text.
const MIN_TEXT_BYTES: usize = 32;

/// The first bytes of other programs' files.
type Magics = &'static [(&'static [u8], &'static str)];

/// Those of compressed files, which may be one of ours inside.
const COMPRESSED: Magics = &[
    (b"\x1f\x8b\x08", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"BZh", "bzip2"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\xff\x06\x00\x00sNaPpY", "framed snappy"),
    (b"PK\x03\x04", "zip"),
];

const MAGICS: Magics = &[
    (b"PAR1", "Parquet"),
    (b"ARROW1", "Arrow IPC"),
    (b"Obj\x01", "Avro"),
    (b"ORC", "ORC"),
    (b"SQLite format 3\x00", "SQLite"),
    (b"\x37\x7f\x06\x82", "SQLite's write-ahead log"),
    (b"\x37\x7f\x06\x83", "SQLite's write-ahead log"),
    (b"\x89MCAP0\r\n", "MCAP"),
    (b"\x7fELF", "ELF"),
    (b"%PDF-", "PDF"),
    (b"\x89PNG\r\n", "PNG"),
    (b"version https://git-lfs", "Git LFS pointer"),
    (b"H4sI", "gzip in base64"),
    (b"00000000: ", "xxd, a hex dump"),
    (b"<!DOCTYPE", "HTML"),
    (b"<!doctype", "HTML"),
    (b"<html", "HTML"),
    (b"<?xml", "XML"),
];

/// The name of the other program's format that has this beginning.
pub(crate) fn magic_of(bytes: &[u8]) -> Option<&'static str> {
    begins_with(COMPRESSED, bytes).or_else(|| begins_with(MAGICS, bytes))
}

fn begins_with(magics: Magics, bytes: &[u8]) -> Option<&'static str> {
    let found = magics.iter().find(|(magic, _)| bytes.starts_with(magic));
    found.map(|(_, name)| *name)
}

/// The beginning of a file.
fn head(source: &dyn Source) -> Result<Vec<u8>> {
    let mut head = vec![0; saturating_usize(source.len()).min(HEAD_BYTES)];
    source.read_exact_at(0, &mut head)?;
    Ok(head)
}

/// Whether bytes are text, and enough of it not to be a coincidence.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    bytes.len() >= MIN_TEXT_BYTES && text::is_readable(bytes)
}

/// What a file is that is not of a format.
pub(crate) enum Other {
    /// A compressed file of this kind.
    Compressed(&'static str),
    /// A file of this program or kind.
    Program(&'static str),
    /// A file of this format, as a checksum proves for this reason.
    Format(&'static Format, String),
    Text,
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compressed(name) | Self::Program(name) => {
                write!(f, "the file begins like a file of {name}")
            }
            Self::Format(format, reason) => write!(f, "the file is {}: {reason}", format.name),
            Self::Text => f.write_str("the file begins with text"),
        }
    }
}

/// What a file is that is not of this format; `None` if nothing is known. Besides its beginning.
pub(crate) fn other_content(
    source: &dyn Source,
    options: &Options,
    format: &Format,
) -> Result<Option<(Other, Vec<u8>)>> {
    let head = head(source)?;
    let found = if let Some(name) = begins_with(COMPRESSED, &head) {
        Some(Other::Compressed(name))
    } else if let Some(name) = begins_with(MAGICS, &head) {
        Some(Other::Program(name))
    } else {
        let mut certain = None;
        for other in FORMATS.iter().filter(|other| **other != format) {
            if let Likelihood::Certain(reason) = (other.detect)(source, options)? {
                certain = Some(Other::Format(other, reason));
                break;
            }
        }
        certain.or_else(|| is_text(&head).then_some(Other::Text))
    };
    Ok(found.map(|found| (found, head)))
}

/// The result of [`detect`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Detection {
    /// The format, if one is likely and no other is equally likely.
    pub format: Option<&'static Format>,
    /// Whether a checksum proves the format.
    pub certain: bool,
    /// The reason, as text for people.
    pub reason: String,
}

/// Detects a file's format by its content, or by its extension if the content is ambiguous.
///
/// # Errors
/// [`Error::Io`].
pub fn detect(source: &dyn Source, options: &Options) -> Result<Detection> {
    let (mut certain, mut likely) = (Vec::new(), Vec::new());
    for &format in FORMATS {
        match (format.detect)(source, options)? {
            Likelihood::Certain(reason) => certain.push((format, reason)),
            Likelihood::Likely(reason) => likely.push((format, reason)),
            Likelihood::No => {}
        }
    }
    let is_certain = !certain.is_empty();
    let found = if is_certain { certain } else { likely };
    let extension = source
        .path()
        .and_then(|path| path.extension())
        .and_then(|extension| extension.to_str());
    let by_name = FORMATS
        .iter()
        .find(|format| Some(format.extension) == extension);
    let names: Vec<_> = found.iter().map(|(format, _)| format.name).collect();
    let (format, certain, reason) = match (found.as_slice(), by_name) {
        ([(format, reason)], _) => (Some(*format), is_certain, reason.clone()),
        (_, Some(format)) if names.is_empty() || names.contains(&format.name) => {
            let reason = format!(
                "the extension is .{}; the content alone is ambiguous",
                format.extension
            );
            (Some(*format), false, reason)
        }
        ([], _) if is_sidecar(source)? => (None, false, IS_SIDECAR.to_owned()),
        ([], _) => {
            let head = head(source)?;
            let reason = match magic_of(&head) {
                Some(name) => format!("the file begins like a file of {name}"),
                None if head.is_empty() => "the file is empty".to_owned(),
                None => "the content is like none of the formats".to_owned(),
            };
            (None, false, reason)
        }
        _ => (
            None,
            false,
            format!("the content could be {}", names.join(" or ")),
        ),
    };
    Ok(Detection {
        format,
        certain,
        reason,
    })
}

const IS_SIDECAR: &str = "it is a parity sidecar: name the file that it is for";

/// The error for a parity sidecar in place of the file that it is for.
pub(crate) fn of_sidecar(path: Option<&Path>) -> Error {
    Error::Format {
        path: path.map(Into::into),
        message: IS_SIDECAR.to_owned(),
        next: None,
    }
}

/// Whether a file begins as a parity sidecar does.
pub(crate) fn is_sidecar(source: &dyn Source) -> Result<bool> {
    let mut start = [0; MAGIC.len()];
    if source.len() < start.len() as u64 {
        return Ok(false);
    }
    source.read_exact_at(0, &mut start)?;
    Ok(start == MAGIC)
}

/// Returns the format that `options` name, or else detects it.
///
/// # Errors
/// [`Error::Format`] if no format is detected. [`Error::Usage`] for an option that no format has, or for a value
/// that the option does not take. [`Error::Io`].
pub fn resolve(source: &dyn Source, options: &Options) -> Result<&'static Format> {
    let format = named_or_detected(source, options)?;
    options.check(format, |name| {
        FORMATS.iter().any(|format| format.reads_with(name))
    })?;
    Ok(format)
}

fn named_or_detected(source: &dyn Source, options: &Options) -> Result<&'static Format> {
    if let Some(format) = options.format {
        return by_name(format.name);
    }
    let detection = detect(source, options)?;
    if let Some(format) = detection.format {
        return Ok(format);
    }
    if detection.reason == IS_SIDECAR {
        return Err(of_sidecar(source.path()));
    }
    let names: Vec<_> = FORMATS.iter().map(|format| format.name).collect();
    Err(Error::Format {
        path: source.path().map(Into::into),
        message: format!(
            "cannot tell the format: {}. Expected one of {}",
            detection.reason,
            names.join(", "),
        ),
        next: Some(match begins_with(COMPRESSED, &head(source)?) {
            Some(_) => "decompress it first, and read the result",
            None => {
                "name it with `format`, or by the file's extension, if you know it. seglake reads only these formats; any other file can be protected with the format `raw`"
            }
        }),
    })
}
