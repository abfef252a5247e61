//! Compares every kernel with the product bit by bit, and the code with the crate `reed-solomon-erasure`.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use parity_code::{Kernel, Matrix, Multiplier};
use proptest::prelude::*;
use reed_solomon_erasure::galois_8::ReedSolomon;

/// A small random number generator (xorshift), so that the big cases are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).unwrap()).unwrap()
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next().to_le_bytes()[0]).collect()
    }
}

/// The product by the definition of the field.
fn product(a: u8, b: u8) -> u8 {
    let mut long = (0..8).fold(0u16, |long, bit| {
        long ^ if b >> bit & 1 == 1 {
            u16::from(a) << bit
        } else {
            0
        }
    });
    for bit in (8..16).rev() {
        if long >> bit & 1 == 1 {
            long ^= 0x11d << (bit - 8);
        }
    }
    long as u8
}

fn quotient(a: u8, b: u8) -> u8 {
    (0..=255).find(|c| product(*c, b) == a).unwrap()
}

/// The factor of the block at `used`, as section 2 of the format defines it.
fn factor(known: &[u8], used: u8, wanted: u8) -> u8 {
    known
        .iter()
        .filter(|j| **j != used)
        .fold(1, |all, j| product(all, quotient(wanted ^ j, used ^ j)))
}

/// A matrix of any factors: those of polynomials have no zeros.
fn matrix(rows: usize, columns: usize) -> Matrix {
    let points: Vec<u8> = (0..=255).take(columns + rows).collect();
    let wanted: Vec<u8> = points.iter().rev().take(rows).copied().collect();
    Matrix::interpolating(&points[..columns], &points[..columns], &wanted).unwrap()
}

fn expected(matrix: &Matrix, columns: &[&[u8]], sums: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut sums = sums.to_vec();
    for (row, sum) in sums.iter_mut().enumerate() {
        for (factor, column) in matrix.row(row).iter().zip(columns) {
            let products: Vec<u8> = (0..=255).map(|byte| product(*factor, byte)).collect();
            for (sum, byte) in sum.iter_mut().zip(*column) {
                *sum ^= products[usize::from(*byte)];
            }
        }
    }
    sums
}

/// Compares each kernel with the definition.
fn compare(matrix: &Matrix, columns: &[&[u8]], sums: &[Vec<u8>]) {
    let expected = expected(matrix, columns, sums);
    for kernel in Kernel::available() {
        let multiplier = Multiplier::with_kernel(kernel);
        assert_eq!(multiplier.kernel(), kernel);
        let mut found = sums.to_vec();
        let mut slices: Vec<_> = found.iter_mut().map(Vec::as_mut_slice).collect();
        multiplier.add(matrix, 0, columns, &mut slices);
        assert!(
            found == expected,
            "{kernel}: {} columns of {:?} bytes, {} sums",
            columns.len(),
            columns.first().map(|column| column.len()),
            sums.len()
        );
    }
}

#[test]
fn every_product() {
    let bytes: Vec<u8> = (0..=255).collect();
    let mut seen = [false; 256];
    // Points far enough apart give every factor.
    for wanted in 2..=255 {
        for known in [[0, 1], [1, 255 - wanted.min(253)]] {
            let Some(matrix) = Matrix::interpolating(&known, &known, &[wanted]) else {
                continue;
            };
            matrix
                .row(0)
                .iter()
                .for_each(|factor| seen[usize::from(*factor)] = true);
            compare(
                &matrix,
                &[&bytes, &bytes[..128]],
                std::slice::from_ref(&bytes),
            );
        }
    }
    assert!(seen.iter().filter(|seen| **seen).count() > 250);
}

