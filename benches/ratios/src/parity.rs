//! Parity: the code alone with each kernel of the processor, and sidecars as a whole. The code is compared with reading
//! the same bytes, and with the crate reed-solomon-simd, whose field has 2^16 elements. All at 128+8, on one core, of
//! bytes that come from memory.

use std::hint::black_box;

use parity_code::{Kernel, Matrix, Multiplier};
use reed_solomon_simd::ReedSolomonEncoder;
use seglake::parity::{Files, Options, Parameters, Set, protect, verify};
use seglake::source::BytesSource;

use crate::compare::{Beside, Comparison, Work};

/// The data and parity blocks of a group, and the bytes of a column: one block of each of 32 groups.
const DATA: usize = 128;
const PARITY: usize = 8;
const COLUMN_BYTES: usize = 32 * 4096;
const BAND_BYTES: usize = DATA * COLUMN_BYTES;
/// More than fits into the second cache, in turns, so that no band is near.
const BANDS: usize = 8;
/// How many columns are added at a time: 1 MiB.
const COLUMNS: usize = 8;

/// The share of the speed of reading to reach, by kernel. Reading is as fast as memory where it was set.
const fn target(kernel: Kernel) -> Option<f64> {
    match kernel {
        Kernel::Avx2 => Some(0.40),
        Kernel::Gfni => Some(0.55),
        _ => None,
    }
}

pub(crate) fn run(comparison: &mut Comparison) {
    let bytes: Vec<u8> = (0..BANDS * BAND_BYTES)
        .map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8)
        .collect();
    let work = Work::Bytes(BAND_BYTES);
    let reading = Beside::Limit("read the same bytes");
    for kernel in Kernel::available() {
        let mut encoder = Encoder::new(Multiplier::with_kernel(kernel));
        let (mut ours, mut theirs) = (Bands::new(&bytes), Bands::new(&bytes));
        comparison.run(
            format!("encode a band ({kernel})"),
            reading,
            work,
            target(kernel),
            || black_box(encoder.encode(ours.next())),
            || read(theirs.next()),
        );
    }
    let mut encoder = Encoder::new(Multiplier::new());
    let mut peer = ReedSolomonEncoder::new(DATA, PARITY, COLUMN_BYTES).unwrap();
    let (mut ours, mut theirs) = (Bands::new(&bytes), Bands::new(&bytes));
    comparison.run(
        "encode a band",
        Beside::Peer("reed-solomon-simd"),
        work,
        1.0,
        || black_box(encoder.encode(ours.next())),
        || {
            for column in theirs.next().chunks(COLUMN_BYTES) {
                peer.add_original_shard(column).unwrap();
            }
            black_box(peer.encode().unwrap().recovery_iter().count())
        },
    );
    sidecars(comparison, &bytes);
}

fn sidecars(comparison: &mut Comparison, bytes: &[u8]) {
    let work = Work::Bytes(bytes.len());
    let reading = Beside::Limit("read the same bytes");
    let set = Set {
        id: *b"01234567",
        parameters: Parameters::DEFAULT,
    };
    let file = BytesSource::new(bytes);
    let mut sidecar = Vec::new();
    let encode = |sidecar: &mut Vec<u8>| {
        sidecar.clear();
        let mut give = |bytes: &[u8]| {
            sidecar.extend_from_slice(bytes);
            Ok(())
        };
        protect(&file, bytes.len() as u64, set, &mut give).unwrap();
    };
    comparison.run(
        "make a sidecar",
        reading,
        work,
        None,
        || encode(&mut sidecar),
        || read(bytes),
    );
    let beside = BytesSource::new(sidecar.clone());
    let verifying = || {
        verify(Files::new(&file, &beside), Options::default())
            .unwrap()
            .outcome
    };
    comparison.run(
        "verify with a sidecar",
        reading,
        work,
        None,
        verifying,
        || read(bytes),
    );
}

/// Encodes bands into the same parity.
struct Encoder {
    multiplier: Multiplier,
    matrix: Matrix,
    parity: Vec<u8>,
}

impl Encoder {
    fn new(multiplier: Multiplier) -> Self {
        Self {
            multiplier,
            matrix: Matrix::encoding(DATA, PARITY).unwrap(),
            parity: vec![0; PARITY * COLUMN_BYTES],
        }
    }

    /// Returns the number of bytes of parity.
    fn encode(&mut self, band: &[u8]) -> usize {
        self.parity.fill(0);
        let mut sums: Vec<_> = self.parity.chunks_mut(COLUMN_BYTES).collect();
        let columns: Vec<_> = band.chunks(COLUMN_BYTES).collect();
        for (number, columns) in columns.chunks(COLUMNS).enumerate() {
            self.multiplier
                .add(&self.matrix, number * COLUMNS, columns, &mut sums);
        }
        self.parity.len()
    }
}

/// Reads all bytes.
fn read(bytes: &[u8]) -> u64 {
    let words = bytes.as_chunks::<8>().0.iter();
    words.fold(0, |all, word| all ^ u64::from_ne_bytes(*word))
}

/// Bands of a buffer, in turns.
struct Bands<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Bands<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn next(&mut self) -> &'a [u8] {
        let start = self.at * BAND_BYTES;
        self.at = (self.at + 1) % (self.bytes.len() / BAND_BYTES);
        &self.bytes[start..start + BAND_BYTES]
    }
}
