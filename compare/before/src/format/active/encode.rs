//! Records to bytes.

use super::{CHECKSUM_BYTES, UUID_BYTES};
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
    let (start, len) = encode_unhashed(out, uuid, type_, value)?;
    let body = out.get(start..).and_then(|record| record.get(..len));
    let checksum = hash(key, body.unwrap_or_default());
    put_checksum(out, start + len, checksum);
    Ok(())
}

/// As [`encode`], but for the checksum: zeros stand there until [`put_checksum`]. Gives (offset, length) in `out` of what is to
/// be hashed; the checksum is behind that.
///
/// # Errors
/// As [`encode`].
#[inline]
pub(super) fn encode_unhashed(
    out: &mut Vec<u8>,
    uuid: &[u8; UUID_BYTES],
    type_: &[u8],
    value: &[u8],
) -> Result<(usize, usize)> {
    let start = out.len();
    out.extend_from_slice(uuid);
    if let Err(error) = encode_message(out, type_, value) {
        out.truncate(start);
        return Err(error);
    }
    let len = out.len() - start;
    out.extend_from_slice(&[0; CHECKSUM_BYTES]);
    Ok((start, len))
}

/// Writes a checksum over the zeros at `place`.
pub(super) fn put_checksum(out: &mut [u8], place: usize, checksum: u64) {
    if let Some(zeros) = out.get_mut(place..).and_then(<[u8]>::first_chunk_mut) {
        *zeros = checksum.to_be_bytes();
    }
}

/// Appends what stands between UUID and checksum: type length, type, value length, value. All of a message in a sealed segment.
///
/// # Errors
/// As [`encode`].
#[inline]
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
