//! Records to bytes.

use super::UUID_BYTES;
use crate::checksum::{Key, hash};
use crate::error::{Error, Result};

/// The longest type, in bytes: its length is one byte.
pub const MAX_TYPE_BYTES: usize = u8::MAX as usize;
/// The longest value, in bytes: its length is a u32.
pub const MAX_VALUE_BYTES: u64 = u32::MAX as u64;

/// Appends one record to `out`, its checksum under `key`.
///
/// That UUIDs are of version 6 and ascend is the caller's to see to; [`Writer`](super::Writer) does.
///
/// # Errors
/// [`Error::Usage`] for a type of more than [`MAX_TYPE_BYTES`] or a value of more than [`MAX_VALUE_BYTES`]; `out` is then
/// as it was.
pub fn encode(
    out: &mut Vec<u8>,
    key: &Key,
    uuid: &[u8; UUID_BYTES],
    type_: &[u8],
    value: &[u8],
) -> Result<()> {
    let start = out.len();
    out.extend_from_slice(uuid);
    if let Err(error) = encode_message(out, type_, value) {
        out.truncate(start);
        return Err(error);
    }
    let checksum = hash(key, out.get(start..).unwrap_or_default());
    out.extend_from_slice(&checksum.to_be_bytes());
    Ok(())
}

/// Appends what stands between UUID and checksum: type length, type, value length, value. All of a message in a sealed segment.
///
/// # Errors
/// As [`encode`].
pub(in crate::format) fn encode_message(
    out: &mut Vec<u8>,
    type_: &[u8],
    value: &[u8],
) -> Result<()> {
    let type_len = u8::try_from(type_.len()).map_err(|_| {
        Error::Usage(format!(
            "the type has {} bytes: at most {MAX_TYPE_BYTES} fit",
            type_.len()
        ))
    })?;
    let value_len = u32::try_from(value.len()).map_err(|_| {
        Error::Usage(format!(
            "the value has {} bytes: at most {MAX_VALUE_BYTES} fit",
            value.len()
        ))
    })?;
    out.push(type_len);
    out.extend_from_slice(type_);
    out.extend_from_slice(&value_len.to_be_bytes());
    out.extend_from_slice(value);
    Ok(())
}
