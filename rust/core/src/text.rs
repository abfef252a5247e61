//! Bytes that are meant to be text, shown so that different bytes always show differently.

use std::borrow::Cow;
use std::fmt::Write;

/// Types and tenant IDs as text: UTF-8, with `\xNN` (lower-case hex) for each byte that is not part of valid UTF-8, and
/// `\x5c` for a backslash.
///
/// ```
/// assert_eq!(seglake::text::escape(b"order.created"), "order.created");
/// assert_eq!(seglake::text::escape(b"a\xffb\\"), r"a\xffb\x5c");
/// ```
#[must_use]
pub fn escape(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && !bytes.contains(&b'\\')
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => out.push_str(r"\x5c"),
                other => out.push(other),
            }
        }
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(out, r"\x{byte:02x}");
        }
    }
    Cow::Owned(out)
}

/// The bytes that [`escape`] shows as `text`; `None` where no bytes show so (a backslash that begins no `\xNN`).
#[must_use]
pub fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut parts = text.split('\\');
    out.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        let hex = part.strip_prefix('x')?;
        let (digits, rest) = hex.split_at_checked(2)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        out.push(u8::from_str_radix(digits, 16).ok()?);
        out.extend_from_slice(rest.as_bytes());
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn different_bytes_show_differently(bytes: Vec<u8>) {
            assert_eq!(unescape(&escape(&bytes)).as_deref(), Some(bytes.as_slice()));
        }
    }
}