#[test]
fn factors_are_those_of_the_definition() {
    let parity = Matrix::interpolating(&[0, 1, 2], &[0, 1, 2], &[3, 4]).unwrap();
    assert_eq!([parity.row(0), parity.row(1)], [[1, 1, 1], [15, 8, 6]]);
    let decoding = Matrix::interpolating(&[1, 3, 4], &[1, 3, 4], &[0]).unwrap();
    assert_eq!(decoding.row(0), [245, 105, 157]);
    let mut numbers = Numbers(0xfac7);
    for _ in 0..50 {
        let mut points: Vec<u8> = (0..=255).collect();
        for at in (1..256).rev() {
            points.swap(at, numbers.below(at + 1));
        }
        let (known, wanted) = points.split_at(1 + numbers.below(40));
        let used = &known[..1 + numbers.below(known.len())];
        let matrix = Matrix::interpolating(known, used, &wanted[..9]).unwrap();
        for (row, wanted) in wanted[..9].iter().enumerate() {
            let expected: Vec<u8> = used
                .iter()
                .map(|used| factor(known, *used, *wanted))
                .collect();
            assert_eq!(matrix.row(row), expected);
        }
        // A known point is itself.
        let own = Matrix::interpolating(known, known, &known[..1]).unwrap();
        assert!(
            own.row(0)
                .iter()
                .enumerate()
                .all(|(at, factor)| *factor == u8::from(at == 0))
        );
    }
    assert_eq!(Matrix::interpolating(&[1, 1], &[1], &[0]), None);
    assert_eq!(Matrix::interpolating(&[1, 2], &[3], &[0]), None);
    assert_eq!(parity.row(2), [0u8; 0]);
    assert_eq!(parity.row(usize::MAX), [0u8; 0]);
}

#[test]
fn every_length_at_every_alignment() {
    let mut numbers = Numbers(0x1e4);
    let bytes = numbers.bytes(9000);
    for (rows, columns) in [(1, 1), (2, 3), (4, 9), (8, 8), (13, 2)] {
        let matrix = matrix(rows, columns);
        for len in (0..300).chain([2047, 2048, 2049, 4096, 4500]) {
            let start = numbers.below(64);
            let columns: Vec<_> = (0..columns)
                .map(|column| {
                    let start = start + (column * 77) % 1000;
                    &bytes[start..start + len]
                })
                .collect();
            let sums: Vec<_> = (0..rows).map(|_| numbers.bytes(len)).collect();
            compare(&matrix, &columns, &sums);
        }
    }
}

#[test]
fn every_number_of_columns_and_sums() {
    let mut numbers = Numbers(0xc01);
    let bytes = numbers.bytes(400);
    for rows in (1..=20).chain([100, 255]) {
        for columns in (1..=20).chain([100, 128, 255]) {
            if rows + columns <= 256 {
                let slices: Vec<_> = (0..columns).map(|at| &bytes[at..at + 133]).collect();
                compare(&matrix(rows, columns), &slices, &vec![vec![3; 133]; rows]);
            }
        }
    }
}

#[test]
fn what_is_missing_is_zero_and_what_is_too_much_has_no_effect() {
    let mut numbers = Numbers(0x355);
    let bytes = numbers.bytes(500);
    let three = matrix(2, 3);
    compare(
        &three,
        &[&bytes[..100], &bytes[..7], &bytes[3..90]],
        &vec![vec![0; 100]; 2],
    );
    compare(
        &three,
        &[&bytes[..100], &[], &bytes[3..103]],
        &vec![vec![0; 100]; 2],
    );
    for kernel in Kernel::available() {
        let multiplier = Multiplier::with_kernel(kernel);
        let (mut long, mut short, mut third) = (vec![0; 300], vec![0; 100], vec![7; 300]);
        let columns = [&bytes[..], &bytes[1..], &bytes[2..], &bytes[3..]];
        multiplier.add(
            &three,
            0,
            &columns,
            &mut [&mut long, &mut short, &mut third],
        );
        let cut: Vec<_> = columns[..3].iter().map(|column| &column[..100]).collect();
        let sums = expected(&three, &cut, &vec![vec![0; 100]; 2]);
        assert_eq!((&long[..100], &short), (&sums[0][..], &sums[1]));
        assert_eq!((&long[100..], &third), (&[0; 200][..], &vec![7; 300]));
        multiplier.add(&three, 0, &columns, &mut []);
    }
}

fn by_crate(data: usize, parity: usize, columns: &[u8], len: usize) -> Vec<u8> {
    let code = ReedSolomon::new(data, parity).unwrap();
    let mut shards: Vec<_> = columns.chunks(len).map(<[u8]>::to_vec).collect();
    shards.resize(data + parity, vec![0; len]);
    code.encode(&mut shards).unwrap();
    shards.split_off(data).concat()
}

