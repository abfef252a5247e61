//! What the messages of all dialects are made of: the compact encoding, with unsigned integers of 1 to 9 bytes, runs of
//! bytes, and arrays.
//!
//! A `uint` up to 0xfc is one byte. 0xfd, 0xfe and 0xff come before a `u16`, `u32` and `u64`, little-endian. A
//! `buffer` is a `uint` length and its bytes, an `array` a `uint` count and its items. `fixed32` and `fixed64` are
//! that many bytes.

pub(super) mod columns;
pub(super) mod fields;

use crate::bug::OrBug;
use crate::error::{Error, Finding, Result};
use crate::ledger::Cause;
use crate::saturating::saturating_usize;

/// The most items that an array may have.
const MAX_ITEMS: u64 = 0x10_0000;
/// The most bytes of a `uint`.
pub(crate) const MAX_UINT_BYTES: usize = 9;
/// A key.
pub(crate) type Key = [u8; 32];
/// The length of a key or a tree hash.
pub(crate) const KEY_BYTES: u64 = size_of::<Key>() as u64;

/// Why a message does not decode, and where, in bytes from its beginning.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) at: u64,
    pub(crate) finding: Finding,
}

/// Why reading a message ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The message does not decode. Boxed, so that the result of reading a number fits into two registers.
    Fault(Box<Fault>),
    /// Its bytes could not be read.
    Error(Box<Error>),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Error(Box::new(error))
    }
}

impl Stop {
    /// The message does not decode: at `at`, this was found. Its words are made here, so that no reader has room for them.
    #[cold]
    pub(crate) fn fault(at: u64, finding: impl FnOnce() -> Finding) -> Self {
        let finding = finding();
        Self::Fault(Box::new(Fault { at, finding }))
    }
}

/// The result of reading from a message.
pub(crate) type Read<T> = std::result::Result<T, Stop>;

/// Where some bytes of a message are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    /// Relative to the beginning of the message.
    pub(crate) at: u64,
    pub(crate) len: u64,
}

impl Run {
    pub(crate) const fn end(&self) -> u64 {
        self.at.saturating_add(self.len)
    }
}

/// Where the items of an array are, and how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Items {
    /// Where the first begins, relative to the beginning of the message.
    pub(crate) at: u64,
    pub(crate) count: u64,
}

/// A message's bytes, in memory or not.
pub(crate) trait Bytes {
    /// The `len` bytes from `at` on: a few bytes, which are within the message.
    fn run(&mut self, at: u64, len: usize) -> Result<&[u8]>;

    /// The byte at `at`, if it is in memory already: most numbers have one byte.
    fn byte(&self, at: u64) -> Option<u8> {
        let _ = at;
        None
    }

    /// Called with each number that counts messages when it was read, and with each frame when its content was
    /// read.
    fn counted(&mut self, counted: Counted) {
        let _ = counted;
    }
}

/// What a reported number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    /// This many messages back. 0 is this one.
    Back,
    /// The number of a message.
    Number,
    /// A position in a batch of messages that includes this one.
    Batch,
    /// The bytes of a frame.
    Frame,
}

/// A reported number, and where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) counts: Counts,
    pub(crate) what: &'static str,
    pub(crate) run: Run,
    pub(crate) value: u64,
}

/// A message in memory, possibly without its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body<'a> {
    bytes: &'a [u8],
    /// The missing bytes.
    cut: Run,
}

impl<'a> Body<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            cut: Run { at: 0, len: 0 },
        }
    }

    /// A message. `bytes` are all of it except `cut`.
    pub(crate) const fn without(bytes: &'a [u8], cut: Run) -> Self {
        Self { bytes, cut }
    }

    /// Bytes by their position in the whole message. Empty if they are missing.
    #[inline]
    pub(crate) fn get(&self, run: Run) -> &'a [u8] {
        let missing = match self.cut.len {
            0 => 0,
            _ if run == self.cut => return &[],
            len if run.at >= self.cut.end() => len,
            _ => 0,
        };
        let start = saturating_usize(run.at - missing);
        let end = start.checked_add(saturating_usize(run.len));
        end.and_then(|end| self.bytes.get(start..end))
            .or_bug_default("bytes of the message")
    }

    /// A reader from `at` on. The bytes before were read already.
    pub(crate) fn reader(&self, at: u64) -> Reader<Self> {
        let len = (self.bytes.len() as u64).saturating_add(self.cut.len);
        Reader::new(*self, at, len)
    }
}

