//! Reading what a file grew by with its parity sidecar: whatever becomes of both in between, the records are those of one reading of the
//! file as it should be, each once, and so are the positions.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use seglake::Error;
use seglake::checksum::Key;
use seglake::format::{Growth, Options, Position, Start, open};
use seglake::ledger::Kind;
use seglake::parity::{Parameters, ProtectedSource, Set};
use seglake::source::{BytesSource, CappedSource, Source};

use crate::common::counting::Counting;
use crate::common::{lenient, segment};
use crate::growth::{drain, read};
use crate::messages;
use crate::parity::protected;
use crate::parity_reading::{Sample, written};

/// What happens to a file or its sidecar.
#[derive(Clone, Debug)]
enum Event {
    Grow(Index),
    /// Its sidecar is written, or written again, where the file is sound.
    Protect,
    /// Bytes change, the first of them perhaps in the first record.
    Flip(Index, Index, bool),
    /// Bytes at the end are gone.
    Cut(Index),
    Repair,
    /// The sidecar is gone, once the file is repaired.
    Remove,
    /// The sidecar is that of another file.
    Exchange,
}

/// Each with whether the file is looked at after it.
fn events() -> impl Strategy<Value = Vec<(Event, bool)>> {
    let index = any::<Index>;
    let event = prop_oneof![
        4 => index().prop_map(Event::Grow),
        3 => Just(Event::Protect),
        3 => (index(), index(), any::<bool>())
            .prop_map(|(one, other, is_first)| Event::Flip(one, other, is_first)),
        1 => index().prop_map(Event::Cut),
        2 => Just(Event::Repair),
        1 => Just(Event::Remove),
        1 => Just(Event::Exchange),
    ];
    prop::collection::vec((event, prop::bool::weighted(0.7)), 1..20)
}

/// From so many covered bytes on, some block stays sound whatever is struck here.
const LEAST_COVERED: usize = 600;

/// A file in the middle of its life.
struct Life {
    whole: Vec<u8>,
    len: usize,
    flips: Vec<usize>,
    cut: usize,
    /// The sidecar, and how many bytes it covers.
    sidecar: Option<(Vec<u8>, usize)>,
    is_foreign: bool,
}

impl Life {
    fn is_damaged(&self) -> bool {
        !self.flips.is_empty() || self.cut > 0
    }

    fn repair(&mut self) {
        self.flips.clear();
        self.cut = 0;
    }

    fn sound(&self) -> &[u8] {
        &self.whole[..self.len]
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.sound().to_vec();
        // Not one bit: a frame of Zstandard has one that decoders ignore, so a chunk with it proves itself.
        self.flips.iter().for_each(|at| bytes[*at] ^= 0x55);
        bytes.truncate(self.len - self.cut);
        bytes
    }

    /// The bytes that can be struck, so that they are restored.
    fn covered(&self) -> Option<usize> {
        let covered = self.sidecar.as_ref()?.1;
        (!self.is_damaged() && !self.is_foreign && covered >= LEAST_COVERED).then_some(covered)
    }

    fn meet(&mut self, event: &Event) {
        match event {
            // What was cut off is not written to.
            Event::Grow(_) if self.cut > 0 => {}
            Event::Grow(by) => self.len += by.index(self.whole.len() - self.len + 1),
            Event::Protect if self.is_damaged() => {}
            Event::Protect => {
                self.sidecar = Some((sidecar(self.sound()), self.len));
                self.is_foreign = false;
            }
            Event::Flip(one, other, is_first) => {
                if let Some(covered) = self.covered() {
                    let within = if *is_first { 40 } else { covered };
                    self.flips = vec![one.index(within), other.index(covered)];
                    self.flips.dedup();
                }
            }
            Event::Cut(by) => {
                if self.covered() == Some(self.len) {
                    self.cut = 1 + by.index(60);
                }
            }
            Event::Repair => self.repair(),
            Event::Remove => {
                self.repair();
                (self.sidecar, self.is_foreign) = (None, false);
            }
            Event::Exchange => {
                self.repair();
                self.sidecar = Some((sidecar(&[b'o'; 2000]), 2000));
                self.is_foreign = true;
            }
        }
    }

    /// What the file grew by, read by the sidecar that it has.
    fn growth(&self, options: &Options, since: Option<&Position>) -> seglake::Result<Growth> {
        let file: Arc<dyn Source> = Arc::new(BytesSource::new(self.bytes()));
        let Some((sidecar, covered)) = &self.sidecar else {
            return Growth::since(file, options, since);
        };
        let listed = match self.cut {
            0 => self.len,
            _ => *covered,
        };
        let sidecar = Arc::new(BytesSource::new(sidecar.clone()));
        let view = ProtectedSource::open(file, sidecar)?;
        let view = Arc::new(CappedSource::new(view, listed as u64));
        Growth::since(view, options, since)
    }
}