/// Encodes columns of `len` bytes, any number at a time; the last one may be shorter.
fn encoded(
    multiplier: Multiplier,
    (data, parity): (usize, usize),
    bytes: &[u8],
    len: usize,
    numbers: &mut Numbers,
) -> Vec<u8> {
    let matrix = Matrix::encoding(data, parity).unwrap();
    let columns: Vec<_> = bytes.chunks(len).collect();
    let mut sums = vec![0; parity * len];
    let mut slices: Vec<_> = sums.chunks_mut(len).collect();
    let mut first = 0;
    while first < columns.len() {
        let end = first + 1 + numbers.below(columns.len() - first);
        multiplier.add(&matrix, first, &columns[first..end], &mut slices);
        first = end;
    }
    sums
}

#[test]
fn the_code_is_that_of_reed_solomon_erasure() {
    let mut numbers = Numbers(0xec0de);
    for (data, parity) in [
        (1, 1),
        (3, 2),
        (10, 4),
        (128, 4),
        (128, 8),
        (128, 16),
        (240, 16),
        (1, 255),
        (255, 1),
    ] {
        for len in [1, 64, 513] {
            let bytes = numbers.bytes(data * len);
            let expected = by_crate(data, parity, &bytes, len);
            for kernel in Kernel::available() {
                let multiplier = Multiplier::with_kernel(kernel);
                let found = encoded(multiplier, (data, parity), &bytes, len, &mut numbers);
                assert_eq!(found, expected, "{kernel}");
            }
        }
    }
}

#[test]
fn columns_are_added_in_the_order_of_a_file() {
    let mut numbers = Numbers(0xe4c);
    let bytes = numbers.bytes(300);
    let mut parity = |bytes, len| encoded(Multiplier::new(), (3, 2), bytes, len, &mut numbers);
    // What is missing at the end is zeros.
    let padded = [&bytes[..100], &[0; 92]].concat();
    assert_eq!(parity(&bytes[..100], 64), by_crate(3, 2, &padded, 64));
    // A fourth column and those after it have no effect.
    assert_eq!(parity(&bytes, 70), by_crate(3, 2, &bytes[..210], 70));
    assert_eq!(parity(&bytes, 10), by_crate(3, 2, &bytes[..30], 10));
    for (data, parity) in [(129, 128), (256, 1), (usize::MAX, 1), (1, usize::MAX)] {
        assert!(Matrix::encoding(data, parity).is_none());
    }
}

/// Memory between two pages that cannot be accessed.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
mod guarded {
    use std::ptr;

    pub(crate) struct Guarded {
        start: *mut u8,
        page: usize,
    }

    impl Guarded {
        pub(crate) fn new() -> Self {
            // SAFETY: only asks for a value.
            let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap();
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            // SAFETY: makes a new map at an address of the system's choice, and protects a page within that map.
            let start = unsafe {
                let start = libc::mmap(ptr::null_mut(), 3 * page, libc::PROT_NONE, flags, -1, 0);
                assert_ne!(start, libc::MAP_FAILED);
                let access = libc::PROT_READ | libc::PROT_WRITE;
                assert_eq!(libc::mprotect(start.byte_add(page), page, access), 0);
                start.cast()
            };
            Self { start, page }
        }

        pub(crate) fn bytes(&mut self) -> &mut [u8] {
            // SAFETY: the page between the guards is mapped, readable and writable, initially zero, and owned by this
            // value alone.
            unsafe { std::slice::from_raw_parts_mut(self.start.add(self.page), self.page) }
        }
    }