impl Bytes for Body<'_> {
    #[inline]
    fn run(&mut self, at: u64, len: usize) -> Result<&[u8]> {
        let len = len as u64;
        Ok(self.get(Run { at, len }))
    }

    #[inline]
    fn byte(&self, at: u64) -> Option<u8> {
        if self.cut.len > 0 {
            return None;
        }
        self.bytes.get(saturating_usize(at)).copied()
    }
}

/// Reads a message forward. Allocates nothing, whatever the message claims.
#[derive(Debug)]
pub(crate) struct Reader<B> {
    bytes: B,
    at: u64,
    end: u64,
}

impl<B: Bytes> Reader<B> {
    /// Reads from `at` to `end`, both relative to the beginning of the message.
    pub(crate) const fn new(bytes: B, at: u64, end: u64) -> Self {
        Self { bytes, at, end }
    }

    pub(crate) const fn at(&self) -> u64 {
        self.at
    }

    /// Goes on at another offset, relative to the beginning of the message.
    pub(crate) const fn go_to(&mut self, at: u64) {
        self.at = at;
    }

    pub(crate) const fn left(&self) -> u64 {
        self.end.saturating_sub(self.at)
    }

    #[cold]
    fn short(&self, what: &'static str, at: u64, needed: u64) -> Stop {
        let left = self.end.saturating_sub(at);
        Stop::fault(at, || {
            Finding::words(
                Cause::LengthOutOfBounds,
                format!("{needed} bytes for {what} at byte {at} of the message"),
                format!("{left} bytes left in what contains it"),
            )
        })
    }

