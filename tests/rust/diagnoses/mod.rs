//! Sound files to damage, and the diagnosis of the damaged ones.

use std::sync::Arc;

use seglake::checksum::Key;
use seglake::format::{
    Format, IndexSource, Options, Start, Step, active, chunked, open, sealed, tenant,
};
use seglake::source::Source;
use seglake::verbs::{DiagnoseOptions, Diagnosis, Reason, Repair, Report, diagnose, verify};

use crate::common::sealed as sealed_segments;
use crate::common::{self, chunked as chunks, uuid};
use crate::tenant_segments;

/// A sound file of records whose values are noise of this many bytes.
pub(crate) struct Sound {
    pub(crate) format: &'static Format,
    pub(crate) bytes: Vec<u8>,
}

impl Sound {
    pub(crate) fn options(&self) -> Options {
        Options::default()
            .format(self.format)
            .index(IndexSource::None)
            .strict(false)
    }

    /// The diagnosis of the file with these bytes instead.
    pub(crate) fn explained(&self, bytes: &[u8]) -> (Report, Vec<Diagnosis>) {
        explained(common::source(bytes), &self.options())
    }

    /// The same file with something done to it.
    pub(crate) fn damaged(&self, damage: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        damage(&mut bytes);
        bytes
    }
}

pub(crate) fn explained(source: Arc<dyn Source>, options: &Options) -> (Report, Vec<Diagnosis>) {
    let report = verify(source.clone(), options, |_| Ok(())).unwrap();
    let how = DiagnoseOptions::default();
    let found = diagnose(&source, options, &report, &how, |_| Ok(())).unwrap();
    (report, found)
}

pub(crate) fn active(records: u64, value_len: usize, unused: usize) -> Sound {
    let values = (0..records).map(|seed| ("note", chunks::noise(seed + 1, value_len)));
    let mut bytes = common::segment(&Key::DEFAULT, &values.collect::<Vec<_>>());
    bytes.resize(bytes.len() + unused, 0);
    Sound {
        format: &active::FORMAT,
        bytes,
    }
}

pub(crate) fn sealed(records: u64, value_len: usize, trailer: bool) -> Sound {
    let record = |seed| {
        let value = chunks::noise(seed + 1, value_len);
        (uuid(1000 + seed), b"note".to_vec(), value)
    };
    let records: Vec<_> = (0..records).map(record).collect();
    Sound {
        format: &sealed::FORMAT,
        bytes: sealed_segments::segment(&Key::DEFAULT, &records, trailer),
    }
}

pub(crate) fn tenant(version: u16, blocks: u32, value_len: usize) -> Sound {
    let message = |number: u32| {
        let tenant = format!("tenant-{:04}", number % 1000).into_bytes();
        (
            number / 3,
            tenant,
            chunks::noise(u64::from(number) + 1, value_len),
        )
    };
    let messages: Vec<_> = (0..blocks).map(message).collect();
    Sound {
        format: &tenant::FORMAT,
        bytes: tenant_segments::encode(version, &messages).bytes,
    }
}

/// One partition of this many tenants, each with an empty message.
pub(crate) fn tenants(count: u32) -> Sound {
    let message = |number: u32| (7, number.to_be_bytes().to_vec(), Vec::new());
    let messages: Vec<_> = (0..count).map(message).collect();
    Sound {
        format: &tenant::FORMAT,
        bytes: tenant_segments::encode(2, &messages).bytes,
    }
}

pub(crate) fn chunked(chunks: i64, value_len: usize) -> Sound {
    Sound {
        format: &chunked::FORMAT,
        bytes: chunks::segment(chunks, 2, value_len),
    }
}

/// One of each format that has checksums.
pub(crate) fn checksummed(records: u32, value_len: usize) -> Vec<Sound> {
    vec![
        active(records.into(), value_len, 0),
        sealed(records.into(), value_len, true),
        tenant(2, records, value_len),
        chunked(records.into(), value_len),
    ]
}

pub(crate) fn repairs(found: &[Diagnosis]) -> Vec<&Repair> {
    found.iter().flat_map(|own| &own.repairs).collect()
}

/// The diagnosis in a few words, for failed assertions.
pub(crate) fn shown(found: &[Diagnosis]) -> String {
    let lines = found.iter().map(|own| {
        format!(
            "{:?} {} ({:?}): {}",
            own.span, own.reason, own.certainty, own.evidence
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Asserts that a file with these bytes is damaged for this reason alone. Returns the diagnosis.
#[track_caller]
pub(crate) fn assert_reason(sound: &Sound, bytes: &[u8], reason: Reason) -> Vec<Diagnosis> {
    let (report, found) = sound.explained(bytes);
    assert!(!report.is_sound(), "{} is sound", sound.format.name);
    assert!(
        found.iter().any(|own| own.reason == reason),
        "{}: no {reason}\n{}",
        sound.format.name,
        shown(&found)
    );
    let allowed = |own: &Diagnosis| {
        let is_shorter = reason == Reason::MissingBytes && own.reason == Reason::Truncated;
        let is_open = matches!(own.reason, Reason::Consequence | Reason::Unknown);
        own.reason == reason || is_open || is_shorter
    };
    assert!(
        found.iter().all(allowed),
        "{}\n{}",
        sound.format.name,
        shown(&found)
    );
    found
}

/// Where records begin; of a chunked segment, where chunks do.
pub(crate) fn positions(sound: &Sound) -> Vec<usize> {
    let mut walk = open(
        common::source(&sound.bytes),
        &sound.options(),
        Start::Beginning,
    )
    .unwrap();
    let mut positions = Vec::new();
    while walk.step().unwrap() == Step::More {
        let rows = walk.rows();
        let of_row = |row| usize::try_from(rows.position(row)).unwrap();
        positions.extend((0..rows.len()).map(of_row));
    }
    positions.dedup();
    positions
}