    impl Drop for Guarded {
        fn drop(&mut self) {
            // SAFETY: unmaps the map that `new` made. No slice of it outlives `self`.
            unsafe { libc::munmap(self.start.cast(), 3 * self.page) };
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_is_touched_before_or_after_a_buffer() {
    let mut numbers = Numbers(0x94a4);
    let (mut column, mut sum) = (guarded::Guarded::new(), guarded::Guarded::new());
    let (column, sum) = (column.bytes(), sum.bytes());
    column.copy_from_slice(&numbers.bytes(column.len()));
    let one = Matrix::interpolating(&[3], &[3], &[7]).unwrap();
    for len in (0..300).chain([column.len()]) {
        for (column, at) in [
            (&column[..len], 0),
            (&column[column.len() - len..], sum.len() - len),
        ] {
            for kernel in Kernel::available() {
                sum.fill(1);
                let sum = &mut sum[at..at + len];
                Multiplier::with_kernel(kernel).add(&one, 0, &[column], &mut [sum]);
                assert!(sum.iter().zip(column).all(|(sum, byte)| *sum == byte ^ 1));
            }
        }
    }
}

#[test]
fn kernels_have_names_and_fall_back() {
    let available = Kernel::available();
    assert_eq!(available[0], Kernel::Portable);
    assert!(available.is_sorted());
    assert!(available.contains(&Kernel::detected()));
    for kernel in [Kernel::Portable, Kernel::Avx2, Kernel::Gfni] {
        let chosen = Multiplier::with_kernel(kernel).kernel();
        assert_eq!(kernel.is_available(), chosen == kernel);
        assert!(chosen <= kernel && available.contains(&chosen));
    }
    assert_eq!(
        format!("{:?}", Multiplier::with_kernel(Kernel::Portable)),
        "Multiplier(Portable)"
    );
}

/// Whether a process with `PARITY_CODE_KERNEL` set to `variable` uses this kernel. It runs the one test below, which a
/// variable tells to report the kernel.
fn process_uses(variable: &str, kernel: &str) -> bool {
    std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "the_environment_chooses_among_the_available_kernels",
        ])
        .env("PARITY_CODE_KERNEL", variable)
        .env(EXPECTED_KERNEL, kernel)
        .output()
        .unwrap()
        .status
        .success()
}

const EXPECTED_KERNEL: &str = "PARITY_CODE_TEST_EXPECTED_KERNEL";

#[test]
fn the_environment_chooses_among_the_available_kernels() {
    if let Ok(expected) = std::env::var(EXPECTED_KERNEL) {
        assert_eq!(Kernel::detected().name(), expected);
        return;
    }
    for kernel in Kernel::available() {
        assert!(process_uses(kernel.name(), kernel.name()));
    }
    let best = Kernel::available().pop().unwrap();
    for other in ["", "AVX", "sse", "portable "] {
        assert!(process_uses(other, best.name()));
        assert!(!process_uses(other, "none"));
    }
}

proptest! {
    #[test]
    fn kernels_agree(
        rows in 1usize..20,
        columns in proptest::collection::vec((0usize..70, 0usize..600), 1..40),
        bytes in proptest::collection::vec(any::<u8>(), 700),
        len in 0usize..600,
    ) {
        let matrix = matrix(rows, columns.len());
        let slices: Vec<_> = columns
            .iter()
            .map(|(start, own)| &bytes[*start..*start + own.min(&len)])
            .collect();
        compare(&matrix, &slices, &vec![bytes[..len].to_vec(); rows]);
    }

    /// Any k of the blocks give the others.
    #[test]
    fn any_known_blocks_give_all(
        data in 1usize..40,
        parity in 1usize..20,
        len in 1usize..200,
        seed in 1u64..,
    ) {
        let mut numbers = Numbers(seed);
        let bytes = numbers.bytes(data * len);
        let parity_bytes = encoded(Multiplier::new(), (data, parity), &bytes, len, &mut numbers);
        let all = [bytes, parity_bytes].concat();
        let blocks: Vec<_> = all.chunks(len).collect();
        let mut points: Vec<u8> = (0..=255).take(data + parity).collect();
        for at in (1..points.len()).rev() {
            points.swap(at, numbers.below(at + 1));
        }
        let (known, lost) = points.split_at(data);
        let matrix = Matrix::interpolating(known, known, lost).unwrap();
        let columns: Vec<_> = known.iter().map(|point| blocks[usize::from(*point)]).collect();
        let mut found = vec![vec![0; len]; lost.len()];
        let mut sums: Vec<_> = found.iter_mut().map(Vec::as_mut_slice).collect();
        Multiplier::new().add(&matrix, 0, &columns, &mut sums);
        for (point, found) in lost.iter().zip(&found) {
            prop_assert_eq!(found, blocks[usize::from(*point)]);
        }
    }
}
