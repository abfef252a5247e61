//! Messages to bytes.

use super::super::active::{MAX_TYPE_BYTES, MAX_VALUE_BYTES};
use crate::error::{Error, Result};

/// Appends one message to `out` as it stands in the data of a segment: type length, type, value length, value. Its UUID is in
/// the index.
///
/// # Errors
/// [`Error::Usage`] for a type of more than [`MAX_TYPE_BYTES`] or a value of more than [`MAX_VALUE_BYTES`]; `out` is then
/// as it was.
pub fn encode(out: &mut Vec<u8>, type_: &[u8], value: &[u8]) -> Result<()> {
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
