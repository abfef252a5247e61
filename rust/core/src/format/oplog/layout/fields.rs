//! Takes the fields of a message to be written apart, and reads and writes the clocks that two dialects share.

use std::fmt::Display;

use super::{Body, Bytes, Items, KEY_BYTES, MAX_ITEMS, Read, Reader, Run, put_uint};
use crate::engine::writer::missing;
use crate::error::{Error, Result};
use crate::record::Value;

/// The error for a value of another kind than the field's.
fn wrong(name: impl Display, expected: &str, value: &Value<'_>) -> Error {
    let found = match value {
        Value::Null => return missing(name),
        Value::Uuid(_) => "a UUID",
        Value::Timestamp(_) => "a timestamp",
        Value::Text(_) => "text",
        Value::Binary(_) => "bytes",
        Value::Int64(_) => "a signed integer",
        Value::UInt64(_) => "an unsigned integer",
        Value::Boolean(_) => "a truth value",
        Value::List(_) => "a list",
        Value::Struct(_) => "a structure",
    };
    Error::Usage(format!("{name} must be {expected}, and is {found}"))
}

pub(crate) fn uint(value: &Value<'_>, name: impl Display) -> Result<u64> {
    match value {
        Value::UInt64(number) => Ok(*number),
        other => Err(wrong(name, "an unsigned integer", other)),
    }
}

pub(crate) fn binary<'v>(value: &Value<'v>, name: impl Display) -> Result<&'v [u8]> {
    match value {
        Value::Binary(bytes) => Ok(bytes),
        other => Err(wrong(name, "bytes", other)),
    }
}

/// Exactly `N` bytes.
pub(crate) fn fixed<'v, const N: usize>(
    value: &Value<'v>,
    name: impl Display,
) -> Result<&'v [u8; N]> {
    let bytes = binary(value, &name)?;
    bytes.try_into().map_err(|_| {
        let len = bytes.len();
        Error::Usage(format!("{name} has {len} bytes: it must have {N}"))
    })
}

/// A list, of at most as many items as an array can have.
pub(crate) fn list<'a, 'v>(value: &'a Value<'v>, name: impl Display) -> Result<&'a [Value<'v>]> {
    match value {
        Value::List(items) => {
            check_count(items.len(), name)?;
            Ok(items)
        }
        other => Err(wrong(name, "a list", other)),
    }
}

pub(crate) fn check_count(count: usize, name: impl Display) -> Result<()> {
    if count as u64 > MAX_ITEMS {
        return Err(Error::Usage(format!(
            "{name} has {count} items: at most {MAX_ITEMS} fit"
        )));
    }
    Ok(())
}

/// A structure of `N` fields.
pub(crate) fn parts<'a, 'v, const N: usize>(
    value: &'a Value<'v>,
    name: impl Display,
) -> Result<&'a [Value<'v>; N]> {
    match value {
        Value::Struct(values) => values.as_slice().try_into().map_err(|_| {
            let count = values.len();
            Error::Usage(format!("{name} has {count} fields: it must have {N}"))
        }),
        other => Err(wrong(name, "a structure", other)),
    }
}

/// All columns of a message.
pub(crate) fn all<'a, 'v, const N: usize>(fields: &'a [Value<'v>]) -> Result<&'a [Value<'v>; N]> {
    fields.try_into().map_err(|_| {
        let count = fields.len();
        Error::Usage(format!("a message has {count} fields: it must have {N}"))
    })
}

/// The value of an optional field, if it is present.
pub(crate) fn present<'a, 'v>(value: &'a Value<'v>) -> Option<&'a Value<'v>> {
    Some(value).filter(|value| **value != Value::Null)
}

/// Fails if a value is given that the layout has no place for.
pub(crate) fn absent(value: &Value<'_>, name: &str, why: &str) -> Result<()> {
    match present(value) {
        None => Ok(()),
        Some(_) => Err(Error::Usage(format!(
            "{name} cannot be written: {why}. Leave it out"
        ))),
    }
}

/// The sequence number of a message with these fields, if one is given.
pub(crate) fn seq(fields: &[Value<'_>]) -> Result<Option<u64>> {
    match fields.first() {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Int64(number)) => u64::try_from(*number)
            .map(Some)
            .map_err(|_| Error::Usage(format!("seq is {number}: it cannot be negative"))),
        Some(other) => Err(wrong("seq", "a signed integer", other)),
    }
}

/// The value of a field that a message may lack: null then.
pub(crate) fn nullable<'a, T>(field: Option<T>, value: impl FnOnce(T) -> Value<'a>) -> Value<'a> {
    match field {
        Some(field) => value(field),
        None => Value::Null,
    }
}

/// Reads and checks such a clock.
pub(crate) fn read_heads<B: Bytes>(reader: &mut Reader<B>) -> Read<Items> {
    reader.items("clock", KEY_BYTES + 1, |reader| head(reader).map(drop))
}

/// One entry.
#[inline]
fn head<B: Bytes>(reader: &mut Reader<B>) -> Read<(Run, u64)> {
    let key = reader.run(KEY_BYTES, "a clock entry's key")?;
    Ok((key, reader.uint("a clock entry's length")?))
}

/// Such a clock as values.
pub(crate) fn heads<'a>(body: Body<'a>, clock: Items) -> Read<Value<'a>> {
    values(body, clock, |reader| {
        let (key, length) = head(reader)?;
        Ok(Value::Struct(vec![
            Value::Binary(body.get(key)),
            Value::UInt64(length),
        ]))
    })
}

/// An array that was checked before, as values.
pub(crate) fn values<'a>(
    body: Body<'a>,
    items: Items,
    mut item: impl FnMut(&mut Reader<Body<'a>>) -> Read<Value<'a>>,
) -> Read<Value<'a>> {
    let mut reader = body.reader(items.at);
    let values = (0..items.count).map(|_| item(&mut reader));
    Ok(Value::List(values.collect::<Read<_>>()?))
}

/// Appends such a clock.
pub(crate) fn put_heads(out: &mut Vec<u8>, clock: &Value<'_>) -> Result<()> {
    let entries = list(clock, "clock")?;
    put_uint(out, entries.len() as u64);
    for (place, entry) in entries.iter().enumerate() {
        let [key, length] = parts(entry, format_args!("clock entry {place}"))?;
        let name = format_args!("the key of clock entry {place}");
        out.extend_from_slice(fixed::<32>(key, name)?);
        let name = format_args!("the length of clock entry {place}");
        put_uint(out, uint(length, name)?);
    }
    Ok(())
}
