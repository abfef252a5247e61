//! Shows bytes as text so that different bytes give different texts, and makes text safe for messages.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

/// Shows types and tenant IDs as text: UTF-8, with `\xNN` (lower-case hex) for each byte that is not part of valid
/// UTF-8, and `\x5c` for a backslash.
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

/// The bytes that [`escape`] shows as `text`; `None` if it shows none so (a backslash without a following `xNN`).
#[must_use]
pub fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let Some((plain, escapes)) = text.split_once('\\') else {
        return Some(text.as_bytes().to_vec());
    };
    out.extend_from_slice(plain.as_bytes());
    for part in escapes.split('\\') {
        let hex = part.strip_prefix('x')?;
        let (digits, rest) = hex.as_bytes().split_first_chunk()?;
        out.push(hex_byte(*digits)?);
        out.extend_from_slice(rest);
    }
    Some(out)
}

/// The byte of two hexadecimal digits; `None` if they are not digits.
pub(crate) fn hex_byte(digits: [u8; 2]) -> Option<u8> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    };
    let [high, low] = digits;
    Some(digit(high)? << 4 | digit(low)?)
}

/// Escapes all characters that are not printable (`\n`, `\x1b`, `\u202e`): control characters, line breaks, and
/// invisible characters that change how text reads. Error messages go to terminals and logs, and may quote a stranger's
/// text. Backslashes stay unescaped, so the result is for people and cannot be reversed.
///
/// ```
/// assert_eq!(seglake::text::printable("order\u{1b}[31m\n"), r"order\x1b[31m\n");
/// ```
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_printable) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        // Writing to a String cannot fail.
        let _ = match (character, u32::from(character)) {
            _ if is_printable(character) => write!(out, "{character}"),
            ('\n', _) => write!(out, r"\n"),
            ('\r', _) => write!(out, r"\r"),
            ('\t', _) => write!(out, r"\t"),
            (_, code @ ..0x100) => write!(out, r"\x{code:02x}"),
            (_, code @ ..0x1_0000) => write!(out, r"\u{code:04x}"),
            (_, code) => write!(out, r"\U{code:08x}"),
        };
    }
    Cow::Owned(out)
}

/// Shows a path as [`printable`] text, with `\xNN` for each byte that is not part of valid UTF-8.
#[must_use]
pub fn path(path: &Path) -> String {
    let mut out = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        out.push_str(&printable(chunk.valid()));
        for byte in chunk.invalid() {
            let _ = write!(out, r"\x{byte:02x}");
        }
    }
    out
}

/// Whether all bytes are readable text. A character that is cut off at the end is valid.
pub(crate) fn is_readable(bytes: &[u8]) -> bool {
    let is_readable = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0x80..);
    let is_utf8 = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    is_utf8 && bytes.iter().all(is_readable)
}

fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return !character.is_ascii_control();
    }
    // The standard library's `Debug` knows which characters are printable. The letter before it prevents an escape of
    // leading accents.
    let text: String = ['a', character].into_iter().collect();
    text.escape_debug().count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_on_is_spelled_out() {
        for (text, shown) in [
            ("größe 東京 🙂 e\u{301}", "größe 東京 🙂 e\u{301}"),
            ("a\tb\r\nc\0\u{7f}", r"a\tb\r\nc\x00\x7f"),
            ("\u{9b}31m\u{85}", r"\x9b31m\x85"),
            ("\u{202e}gpj.exe\u{2069}", r"\u202egpj.exe\u2069"),
            ("\u{2028}\u{200b}\u{feff}\u{a0}", r"\u2028\u200b\ufeff\xa0"),
            ("\u{e0041}", r"\U000e0041"),
            (r#"back\slash "quoted" 'so'"#, r#"back\slash "quoted" 'so'"#),
        ] {
            assert_eq!(printable(text), shown);
            assert_eq!(path(Path::new(text)), shown);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_path_that_is_no_text_is_shown() {
        use std::os::unix::ffi::OsStrExt;
        let name = std::ffi::OsStr::from_bytes(b"a\xff\x1b\xc3\xa4");
        assert_eq!(path(Path::new(name)), r"a\xff\x1bä");
    }

    #[test]
    fn bytes_are_two_digits_of_either_case() {
        for byte in 0..=u8::MAX {
            for text in [format!("{byte:02x}"), format!("{byte:02X}")] {
                let digits = text.as_bytes().first_chunk().copied();
                assert_eq!(digits.map(hex_byte), Some(Some(byte)));
            }
        }
        for digits in [b"/0", b"0:", b"@0", b"0G", b"`0", b"0g", b"+1", b" 1"] {
            assert_eq!(hex_byte(*digits), None);
        }
        for text in [r"a\", r"\x", r"\x1", r"\x1é", r"\y11", r"\\"] {
            assert_eq!(unescape(text), None, "{text}");
        }
        assert_eq!(unescape(r"a\x5cb\xFFc"), Some(b"a\\b\xffc".to_vec()));
    }

    proptest::proptest! {
        #[test]
        fn different_bytes_show_differently(bytes: Vec<u8>) {
            assert_eq!(unescape(&escape(&bytes)).as_deref(), Some(bytes.as_slice()));
        }
    }
}
