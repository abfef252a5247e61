//! What a strict error says about damage: the expected and the actual values.

use super::claims::Origin;
use super::front::Front;
use super::judge;
use super::probe::{Hashed, Input, block_crc};
use super::toc::{Entry, TOC_START};
use super::{MAGIC, VERSION_1};
use crate::bug::OrBug;
use crate::error::{Damage, Finding, Result};
use crate::ledger::{Cause, Span};
use crate::source::{Window, read_array};
use crate::text::escape;

/// How many characters of a tenant ID an error shows.
const SHOWN_CHARACTERS: usize = 60;

/// The damage of this range of the ledger.
pub(super) fn explain(input: &Input, span: &Span, origin: Origin) -> Result<Damage> {
    let cause = span.cause.or_bug("the cause of damage")?;
    let finding = match origin {
        Origin::Entry(at) => entry_at(input, at, cause)?,
        Origin::Tenants(expected) if cause == Cause::CountMismatch => Finding::Number {
            cause,
            what: "the number of tenants",
            expected,
            actual: u32::from_be_bytes(read_array(&*input.source, span.start)?).into(),
        },
        Origin::Tenants(_) => cut_count(span),
        Origin::None if cause == Cause::SearchLimit => search_limit(),
        Origin::None if span.start < input.front.end().max(TOC_START) => {
            front_finding(input, span, cause)?
        }
        Origin::None => Finding::words(
            cause,
            "a block that the table of contents names",
            format!("{} bytes that no entry accounts for", span.len()),
        ),
    };
    Ok(damage(input, span.start, finding))
}

/// The damage that prevents returning an entry's messages.
pub(super) fn explain_entry(input: &Input, entry: &Entry, cause: Cause) -> Result<Damage> {
    let offset = match cause {
        Cause::IndexDisagrees | Cause::OffsetOutOfBounds => entry.at,
        _ => entry.offset,
    };
    Ok(damage(input, offset, entry_finding(input, entry, cause)?))
}

fn damage(input: &Input, offset: u64, finding: Finding) -> Damage {
    Damage::new(input.source.path(), offset, finding)
}

fn front_finding(input: &Input, span: &Span, cause: Cause) -> Result<Finding> {
    let front = &input.front;
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
        (at, Cause::UnsupportedVersion) => {
            let expected = match at {
                0 => "version 1 or 2",
                _ => "version 2, by the CRC-32 of the table of contents",
            };
            Finding::words(cause, expected, format!("version {}", front.stated_version))
        }
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
        (6, _) if front.ends_after_toc() => Finding::words(
            cause,
            "the number of partitions after the table of contents",
            "the end of the file",
        ),
        (6, _) => number("the number of entries", front.entries, front.stated.into()),
        (at, Cause::CountMismatch) if Some(at) == front.toc_end => number(
            "the number of partitions",
            front.partitions,
            front
                .partitions_found
                .or_bug("the number that is wrong")?
                .into(),
        ),
        (at, Cause::TruncatedHeader) if Some(at) == front.toc_end => cut_count(span),
        (at, _) => entry_at(input, at, cause)?,
    })
}

/// Why the entry at `at` failed or is marked.
fn entry_at(input: &Input, at: u64, cause: Cause) -> Result<Finding> {
    match input.entries(at, 1).next(&*input.source)? {
        Some(entry) => entry_finding(input, &entry, cause),
        None => Err(input.changed()),
    }
}

/// What is wrong with an entry, or with what it names.
fn entry_finding(input: &Input, entry: &Entry, cause: Cause) -> Result<Finding> {
    let (front, label) = (&input.front, label(&input.front, entry));
    let (first, len) = (front.first_block(), front.len);
    let (offset, length) = (entry.offset, entry.length);
    let left_in_file = || format!("{} bytes left in the file", len.saturating_sub(offset));
    let (expected, actual): (String, String) = match cause {
        Cause::OffsetOutOfBounds => (
            format!("an offset of at least {first} within the file of {len} bytes for {label}"),
            format!("offset {offset}"),
        ),
        Cause::OutOfOrder => (
            "partitions, tenants and offsets that ascend".into(),
            format!("{label} at offset {offset}"),
        ),
        Cause::LengthOutOfBounds if judge::is_beyond(front, entry) => (
            format!("{length} bytes at offset {offset} for {label}, as the table of contents says"),
            left_in_file(),
        ),
        Cause::LengthOutOfBounds => (
            format!("counts and lengths that fit in {label}"),
            "a count or length that leads past its end".into(),
        ),
        Cause::TruncatedHeader => (
            format!("4 bytes for the number of tenants of {label}"),
            left_in_file(),
        ),
        Cause::CountMismatch => (
            format!("as many messages as {label} states, and nothing after them"),
            format!("a block of {length} bytes that has more or fewer"),
        ),
        Cause::ChecksumMismatch => {
            // The bytes are read once more.
            let computed = crc_of(input, entry)?;
            if computed == entry.crc {
                return Err(input.changed());
            }
            return Ok(Finding::Checksum {
                stored: entry.crc.into(),
                computed: Some(computed.into()),
            });
        }
        Cause::SearchLimit => return Ok(search_limit()),
        _ => (
            format!("what the table of contents says: {label} at offset {offset}, {length} bytes"),
            "something else at that offset".into(),
        ),
    };
    Ok(Finding::words(cause, expected, actual))
}

/// The CRC-32 of the bytes that an entry names.
fn crc_of(input: &Input, entry: &Entry) -> Result<u32> {
    let (source, options, len) = (&*input.source, &input.options, input.front.len);
    let len = entry.block_end().min(len) - entry.offset.min(len);
    let hashed = Hashed::read(source, options, &mut Window::default(), entry.offset, len)?;
    Ok(block_crc(entry.partition, &hashed.crc))
}

fn label(front: &Front, entry: &Entry) -> String {
    if front.version == VERSION_1 {
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
