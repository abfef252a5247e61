//! The bytes of a record: where its fields are, and how they are written. `judge` says which values are valid.

use crate::bug::OrBug;
use crate::checksum::{Key, hash};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::saturating::saturating_usize;

pub(super) const UUID_BYTES: usize = 16;
pub(super) const CHECKSUM_BYTES: usize = 8;

/// The longest type, in bytes: its length is one byte.
pub const MAX_TYPE_BYTES: usize = u8::MAX as usize;
/// The longest value, in bytes: its length is a u32.
pub const MAX_VALUE_BYTES: u64 = u32::MAX as u64;

/// The minimum length of a header, from UUID through value length.
pub(super) const MIN_HEADER_BYTES: usize = UUID_BYTES + 1 + 4;
/// The maximum length of a header.
pub(super) const MAX_HEADER_BYTES: usize = MIN_HEADER_BYTES + MAX_TYPE_BYTES;

/// A record's UUID and lengths, read before its checksum is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(super) uuid: [u8; UUID_BYTES],
    pub(super) type_len: u8,
    value_len: u32,
}

impl Header {
    /// Parses the header that begins `bytes`. If it is incomplete, the error is how many bytes it needs, as far as
    /// known.
    pub(super) fn parse(bytes: &[u8]) -> std::result::Result<Self, u64> {
        const LEAST: u64 = MIN_HEADER_BYTES as u64;
        let (uuid, rest) = bytes.split_first_chunk().ok_or(LEAST)?;
        let (type_len, rest) = rest.split_first().ok_or(LEAST)?;
        let value_len = rest
            .get(usize::from(*type_len)..)
            .and_then(<[u8]>::first_chunk)
            .ok_or(LEAST + u64::from(*type_len))?;
        Ok(Self {
            uuid: *uuid,
            type_len: *type_len,
            value_len: u32::from_be_bytes(*value_len),
        })
    }

    /// Returns the UUID and the number of hashed bytes of the record that begins `bytes`. Returns `None` if
    /// `bytes` are shorter than the longest header; then use [`parse`](Self::parse).
    ///
    /// `type_len` is the expected length of the type, and is set to the actual one.
    #[inline(always)]
    pub(super) fn peek<'a>(
        bytes: &'a [u8],
        type_len: &mut u8,
    ) -> Option<(&'a [u8; UUID_BYTES], usize)> {
        let bytes = bytes.first_chunk::<MAX_HEADER_BYTES>()?;
        // A branch, because the processor predicts it and goes on. It then knows where the value's length is, and
        // from that where the next record begins, before the type's length has been loaded.
        if bytes[UUID_BYTES] != *type_len {
            *type_len = unexpected(bytes[UUID_BYTES]);
        }
        let value_len_at = UUID_BYTES + 1 + usize::from(*type_len);
        let value_len = bytes.get(value_len_at..)?.first_chunk()?;
        let value_len = saturating_usize(u32::from_be_bytes(*value_len));
        let hashed = value_len.checked_add(value_len_at + 4)?;
        Some((bytes.first_chunk()?, hashed))
    }

    /// How many bytes the checksum covers: UUID through value.
    pub(super) const fn hashed(&self) -> u64 {
        MIN_HEADER_BYTES as u64 + self.type_len as u64 + self.value_len as u64
    }

    /// The length of the whole record, checksum included.
    pub(super) const fn total(&self) -> u64 {
        self.hashed() + CHECKSUM_BYTES as u64
    }

    /// The hashed bytes of this header's record, which begins `bytes`, and its stored checksum. `None` if the
    /// record is incomplete.
    pub(super) fn split<'a>(&self, bytes: &'a [u8]) -> Option<(&'a [u8], u64)> {
        let mut cursor = Cursor::new(bytes);
        let body = cursor.run(saturating_usize(self.hashed()))?;
        Some((body, cursor.u64_be()?))
    }
}

/// The type of the record that begins `bytes`. Empty if it is incomplete.
pub(super) fn type_of(bytes: &[u8]) -> &[u8] {
    let rest = bytes.get(UUID_BYTES..).unwrap_or_default();
    let Some((len, rest)) = rest.split_first() else {
        return &[];
    };
    rest.get(..usize::from(*len)).unwrap_or_default()
}

/// Keeps the compiler from replacing the branch.
#[cold]
#[inline(never)]
const fn unexpected(type_len: u8) -> u8 {
    type_len
}

/// Appends one record to `out`, its checksum under `key`.
///
/// The caller must make sure that UUIDs are of version 6 and ascend. [`Writer`](super::Writer) does.
///
/// # Errors
/// [`Error::Usage`] for a type of more than [`MAX_TYPE_BYTES`] or a value of more than [`MAX_VALUE_BYTES`]. `out`
/// is then unchanged.
pub fn encode(
    out: &mut Vec<u8>,
    key: &Key,
    uuid: &[u8; UUID_BYTES],
    type_: &[u8],
    value: &[u8],
) -> Result<()> {
    let (start, len) = encode_unhashed(out, uuid, type_, value)?;
    let body = out.get(start..start + len);
    let checksum = hash(key, body.or_bug("the record that was appended")?);
    put_checksum(out, start + len, checksum);
    Ok(())
}

/// Like [`encode`], but leaves zeros in place of the checksum, for [`put_checksum`] to fill. Returns (offset,
/// length) in `out` of the bytes to hash. The checksum follows them.
///
/// # Errors
/// The same as [`encode`].
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
    let zeros = out.get_mut(place..).and_then(<[u8]>::first_chunk_mut);
    debug_assert!(zeros.is_some(), "no room for a checksum at {place}");
    if let Some(zeros) = zeros {
        *zeros = checksum.to_be_bytes();
    }
}

/// Appends what is between UUID and checksum: type length, type, value length, value. In a sealed segment this is
/// the whole message.
///
/// # Errors
/// The same as [`encode`].
#[inline]
pub(in crate::format) fn encode_message(
    out: &mut Vec<u8>,
    type_: &[u8],
    value: &[u8],
) -> Result<()> {
    let type_len = u8::try_from(type_.len()).map_err(|_| {
        Error::Usage(format!(
            "the type has {} bytes: at most {MAX_TYPE_BYTES} fit into a record",
            type_.len()
        ))
    })?;
    let value_len = u32::try_from(value.len()).map_err(|_| {
        Error::Usage(format!(
            "the value has {} bytes: at most {MAX_VALUE_BYTES} fit into a record",
            value.len()
        ))
    })?;
    out.push(type_len);
    out.extend_from_slice(type_);
    out.extend_from_slice(&value_len.to_be_bytes());
    out.extend_from_slice(value);
    Ok(())
}
