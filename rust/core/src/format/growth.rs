//! Plans how a file is read on, and converts positions to and from JSON.

use std::str::FromStr;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::{by_name, resolve};
use crate::bug::OrBug;
use crate::engine::growth::{MAX_CARRY_BYTES, Plan, first_unit};
use crate::engine::position::{
    CarryHead, Extent, FIRST_BYTES, FileEnd, LAST_BYTES, Last, replaced,
};
use crate::engine::{Format, Growth, Identity, Position};
use crate::error::{Error, Result};
use crate::source::Source;
use crate::spec::Tail;
use crate::walk::{Carry, Options};

/// The version of a position's JSON.
const VERSION: u32 = 1;
/// No position is longer.
const MAX_JSON_BYTES: usize = MAX_CARRY_BYTES + (4 << 10);

/// A position in its JSON form.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Json {
    version: u32,
    format: String,
    identity: Option<String>,
    /// Offset and number of bytes.
    first: Option<(u64, u64)>,
    offset: u64,
    /// Offset, number of bytes, and their hash in hexadecimal digits.
    last: Option<(u64, u64, String)>,
    /// The number of the last record of a complete file, and what identifies it as if it were the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<(u64, String)>,
    uuid: Option<String>,
    carry: Option<Value>,
}

/// What identifies a file; `None` as long as it has no whole unit that is sound.
///
/// # Errors
/// [`Error::Format`] if the format cannot be detected; [`Error::Io`].
pub fn identity(source: &Arc<dyn Source>, options: &Options) -> Result<Option<Identity>> {
    let format = resolve(&**source, options)?;
    let found = first_unit(format, source, options)?;
    Ok(found.map(|(_, identity)| identity))
}

impl Position {
    /// Parses a position from the JSON that [`to_json`](Self::to_json) returned. Whether it is of a file, [`Growth::since`] finds out.
    ///
    /// # Errors
    /// [`Error::Usage`] if the JSON is not a position.
    pub fn from_json(json: &str) -> Result<Self> {
        let refused = |why: &str| {
            Error::Usage(format!(
                "this is not a position in a file: {why}. Read the file from the beginning"
            ))
        };
        if json.len() > MAX_JSON_BYTES {
            return Err(refused(&format!(
                "it has {} bytes, and none has more than {MAX_JSON_BYTES}",
                json.len()
            )));
        }
        let json: Json = serde_json::from_str(json).map_err(|error| refused(&error.to_string()))?;
        if json.version != VERSION {
            let why = format!("its version is {}, expected {VERSION}", json.version);
            return Err(refused(&why));
        }
        json.checked().map_err(|error| refused(&error.to_string()))
    }

    /// Returns the position as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let place = |place: Extent| (place.at, place.nbytes);
        let json = Json {
            version: VERSION,
            format: self.format.name.to_owned(),
            identity: self.identity.as_ref().map(ToString::to_string),
            first: self.first.map(place),
            offset: self.offset,
            last: self
                .last
                .map(|Last { place, hash }| (place.at, place.nbytes, format!("{hash:016x}"))),
            end: self
                .end
                .as_ref()
                .map(|end| (end.number, end.record.to_string())),
            uuid: self.uuid.map(|uuid| Uuid::from_bytes(uuid).to_string()),
            carry: self.carry.as_ref().map(|carry| {
                serde_json::from_str(&carry.0).or_bug_default("a state with a JSON form")
            }),
        };
        serde_json::to_string(&json).or_bug_default("a position with a JSON form")
    }
}

