//! Searching a source for heads (rule 1).

use super::bytes::read;
use super::layout::{HEAD_BYTES, Head, MAGIC};
use crate::error::Result;
use crate::source::Source;

/// How many bytes are read at a time to search them.
const WINDOW_BYTES: u64 = 64 << 10;

/// Finds heads in a sidecar.
pub(super) struct Heads<'a> {
    source: &'a dyn Source,
    window: Vec<u8>,
    window_start: u64,
}

impl<'a> Heads<'a> {
    pub(super) fn new(source: &'a dyn Source) -> Self {
        Self {
            source,
            window: Vec::new(),
            window_start: 0,
        }
    }

    /// The head at an offset.
    pub(super) fn at(&self, offset: u64) -> Result<Option<Head>> {
        if offset
            .checked_add(HEAD_BYTES as u64)
            .is_none_or(|end| end > self.source.len())
        {
            return Ok(None);
        }
        let mut bytes = [0; HEAD_BYTES];
        self.source.read_exact_at(offset, &mut bytes)?;
        Ok(Head::parse(&bytes))
    }

    /// The first head from `start` on and before `end`.
    pub(super) fn next(&mut self, mut start: u64, end: u64) -> Result<Option<(u64, Head)>> {
        let last = self.source.len().saturating_sub(HEAD_BYTES as u64 - 1);
        let end = end.min(last);
        while start < end {
            let from = start.checked_sub(self.window_start);
            let from = from.and_then(|from| usize::try_from(from).ok());
            let rest = from.and_then(|from| self.window.get(from..));
            let Some(rest) = rest.filter(|rest| rest.len() >= HEAD_BYTES) else {
                // Nothing is read twice, except for the bytes of a head that two windows share.
                self.window = read(self.source, start, start + WINDOW_BYTES)?;
                self.window_start = start;
                continue;
            };
            let Some(found) = rest
                .windows(MAGIC.len())
                .position(|bytes| bytes == MAGIC.as_slice())
            else {
                start += (rest.len() - MAGIC.len() + 1) as u64;
                continue;
            };
            start += found as u64;
            if start >= end {
                break;
            }
            if let Some(bytes) = rest.get(found..).and_then(<[u8]>::first_chunk) {
                if let Some(head) = Head::parse(bytes) {
                    return Ok(Some((start, head)));
                }
                start += 1;
            } else {
                self.window.clear();
            }
        }
        Ok(None)
    }

    /// Whether a head at `offset` is the first of a pair.
    pub(super) fn is_pair(&self, offset: u64, head: &Head) -> Result<bool> {
        if head.is_second {
            return Ok(false);
        }
        let second = offset.checked_add(head.geometry().second_front() as u64);
        let Some(second) = second else {
            return Ok(false);
        };
        let expected = Head {
            is_second: true,
            ..*head
        };
        Ok(self.at(second)? == Some(expected))
    }
}
