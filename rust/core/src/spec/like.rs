//! Patterns of SQL's `LIKE`.

/// What a pattern begins with.
enum Token {
    /// `%`: any bytes.
    Any,
    /// `_`: one character.
    One,
    Byte(u8),
}

/// Whether all of `value` matches `pattern`: `%` stands for any bytes, also none, `_` for one character of text, or for one byte
/// where there is no UTF-8, or no text. `\%`, `\_` and `\\` stand for themselves, `\xNN` for a byte.
pub(super) fn is_like(mut value: &[u8], mut pattern: &[u8], is_text: bool) -> bool {
    let one = |value| if is_text { character_len(value) } else { 1 };
    // What the last `%` has not taken yet, and the pattern after it.
    let mut again: Option<(&[u8], &[u8])> = None;
    loop {
        let left = match token(pattern) {
            Some((Token::Any, [])) => return true,
            Some((Token::Any, rest)) => {
                again = Some((value, rest));
                Some((value, rest))
            }
            Some((Token::One, rest)) => value.get(one(value)..).map(|own| (own, rest)),
            Some((Token::Byte(byte), rest)) => match value {
                [own, after @ ..] if *own == byte => Some((after, rest)),
                _ => None,
            },
            None if value.is_empty() => return true,
            None => None,
        };
        (value, pattern) = match (left, again) {
            (Some(left), _) => left,
            (None, Some((own @ [_, ..], rest))) => {
                // `%` takes no part of a character that `_` would take the rest of.
                let taken = match token(rest) {
                    Some((Token::One, _)) => one(own),
                    _ => 1,
                };
                let after = own.get(taken..).unwrap_or_default();
                again = Some((after, rest));
                (after, rest)
            }
            _ => return false,
        };
    }
}

/// The first token of a pattern, and what follows it.
fn token(pattern: &[u8]) -> Option<(Token, &[u8])> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    if let [b'\\', b'x', high, low, rest @ ..] = pattern
        && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        && let Ok(byte) = u8::try_from(high * 16 + low)
    {
        return Some((Token::Byte(byte), rest));
    }
    Some(match pattern {
        [b'%', rest @ ..] => (Token::Any, rest),
        [b'_', rest @ ..] => (Token::One, rest),
        [b'\\', byte, rest @ ..] | [byte, rest @ ..] => (Token::Byte(*byte), rest),
        [] => return None,
    })
}

/// The length of the first character in bytes; 1 if there is none.
fn character_len(value: &[u8]) -> usize {
    const LONGEST: usize = 4;
    let start = value.get(..LONGEST).unwrap_or(value);
    let valid = start.utf8_chunks().next().map(|chunk| chunk.valid());
    let first = valid.and_then(|valid| valid.chars().next());
    first.map_or(1, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_values() {
        for (value, pattern, expected) in [
            ("", "", true),
            ("", "%", true),
            ("", "_", false),
            ("a", "", false),
            ("order.paid", "order.%", true),
            ("order.paid", "order", false),
            ("order.paid", "%paid", true),
            ("order.paid", "%.%", true),
            ("order.paid", "o%r%d", true),
            ("order.paid", "o%r%x", false),
            ("aab", "%ab", true),
            ("aaab", "a%ab_", false),
            ("abcbc", "%b_", true),
            ("Order", "order", false),
            ("é", "_", true),
            ("é", "__", false),
            ("aé€b", "a__b", true),
            ("€", "%__", false),
            ("a€", "%__", true),
            ("😀", "%___", false),
            ("100%", r"100\%", true),
            ("1000", r"100\%", false),
            ("a_b", r"a\_b", true),
            ("axb", r"a\_b", false),
            (r"a\b", r"a\\b", true),
            (r"a\b", r"a\x5cb", true),
            (r"a\", r"a\", true),
            ("xy", r"\xy", true),
        ] {
            assert_eq!(
                is_like(value.as_bytes(), pattern.as_bytes(), true),
                expected,
                "{value} {pattern}"
            );
        }
        assert!(is_like(b"a\xffb", br"a\xffb", true));
        assert!(is_like(b"a\xffb", b"a_b", true));
        assert!(is_like("é".as_bytes(), b"__", false));
        assert!(!is_like("é".as_bytes(), b"_", false));
        assert!(is_like(b"\xc3\xa9", br"%\xa9", true));
    }
}