impl Json {
    /// The position, if what its fields say of one another is true.
    fn checked(self) -> std::result::Result<Position, Box<dyn std::error::Error>> {
        let format = by_name(&self.format)?;
        let grows = format.tail != Tail::Complete;
        let of_family = |identity: &Identity| identity.family() == format.family;
        let fits = |place: Extent, most: u64| {
            place.nbytes <= most && place.at.checked_add(place.nbytes).is_some()
        };
        let was_read = |place: Extent| !grows || place.end() <= self.offset;
        let extent = |(at, nbytes)| Extent { at, nbytes };
        let identity = self
            .identity
            .as_deref()
            .map(Identity::from_str)
            .transpose()?;
        let first = self.first.map(extent);
        let last = match self.last {
            Some((at, nbytes, hash)) => Some(Last {
                place: extent((at, nbytes)),
                hash: u64::from_str_radix(&hash, 16)?,
            }),
            None => None,
        };
        let end = match self.end {
            Some((number, record)) => Some(FileEnd {
                number,
                record: record.parse()?,
            }),
            None => None,
        };
        let uuid = self.uuid.as_deref().map(Uuid::from_str).transpose()?;
        let uuid = uuid.map(Uuid::into_bytes);
        let carry = self.carry.map(|carry| Carry(carry.to_string()));
        let goes_on = |head: CarryHead| {
            grows && head.at == self.offset && head.pending.is_none() && head.state.last == uuid
        };
        let is_sound = identity.as_ref().is_none_or(of_family)
            && identity.is_some() == first.is_some()
            && first.is_none_or(|first| fits(first, FIRST_BYTES))
            && last.is_none_or(|Last { place, .. }| fits(place, LAST_BYTES) && was_read(place))
            && end
                .as_ref()
                .is_none_or(|end| !grows && of_family(&end.record));
        let head = carry.as_ref().map(CarryHead::of).transpose()?;
        if !is_sound || !head.is_none_or(goes_on) {
            return Err("its fields do not fit together".into());
        }
        Ok(Position {
            format,
            identity,
            first,
            offset: self.offset,
            last,
            end,
            uuid,
            carry,
        })
    }
}

impl Growth {
    /// Plans to read what a file has since this position; all of it without one. `source` has as much of it as is to be read.
    ///
    /// A file that was active and is sealed by now goes on after the last record that was read, by its UUID. So does a sealed segment
    /// that was written anew with more records, if it has that last record, with as many before it. Pruning and parts do not
    /// concern it.
    ///
    /// # Errors
    /// - [`Error::Replaced`] if it is another file, or has less than was read of it.
    /// - [`Error::Usage`] if the options name another format.
    /// - [`Error::Format`] if the format cannot be detected; [`Error::Io`].
    pub fn since(
        source: Arc<dyn Source>,
        options: &Options,
        position: Option<&Position>,
    ) -> Result<Self> {
        let position = position.filter(|position| !position.is_beginning());
        let (format, plan) = match position {
            Some(position) => plan(&source, options, position)?,
            None => (resolve(&*source, options)?, Plan::All),
        };
        Ok(Self {
            source,
            options: options.clone().format(format),
            format,
            since: position.cloned(),
            plan,
            is_final: false,
            only_end: false,
            up_to: None,
            outcome: Arc::new(Mutex::new(None)),
        })
    }

    /// Whether the file grows no more, so that an unfinished unit at its end is damage. The position stays before it all the same:
    /// if it is finished after all, it is read then.
    #[must_use]
    pub const fn is_final(mut self, is_final: bool) -> Self {
        self.is_final = is_final;
        self
    }

    /// Whether walks are only to find where the growth ends. The [`position`](Self::position) and the
    /// [pending bytes](Self::pending_bytes) are those of a walk of all of it, and there is a record or damage if that has one. But records,
    /// ranges and damage before the end may be left out.
    ///
    /// Of a chunked segment, chunks are left out as far as their headers lead from one to the next. The last sound one with records is
    /// verified, and everything after it is read. That decides where the growth ends: after a sound chunk, nothing depends on whether those
    /// before it are sound.
    ///
    /// It changes nothing in other formats, where reading is strict or records are chosen, with a parity sidecar, and of objects of a store.
    #[must_use]
    #[doc(hidden)]
    pub const fn only_end(mut self, only_end: bool) -> Self {
        self.only_end = only_end;
        self
    }

    /// If the file is a sealed segment, the filter of the options keeps records after this one from being read, because it was listed
    /// before they were there. The position is then after this record.
    #[must_use]
    #[doc(hidden)]
    pub fn up_to(mut self, uuid: Option<Uuid>) -> Self {
        self.up_to = uuid.map(Uuid::into_bytes);
        self
    }
}

