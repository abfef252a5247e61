//! Sums of columns times factors, over any type of vectors.
//!
//! Everything is inlined into the kernels' functions, because only those have the target features.

use crate::Matrix;
use crate::field::{logarithm, power};
use crate::invariant::Always;
use crate::simd::Simd;

/// The bytes of a cache line of an x86-64 processor.
const CACHE_LINE_BYTES: usize = 64;

/// How many bytes of each column are added to all sums before the next ones, so that they are still in the first cache
/// for the last sums.
const TILE_BYTES: usize = 2 << 10;

/// Columns of one length, whose factors are those of the columns from `first` on of a matrix.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    pub(crate) matrix: &'a Matrix,
    pub(crate) first: usize,
    pub(crate) bytes: &'a [&'a [u8]],
}

impl<'a> Columns<'a> {
    #[inline(always)]
    fn len(self) -> usize {
        match self.bytes {
            [column, ..] => column.len(),
            [] => 0,
        }
    }

    /// The factors for the sum of this row.
    #[inline(always)]
    fn factors(self, row: usize) -> &'a [u8] {
        let factors = self.matrix.row(row).get(self.first..);
        factors.always("a factor for each column")
    }
}

/// Adds to each of `sums` the columns times their factors. Columns and sums have one length. `C` columns are added at a time, at most: more mean fewer loads and stores of the sums, but columns may lie at a
/// distance that maps them all, and the sums, to the same few lines of the first cache. `R` sums are in registers at a time, with
/// `V` vectors of `N` bytes of each.
#[inline(always)]
pub(crate) fn add<S: Simd<N>, const N: usize, const C: usize, const R: usize, const V: usize>(
    simd: S,
    columns: Columns<'_>,
    sums: &mut [&mut [u8]],
) {
    let (matrix, mut first, len) = (columns.matrix, columns.first, columns.len());
    for columns in columns.bytes.chunks(C) {
        let mut start = 0;
        while start < len {
            let end = (start + TILE_BYTES).min(len);
            let mut tiles = [[].as_slice(); C];
            for (tile, column) in tiles.iter_mut().zip(columns) {
                *tile = column.get(start..end).always("columns of one length");
            }
            let bytes = tiles.get(..columns.len()).always("no more columns");
            let tiles = Columns {
                matrix,
                first,
                bytes,
            };
            // The next tile is prefetched with the first sums: processors foresee few of the jumps between columns.
            let mut ahead = [[].as_slice(); C];
            for (ahead, column) in ahead.iter_mut().zip(columns) {
                *ahead = column.get(end..).always("columns of one length");
            }
            let mut row = 0;
            let (groups, rest) = sums.as_chunks_mut::<R>();
            for group in groups {
                add_rows::<S, N, C, R, V>(simd, tiles, &ahead, row, group, start);
                row += R;
                ahead = [[].as_slice(); C];
            }
            let (halves, rest) = rest.as_chunks_mut::<2>();
            for group in halves {
                add_rows::<S, N, C, 2, V>(simd, tiles, &ahead, row, group, start);
                row += 2;
            }
            if let Some(group) = rest.first_chunk_mut::<1>() {
                add_rows::<S, N, C, 1, V>(simd, tiles, &ahead, row, group, start);
            }
            start = end;
        }
        first += columns.len();
    }
}

/// Adds tiles to the bytes from `start` on of the `R` sums from number `row` on.
#[inline(always)]
fn add_rows<S: Simd<N>, const N: usize, const C: usize, const R: usize, const V: usize>(
    simd: S,
    tiles: Columns<'_>,
    ahead: &[&[u8]; C],
    row: usize,
    sums: &mut [&mut [u8]; R],
    start: usize,
) {
    let mut tables = [[simd.table(0); R]; C];
    for index in 0..R {
        for (tables, factor) in tables.iter_mut().zip(tiles.factors(row + index)) {
            if let Some(table) = tables.get_mut(index) {
                *table = simd.table(*factor);
            }
        }
    }
    let wide = tiles.len() / (N * V);
    let mut vectors = [[].as_slice(); C];
    for (vectors, tile) in vectors.iter_mut().zip(tiles.bytes) {
        *vectors = tile.as_chunks::<N>().0.as_chunks::<V>().0;
    }
    let vectors = vectors.get(..tiles.bytes.len()).always("no more columns");
    for place in 0..wide {
        for ahead in ahead {
            for line in (0..N * V).step_by(CACHE_LINE_BYTES) {
                if let Some(byte) = ahead.get(place * N * V + line) {
                    simd.prefetch(byte);
                }
            }
        }
        add_vectors::<S, N, C, R, V>(simd, &tables, vectors, sums, start / N / V, place);
    }
    let done = wide * N * V;
    for (index, sum) in sums.iter_mut().enumerate() {
        let sum = sum
            .get_mut(start + done..)
            .always("sums as long as columns");
        for (factor, tile) in tiles.factors(row + index).iter().zip(tiles.bytes) {
            add_bytes(*factor, tile.get(done..).always("tiles of one length"), sum);
        }
    }
}

/// Adds `V` vectors of each column to those of each sum.
#[inline(always)]
fn add_vectors<S: Simd<N>, const N: usize, const C: usize, const R: usize, const V: usize>(
    simd: S,
    tables: &[[S::Table; R]; C],
    columns: &[&[[[u8; N]; V]]],
    sums: &mut [&mut [u8]; R],
    start: usize,
    place: usize,
) {
    let zero = simd.load(&[0; N]);
    let mut totals = [[zero; V]; R];
    for (totals, sum) in totals.iter_mut().zip(&*sums) {
        let vectors = sum.as_chunks::<N>().0.as_chunks::<V>().0;
        #[allow(clippy::indexing_slicing)] // the sums are as long as the columns
        for (total, bytes) in totals.iter_mut().zip(&vectors[start + place]) {
            *total = simd.load(bytes);
        }
    }
    for (column, tables) in columns.iter().zip(tables) {
        let mut ready = [simd.ready(zero); V];
        #[allow(clippy::indexing_slicing)] // the columns have one length
        for (ready, bytes) in ready.iter_mut().zip(&column[place]) {
            *ready = simd.ready(simd.load(bytes));
        }
        for (totals, table) in totals.iter_mut().zip(tables) {
            let factor = simd.factor(table);
            for (total, ready) in totals.iter_mut().zip(ready) {
                *total = simd.multiply_add(*total, factor, ready);
            }
        }
    }
    for (totals, sum) in totals.iter().zip(sums) {
        let vectors = sum.as_chunks_mut::<N>().0.as_chunks_mut::<V>().0;
        #[allow(clippy::indexing_slicing)] // as above
        for (total, bytes) in totals.iter().zip(&mut vectors[start + place]) {
            simd.store(*total, bytes);
        }
    }
}

/// Adds `column` times `factor` byte by byte: what no vector takes.
pub(crate) fn add_bytes(factor: u8, column: &[u8], sum: &mut [u8]) {
    if factor == 0 {
        return;
    }
    let exponent = logarithm(factor);
    for (sum, byte) in sum.iter_mut().zip(column) {
        if *byte != 0 {
            *sum ^= power(exponent + logarithm(*byte));
        }
    }
}
