//! A clock whose entries hold their keys: `array(key fixed32 ‖ length uint)`.

use super::compact::{Body, Bytes, Items, KEY_BYTES, Read, Reader, Run, put_uint};
use super::fields::{fixed, list, parts, uint};
use crate::error::Result;
use crate::record::Value;

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
    let mut reader = body.reader(clock.at);
    let entry = |_| {
        let (key, length) = head(&mut reader)?;
        Ok(Value::Struct(vec![
            Value::Binary(body.get(key)),
            Value::UInt64(length),
        ]))
    };
    (0..clock.count)
        .map(entry)
        .collect::<Read<_>>()
        .map(Value::List)
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
