//! Splits a file into parts, and converts parts to and from JSON.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{by_name, resolve};
use crate::bug::OrBug;
use crate::error::{Error, Result};
use crate::source::Source;
use crate::spec::Tail;
use crate::walk::part::{PlannedPart, text};
use crate::walk::{Eof, Options, Part};

/// A part in its JSON form.
#[derive(Serialize, Deserialize)]
struct Json {
    format: String,
    /// The length of the file, in bytes.
    size: u64,
    bytes: u64,
    /// What the format needs to walk the part. `None` means the whole file.
    plan: Option<Value>,
}

impl Part {
    /// Parses a part from the JSON that [`to_json`](Self::to_json) returned.
    ///
    /// # Errors
    /// [`Error::Usage`] if the JSON is not a part.
    pub fn from_json(json: &str) -> Result<Self> {
        let Json {
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
        let json = Json {
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
/// The same as [`open`](super::open).
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