/// The format of a file that was read up to a position, and how it goes on.
fn plan(
    source: &Arc<dyn Source>,
    options: &Options,
    position: &Position,
) -> Result<(&'static Format, Plan)> {
    let before = by_name(position.format.name)?;
    let is_named = options.format.is_none_or(|named| *named == before.spec);
    if is_named && has_first(&**source, position)? {
        return Ok((before, go_on(before, source, options, position, true)?));
    }
    let format = resolve(&**source, options)?;
    let expected = || match &position.identity {
        Some(identity) => format!("the {} segment {identity}", before.name),
        None => format!("a {} segment", before.name),
    };
    if format.family != before.family {
        let found = format!("a {} file", format.name);
        return Err(replaced(source.path(), 0, expected(), found));
    }
    let found = first_unit(format, source, options)?;
    let is_same = match (&position.identity, &found) {
        (Some(known), Some((_, found))) => known == found,
        (Some(_), None) => false,
        (None, _) => true,
    };
    let is_sealed = format.tail == Tail::Complete && *format != *before;
    if is_sealed && is_same {
        let rest = match position.uuid {
            Some(uuid) => Plan::After(uuid),
            None => Plan::All,
        };
        return Ok((format, rest));
    }
    // If the first unit is damaged by now, the last one that was read tells.
    let is_damaged = match &found {
        Some((first, _)) => position.first.is_some_and(|known| known.at < first.at),
        None => true,
    };
    if *format == *before && (is_same || is_damaged) {
        return Ok((before, go_on(before, source, options, position, is_same)?));
    }
    let offset = match position.first {
        Some(first) => first.at,
        None => 0,
    };
    let found = match found {
        Some((_, identity)) => format!("the {} segment {identity}", format.name),
        None => format!("a {} segment without a sound unit", format.name),
    };
    Err(replaced(source.path(), offset, expected(), found))
}

/// Whether the first unit is where it was, as it was.
fn has_first(source: &dyn Source, position: &Position) -> Result<bool> {
    let (Some(identity), Some(first)) = (&position.identity, position.first) else {
        return Ok(false);
    };
    let uuid = identity.uuid().map(Uuid::into_bytes);
    let found = Identity::at(source, position.format, first, uuid)?;
    Ok(found.as_ref() == Some(identity))
}

/// How the file of a position goes on, if it is as it was up to there. `has_first` tells whether it has the first unit.
fn go_on(
    format: &Format,
    source: &Arc<dyn Source>,
    options: &Options,
    position: &Position,
    has_first: bool,
) -> Result<Plan> {
    if format.tail != Tail::Complete {
        position.check_read(&**source)?;
        return Ok(match &position.carry {
            Some(carry) => Plan::Carry(carry.clone()),
            None => Plan::Offset(position.offset),
        });
    }
    if let (0, Some(uuid)) = (position.offset, position.uuid) {
        return Ok(Plan::After(uuid));
    }
    let (len, offset) = (source.len(), position.offset);
    let (error, has_all) = match position.check_read(&**source) {
        Ok(()) if len == offset => return Ok(Plan::Nothing),
        Ok(()) => {
            let (expected, found) = (
                format!("the end of the file, which is complete with {offset} bytes"),
                format!("{} more bytes", len - offset),
            );
            (replaced(source.path(), offset, expected, found), true)
        }
        Err(error @ Error::Replaced { .. }) => (error, false),
        Err(error) => return Err(error),
    };
    if position.identity.is_none() {
        // It was being written, and had no record yet.
        return Ok(Plan::All);
    }
    if let Some(before) = position.end.as_ref().filter(|_| has_first)
        && let Some((end, found)) = FileEnd::find(format, source, options, Some(before.number))?
        && end == *before
        && (!found.is_last || has_all && found.is_proven)
        && let Some(uuid) = end.record.uuid()
    {
        return Ok(Plan::After(uuid.into_bytes()));
    }
    Err(error)
}