/// Blocks of 64 bytes: any 2 damaged blocks are repaired in each band of 768.
fn sidecar(bytes: &[u8]) -> Vec<u8> {
    let parameters = Parameters::new(64, 6, 2, 2).unwrap();
    let set = Set {
        id: *b"some set",
        parameters,
    };
    protected(bytes, bytes.len() as u64, set)
}

/// Reads a file after each event, and compares that with one reading of it as it should be.
fn check(
    whole: &[u8],
    begins: usize,
    events: &[(Event, bool)],
    options: &Options,
) -> Result<(), TestCaseError> {
    let options = options.clone().repair(true);
    let mut life = Life {
        whole: whole.to_vec(),
        len: begins,
        flips: Vec::new(),
        cut: 0,
        sidecar: None,
        is_foreign: false,
    };
    let (mut rows, mut position, mut plain) = (Vec::new(), None, None);
    let ends = [(Event::Remove, true), (Event::Protect, true)];
    for (number, (event, is_looked_at)) in events.iter().chain(&ends).enumerate() {
        if number > events.len() {
            life.len = whole.len();
        }
        life.meet(event);
        if !is_looked_at {
            continue;
        }
        let growth = life.growth(&options, position.as_ref()).unwrap();
        let found = read(&growth);
        if life.is_foreign && matches!(found, Err(Error::Damage(_))) {
            continue; // nothing is taken
        }
        let (own, spans) = found.unwrap();
        rows.extend(own);
        for span in spans.iter().filter(|span| span.kind == Kind::Repaired) {
            let struck = |at: &usize| (span.start..span.end).contains(&(*at as u64));
            let is_cut = span.start >= (life.len - life.cut) as u64;
            prop_assert!(is_cut || life.flips.iter().any(struck), "{span:?}");
            prop_assert!(is_cut || span.len() <= 2, "{span:?}");
        }
        let now = growth.position().unwrap();
        let sound = Arc::new(BytesSource::new(life.sound().to_vec()));
        let unread = Growth::since(sound, &options, plain.as_ref()).unwrap();
        read(&unread).unwrap();
        prop_assert_eq!(&now, &unread.position().unwrap());
        plain = unread.position();
        position = Some(now);
    }
    let source: Arc<dyn Source> = Arc::new(BytesSource::new(whole.to_vec()));
    let format = position.unwrap().format();
    let walk = open(source, &options.clone().format(format), Start::Beginning).unwrap();
    let (all, _) = drain(walk, format.columns(options.dialect).len()).unwrap();
    prop_assert_eq!(rows, all);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn an_active_segment_is_read_once(begins in any::<Index>(), events in events()) {
        let messages: Vec<_> = (0..40_u8).map(|own| (b"type", vec![own; usize::from(own) * 3])).collect();
        let bytes = segment(&Key::DEFAULT, &messages);
        check(&bytes, begins.index(bytes.len()), &events, &lenient())?;
    }

    #[test]
    fn an_oplog_is_read_once(
        dialect in messages::dialects(),
        begins in any::<Index>(),
        events in events(),
    ) {
        let bytes = messages::varied(dialect, 2500);
        let begins = begins.index(bytes.len() + 1);
        check(&bytes, begins, &events, &messages::lenient(dialect))?;
    }

    #[test]
    fn other_files_are_read_once(
        which in 0_usize..5,
        begins in any::<Index>(),
        events in events(),
    ) {
        let (format, option, value) = [
            ("sealed", "", 0),
            ("sealed", "trailer", 0),
            ("tenant", "", 0),
            ("tenant", "version", 1),
            ("chunked", "", 0),
        ][which];
        let format = seglake::format::by_name(format).unwrap();
        let Sample { bytes, options, .. } = written(format, option, value);
        let begins = if format.is_appended_to() { begins.index(bytes.len()) } else { bytes.len() };
        check(&bytes, begins, &events, &options)?;
    }
}

/// Its records prove themselves, so once it is known to be another file's, nothing else is asked of it.
#[test]
fn with_a_sidecar_of_another_file_only_what_is_new_is_read() {
    let messages = vec![("type", vec![7_u8; 1000]); 400];
    let bytes = segment(&Key::DEFAULT, &messages);
    let sidecar = Arc::new(BytesSource::new(sidecar(&vec![b'o'; bytes.len()])));
    let options = lenient().repair(true);
    let (mut position, mut read_bytes) = (None, 0);
    for records in [399, 400] {
        let file = Counting::new(bytes[..bytes.len() / 400 * records].to_vec());
        let since = position.as_ref();
        let view = ProtectedSource::open(file.clone(), sidecar.clone()).unwrap();
        file.take();
        let growth = Growth::since(view, &options, since).unwrap();
        let rows = read(&growth).unwrap().0.len();
        assert_eq!(rows, since.map_or(399, |_| 1));
        read_bytes = file.take().0;
        position = growth.position();
    }
    assert!(read_bytes <= 16 * 1024, "{read_bytes} of {}", bytes.len());
}
