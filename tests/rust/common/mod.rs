//! What several test files need: reading a segment whole, and making one.

pub(crate) mod chunked;
pub(crate) mod counting;
pub(crate) mod sealed;

use std::env;
use std::iter::StepBy;
use std::ops::Range;
use std::sync::Arc;

use seglake::checksum::Key;
use seglake::format::{Format, Options, Start, Step, Value, Walk, active, by_name, open};
use seglake::ledger::Span;
use seglake::source::{BytesSource, Source};

/// A record as plain values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plain {
    pub(crate) position: u64,
    pub(crate) uuid: [u8; 16],
    pub(crate) type_: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

/// The format that the options name.
pub(crate) fn format_of(options: &Options) -> &'static Format {
    by_name(options.format.unwrap().name).unwrap()
}

/// Options that add damage to the ledger and continue.
pub(crate) fn lenient() -> Options {
    Options::default().format(&active::FORMAT).strict(false)
}

/// The bits of so many bytes that are flipped, one after another: each third, and so each of a byte somewhere. `make test-more` flips
/// all.
pub(crate) fn bits(bytes: usize) -> StepBy<Range<usize>> {
    let all = env::var_os("SEGLAKE_EVERY_BIT").is_some();
    (0..bytes * 8).step_by(if all { 1 } else { 3 })
}

pub(crate) fn source(bytes: &[u8]) -> Arc<dyn Source> {
    Arc::new(BytesSource::new(bytes.to_vec()))
}

/// A source whose bytes must be read in windows.
pub(crate) struct Windowed(pub(crate) Vec<u8>);

impl Source for Windowed {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn path(&self) -> Option<&std::path::Path> {
        None
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> seglake::Result<()> {
        let start = usize::try_from(offset).unwrap();
        buffer.copy_from_slice(&self.0[start..start + buffer.len()]);
        Ok(())
    }
}

/// Appends the records of a walk's last step.
pub(crate) fn collect(walk: &dyn Walk, records: &mut Vec<Plain>) {
    let rows = walk.rows();
    for row in 0..rows.len() {
        let (Value::Uuid(uuid), Value::Text(type_)) = (rows.field(row, 0), rows.field(row, 2))
        else {
            panic!("columns moved")
        };
        records.push(Plain {
            position: rows.position(row),
            uuid,
            type_: type_.to_vec(),
            value: rows.value(row).to_vec(),
        });
    }
}

/// All records and the whole ledger.
pub(crate) fn scan(
    source: Arc<dyn Source>,
    options: &Options,
) -> seglake::Result<(Vec<Plain>, Vec<Span>)> {
    let mut walk = open(source, options, Start::Beginning)?;
    let (mut records, mut ledger) = (Vec::new(), Vec::new());
    while walk.step()? == Step::More {
        collect(&*walk, &mut records);
        ledger.extend_from_slice(walk.spans());
    }
    Ok((records, ledger))
}

/// The damage that strict reading raises, if any.
pub(crate) fn strict_error(source: Arc<dyn Source>, options: &Options) -> Option<seglake::Damage> {
    match scan(source, &options.clone().strict(true)) {
        Ok(_) => None,
        Err(seglake::Error::Damage(damage)) => Some(*damage),
        Err(other) => panic!("not damage: {other}"),
    }
}

/// That a ledger covers a file of `len` bytes exactly.
pub(crate) fn assert_covers(ledger: &[Span], len: usize) {
    let mut at = 0;
    for span in ledger {
        assert_eq!(span.start, at, "{ledger:?}");
        assert!(span.end > span.start, "{ledger:?}");
        at = span.end;
    }
    assert_eq!(at, len as u64, "{ledger:?}");
}

/// A version-6 UUID of tick `tick` of the year 2024.
pub(crate) fn uuid(tick: u64) -> [u8; 16] {
    let tick = 0x01ee_0000_0000_0000 + tick;
    let head = (tick >> 12) << 16 | 0x6000 | tick & 0xfff;
    let mut uuid = [0x80; 16];
    uuid[..8].copy_from_slice(&head.to_be_bytes());
    uuid
}

/// A segment of records with these types and values, one tick apart.
pub(crate) fn segment<T: AsRef<[u8]>, V: AsRef<[u8]>>(key: &Key, messages: &[(T, V)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (tick, (type_, value)) in (1000..).zip(messages) {
        active::encode(&mut bytes, key, &uuid(tick), type_.as_ref(), value.as_ref()).unwrap();
    }
    bytes
}