    #[inline]
    fn array<const N: usize>(&mut self, what: &'static str) -> Read<[u8; N]> {
        let len = N as u64;
        let at = self.at;
        if self.left() < len {
            return Err(self.short(what, at, len));
        }
        match self.bytes.run(at, N)?.first_chunk::<N>() {
            Some(array) => {
                let array = *array;
                self.at += len;
                Ok(array)
            }
            None => Err(self.short(what, at, len)),
        }
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Read<u8> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    /// Reads an integer of any width, minimal or not.
    #[inline(always)]
    pub(crate) fn uint(&mut self, what: &'static str) -> Read<u64> {
        match self.bytes.byte(self.at) {
            Some(small @ ..0xfd) if self.at < self.end => {
                self.at += 1;
                Ok(small.into())
            }
            _ => self.any_uint(what),
        }
    }

    fn any_uint(&mut self, what: &'static str) -> Read<u64> {
        let at = self.at;
        let first = self.u8(what)?;
        let width = uint_bytes(first);
        if self.left() < width - 1 {
            return Err(self.short(what, at, width));
        }
        Ok(match first {
            0xfd => u16::from_le_bytes(self.array(what)?).into(),
            0xfe => u32::from_le_bytes(self.array(what)?).into(),
            0xff => u64::from_le_bytes(self.array(what)?),
            small => small.into(),
        })
    }

    /// Reads an integer that counts messages.
    pub(crate) fn counted(&mut self, counts: Counts, what: &'static str) -> Read<u64> {
        let at = self.at;
        let value = self.uint(what)?;
        let len = self.at - at;
        self.bytes.counted(Counted {
            counts,
            what,
            run: Run { at, len },
            value,
        });
        Ok(value)
    }

    /// Skips bytes, and returns where they are.
    #[inline]
    pub(crate) fn run(&mut self, len: u64, what: &'static str) -> Read<Run> {
        let at = self.at;
        if self.left() < len {
            return Err(self.short(what, at, len));
        }
        self.at += len;
        Ok(Run { at, len })
    }

    pub(crate) fn buffer(&mut self, what: &'static str) -> Read<Run> {
        let len = self.uint(what)?;
        self.run(len, what)
    }

    /// Reads an array's count. There must be room for items of at least `least` bytes each.
    #[inline]
    pub(crate) fn count(&mut self, what: &'static str, least: u64) -> Read<u64> {
        let at = self.at;
        let count = self.uint(what)?;
        let needed = count.saturating_mul(least);
        if needed > self.left() {
            let here = self.at;
            return Err(self.short(what, here, needed));
        }
        if count > MAX_ITEMS {
            return Err(Stop::fault(at, || {
                Finding::words(
                    Cause::LengthOutOfBounds,
                    format!("at most {MAX_ITEMS} items in {what} at byte {at} of the message"),
                    format!("{count}"),
                )
            }));
        }
        Ok(count)
    }

    /// Reads an array. `item` reads each item.
    // Inlining makes reading a message a twentieth faster: each caller reads items of its own.
    #[inline(always)]
    pub(crate) fn items(
        &mut self,
        what: &'static str,
        least: u64,
        mut item: impl FnMut(&mut Self) -> Read<()>,
    ) -> Read<Items> {
        let count = self.count(what, least)?;
        let at = self.at;
        for _ in 0..count {
            item(self)?;
        }
        Ok(Items { at, count })
    }

    /// Reads a frame with `content`: a `uint` length and its bytes. Bytes that are left over are skipped.
    pub(crate) fn frame<T>(
        &mut self,
        what: &'static str,
        content: impl FnOnce(&mut Self) -> Read<T>,
    ) -> Read<T> {
        let at = self.at;
        let value = self.uint(what)?;
        let frame = self.run(value, what)?;
        let outer = self.end;
        (self.at, self.end) = (frame.at, frame.end());
        let content = content(self);
        (self.at, self.end) = (frame.end(), outer);
        let len = frame.at - at;
        self.bytes.counted(Counted {
            counts: Counts::Frame,
            what,
            run: Run { at, len },
            value,
        });
        content
    }

    /// Reads what is there only if `present`.
    #[inline(always)]
    pub(crate) fn only_if<T>(
        &mut self,
        present: bool,
        read: impl FnOnce(&mut Self) -> Read<T>,
    ) -> Read<Option<T>> {
        Ok(if present { Some(read(self)?) } else { None })
    }

    /// Fails if bytes are left over.
    pub(crate) fn finish(&self) -> Read<()> {
        let (at, left) = (self.at, self.left());
        if left == 0 {
            return Ok(());
        }
        Err(Stop::fault(at, || {
            Finding::words(
                Cause::TrailingBytes,
                format!("the message to end with its last field, after byte {at}"),
                format!("{left} bytes more"),
            )
        }))
    }
}

/// The length of the `uint` that begins with this byte.
pub(crate) const fn uint_bytes(first: u8) -> u64 {
    match first {
        0xfd => 3,
        0xfe => 5,
        0xff => 9,
        _ => 1,
    }
}

/// Appends an integer in its shortest form.
pub(crate) fn put_uint(out: &mut Vec<u8>, value: u64) {
    if let Ok(small @ 0..=0xfc) = u8::try_from(value) {
        out.push(small);
    } else if let Ok(value) = u16::try_from(value) {
        out.push(0xfd);
        out.extend_from_slice(&value.to_le_bytes());
    } else if let Ok(value) = u32::try_from(value) {
        out.push(0xfe);
        out.extend_from_slice(&value.to_le_bytes());
    } else {
        out.push(0xff);
        out.extend_from_slice(&value.to_le_bytes());
    }
}

/// Appends a length and the bytes.
pub(crate) fn put_buffer(out: &mut Vec<u8>, bytes: &[u8]) {
    put_uint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uint(bytes: &[u8]) -> Option<(u64, u64)> {
        let mut reader = Body::new(bytes).reader(0);
        let value = reader.uint("a number").ok()?;
        Some((value, reader.at()))
    }

    #[test]
    fn every_width_is_read_and_the_least_is_written() {
        for (value, width) in [
            (0, 1),
            (0xfc, 1),
            (0xfd, 3),
            (0xffff, 3),
            (0x1_0000, 5),
            (0xffff_ffff, 5),
            (0x1_0000_0000, 9),
            (u64::MAX, 9),
        ] {
            let mut bytes = Vec::new();
            put_uint(&mut bytes, value);
            assert_eq!(bytes.len(), width);
            assert_eq!(uint(&bytes), Some((value, width as u64)));
            bytes.pop();
            assert_eq!(uint(&bytes), None, "one byte is missing");
        }
        assert_eq!(uint(b"\xfd\x05\0"), Some((5, 3)));
        assert_eq!(uint(b"\xff\x05\0\0\0\0\0\0\0"), Some((5, 9)));
    }

    #[test]
    fn a_body_without_its_value_reads_as_if_it_were_there() {
        let cut = Run { at: 3, len: 4 };
        let body = Body::without(b"abchijklm", cut);
        assert_eq!(body.get(Run { at: 0, len: 3 }), b"abc");
        assert_eq!(body.get(cut), b"");
        assert_eq!(body.get(Run { at: 7, len: 3 }), b"hij");
        assert_eq!(body.reader(7).left(), 6);
    }
}
