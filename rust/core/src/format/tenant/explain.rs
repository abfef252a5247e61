//! What a strict error says of damage: what should have been there, and what was.

use std::borrow::Cow;

use super::front::u32_at;
use super::layout::Origin;
use super::probe::block_crc;
use super::toc::{Entry, TOC_START};
use super::walk::TenantScan;
use super::{MAGIC, VERSION_1};
use crate::error::{Damage, Finding, Result};
use crate::ledger::{Cause, Span};
use crate::text::escape;

/// How much of a tenant ID an error shows, in characters.
const SHOWN_CHARACTERS: usize = 60;

impl TenantScan {
    /// The damage that this range of the ledger is.
    pub(super) fn explain(&self, span: &Span, origin: Origin) -> Result<Damage> {
        let cause = span.cause.unwrap_or(Cause::Unreferenced);
        let finding = match origin {
            Origin::Entry(at) => self.explain_entry(at, cause)?,
            Origin::Tenants(expected) if cause == Cause::CountMismatch => Finding::Number {
                cause,
                what: "the number of tenants",
                expected,
                actual: u32_at(&*self.source, span.start)?.into(),
            },
            Origin::Tenants(_) => cut_count(span),
            Origin::None if cause == Cause::SearchLimit => search_limit(),
            Origin::None if span.start < self.front.end().max(TOC_START) => {
                self.explain_front(span, cause)?
            }
            Origin::None => Finding::words(
                cause,
                "a block that the table of contents names",
                format!("{} bytes that no entry accounts for", span.len()),
            ),
        };
        Ok(Damage {
            path: self.source.path().map(Into::into),
            offset: span.start,
            cause,
            finding,
            wrong_key: false,
        })
    }

    fn explain_front(&self, span: &Span, cause: Cause) -> Result<Finding> {
        let front = &self.front;
        let number = |what, expected, actual| Finding::Number {
            cause,
            what,
            expected,
            actual,
        };
        Ok(match (span.start, cause) {
            (0, Cause::BadMagic) => Finding::words(
                cause,
                format!("the magic {MAGIC:#010x}, TSEG"),
                format!("{:#010x}", front.magic),
            ),
            (0, Cause::UnsupportedVersion) => Finding::words(
                cause,
                "version 1 or 2",
                format!("version {}", front.version),
            ),
            (0, Cause::TruncatedHeader) => Finding::words(
                cause,
                "at least 10 bytes for magic, version and number of entries",
                format!("a file of {} bytes", front.len),
            ),
            (0, Cause::LengthOutOfBounds) => Finding::words(
                cause,
                format!("a table of contents of {} entries", front.stated),
                format!(
                    "a file of {} bytes, in which such a table does not fit",
                    front.len
                ),
            ),
            (0, Cause::HeaderChecksumMismatch) => Finding::words(
                cause,
                format!(
                    "CRC-32 {:#010x} of the table of contents, as stored",
                    front.stored_crc
                ),
                format!("bytes whose CRC-32 is {:#010x}", front.computed_crc),
            ),
            (6, _) if front.ends_behind_nothing() => Finding::words(
                cause,
                "the number of partitions behind the table of contents",
                "the end of the file",
            ),
            (6, _) => number("the number of entries", front.entries, front.stated.into()),
            (at, Cause::CountMismatch) if Some(at) == front.toc_end => number(
                "the number of partitions",
                front.partitions,
                front.partitions_found.unwrap_or_default().into(),
            ),
            (at, Cause::TruncatedHeader) if Some(at) == front.toc_end => cut_count(span),
            (at, _) => self.explain_entry(at, cause)?,
        })
    }

    /// Why the entry at `at` failed, or what is wrong with it.
    fn explain_entry(&self, at: u64, cause: Cause) -> Result<Finding> {
        let mut entries = self.front.from(&self.options, at, 1);
        let Some(entry) = entries.next(&*self.source)? else {
            return Err(self.changed());
        };
        self.entry_finding(&entry, cause)
    }

    /// What is wrong with an entry, or with what it names.
    pub(super) fn entry_finding(&self, entry: &Entry, cause: Cause) -> Result<Finding> {
        let len = self.front.len;
        let label = self.label(entry);
        let (expected, actual): (Cow<'_, str>, Cow<'_, str>) = match cause {
            Cause::OffsetOutOfBounds => (
                format!(
                    "an offset of at least {} within the file of {len} bytes for {label}",
                    self.front.first_block()
                )
                .into(),
                format!("offset {}", entry.offset).into(),
            ),
            Cause::OutOfOrder => (
                "partitions, tenants and offsets that ascend".into(),
                format!("{label} at offset {}", entry.offset).into(),
            ),
            Cause::LengthOutOfBounds if entry.block_end() > len => (
                format!(
                    "{} bytes at offset {} for {label}, as the table of contents says",
                    entry.length, entry.offset
                )
                .into(),
                format!(
                    "{} bytes left in the file",
                    len.saturating_sub(entry.offset)
                )
                .into(),
            ),
            Cause::LengthOutOfBounds => (
                format!("counts and lengths that fit in {label}").into(),
                "a count or length that leads beyond it".into(),
            ),
            Cause::TruncatedHeader => (
                format!("4 bytes for the number of tenants of {label}").into(),
                format!(
                    "{} bytes left in the file",
                    len.saturating_sub(entry.offset)
                )
                .into(),
            ),
            Cause::CountMismatch => (
                format!("as many messages as {label} states, and nothing behind them").into(),
                format!("a block of {} bytes that has more or fewer", entry.length).into(),
            ),
            Cause::ChecksumMismatch => {
                return Ok(Finding::Checksum {
                    stored: entry.crc.into(),
                    computed: Some(self.crc_of(entry)?.into()),
                });
            }
            Cause::SearchLimit => return Ok(search_limit()),
            _ => (
                format!(
                    "what the table of contents says: {label} at offset {}, {} bytes",
                    entry.offset, entry.length
                )
                .into(),
                "something else there".into(),
            ),
        };
        Ok(Finding::words(
            cause,
            expected.into_owned(),
            actual.into_owned(),
        ))
    }

    /// The CRC-32 of the bytes that an entry names.
    fn crc_of(&self, entry: &Entry) -> Result<u32> {
        let mut probe = super::probe::Probe::default();
        let len = entry.block_end().min(self.front.len) - entry.offset.min(self.front.len);
        let pieces = probe.hash(&*self.source, &self.options, entry.offset, len)?;
        Ok(block_crc(entry.partition, &pieces.crc))
    }

    fn label(&self, entry: &Entry) -> String {
        if self.front.version == VERSION_1 {
            return format!("partition {}", entry.partition);
        }
        let shown = match entry.tenant.bytes() {
            Some(bytes) => escape(bytes).into_owned(),
            None => format!("of {} bytes", entry.tenant.len),
        };
        let mut tenant: String = shown.chars().take(SHOWN_CHARACTERS).collect();
        if tenant.len() < shown.len() {
            tenant.push('…');
        }
        format!("partition {}, tenant {tenant:?}", entry.partition)
    }
}

fn cut_count(span: &Span) -> Finding {
    Finding::words(
        Cause::TruncatedHeader,
        "4 bytes for a number of partitions or tenants",
        format!("{} bytes left in the file", span.len()),
    )
}

fn search_limit() -> Finding {
    Finding::words(
        Cause::SearchLimit,
        "damage that can be searched within the budget",
        "so much of it that the search ended here",
    )
}
