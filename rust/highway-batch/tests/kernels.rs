//! Compares every kernel with the crate `highway`, which hashes one message after the other.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use highway::{HighwayHash, PortableHash};
use highway_batch::{Batch, Kernel, Key, hash, hash_many};
use proptest::prelude::*;

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

    fn key(&mut self) -> [u8; 32] {
        self.bytes(32).try_into().unwrap()
    }
}

/// The crate's own portable code, without a kernel's instructions.
fn oracle(key: &[u8; 32], bytes: &[u8]) -> u64 {
    let words = key.as_chunks::<8>().0;
    let words = [0, 1, 2, 3].map(|word| u64::from_le_bytes(words[word]));
    PortableHash::new(highway::Key(words)).hash64(bytes)
}

fn oracles(key: &[u8; 32], head: &[u8], bytes: &[u8], extents: &[(usize, usize)]) -> Vec<u64> {
    let mut last = None;
    let hash = |&(start, len): &(usize, usize)| match last {
        Some((extent, hash)) if extent == (start, len) => hash,
        _ => {
            let rest = bytes.get(start..).unwrap_or_default();
            let message = [head, rest.get(..len).unwrap_or(rest)].concat();
            let hash = oracle(key, &message);
            last = Some(((start, len), hash));
            hash
        }
    };
    extents.iter().map(hash).collect()
}

/// Compares each kernel with the oracle, also for messages with a head elsewhere.
fn compare(key: &[u8; 32], bytes: &[u8], extents: &[(usize, usize)]) {
    let head = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
    let headed = oracles(key, &head, bytes, extents);
    let expected = oracles(key, &[], bytes, extents);
    let key = Key::new(key);
    let mut hashes = vec![7];
    for kernel in Kernel::available() {
        let heads = vec![head; extents.len()];
        Batch::with_kernel(kernel).hash_headed(&key, &heads, bytes, extents, &mut hashes);
        assert_eq!(hashes, headed, "{kernel}");
    }
    for kernel in Kernel::available() {
        let mut batch = Batch::with_kernel(kernel);
        assert_eq!(batch.kernel(), kernel);
        batch.hash(&key, bytes, extents, &mut hashes);
        assert_eq!(hashes.len(), expected.len());
        if let Some(at) = (0..hashes.len()).find(|&at| hashes[at] != expected[at]) {
            panic!(
                "{kernel}: the hash of extent {at}, {:?}, of {}",
                extents[at],
                extents.len()
            );
        }
    }
    hash_many(&key, bytes, extents, &mut hashes);
    assert_eq!(hashes, expected);
    for kernel in Kernel::available() {
        let keys = vec![key; extents.len()];
        Batch::with_kernel(kernel).hash_keyed(&keys, bytes, extents, &mut hashes);
        assert_eq!(hashes, expected, "{kernel}");
    }
}

/// Adjacent extents.
fn in_a_row(lengths: impl IntoIterator<Item = usize>) -> Vec<(usize, usize)> {
    let mut end = 0;
    let extents = lengths.into_iter().map(|len| {
        end += len;
        (end - len, len)
    });
    extents.collect()
}

#[test]
fn every_length_at_every_alignment() {
    let mut numbers = Numbers(0x5e61_a4e1);
    let bytes = numbers.bytes(1100);
    for start in 0..64 {
        // First the same length in every lane, then several lengths in turns, so that lanes differ.
        let key = numbers.key();
        for len in (start % 8..=1000).step_by(8) {
            compare(&key, &bytes, &[(start, len); 9]);
        }
        let extents: Vec<_> = (0..=1000).map(|len| (start, len)).collect();
        compare(&key, &bytes, &extents);
        let expected = oracles(&key, &[], &bytes, &extents);
        for ((start, len), expected) in extents.into_iter().zip(expected) {
            assert_eq!(
                hash(&Key::new(&key), &bytes[start..start + len]),
                expected,
                "of {len} bytes"
            );
        }
    }
}

#[test]
fn every_number_of_messages() {
    let mut numbers = Numbers(0xba7c);
    let bytes = numbers.bytes(1 << 15);
    for messages in 0..=40 {
        for most in [1, 16, 40, 200, 700] {
            let extents = in_a_row((0..messages).map(|_| numbers.below(most)));
            compare(&numbers.key(), &bytes, &extents);
            compare(&numbers.key(), &bytes, &vec![(3, most); messages]);
        }
    }
}

#[test]
fn many_windows_of_mixed_lengths() {
    let mut numbers = Numbers(0x31ed);
    let bytes = numbers.bytes(1 << 19);
    for most in [20, 100, 300, 5_000, 40_000] {
        let (mut lengths, mut total) = (Vec::new(), 0);
        while total < bytes.len() {
            // Mostly short, and sometimes a long one.
            let most = numbers.below(most) + 1;
            let len = numbers.below(most);
            lengths.push(len);
            total += len;
        }
        let mut extents = in_a_row(lengths);
        compare(&numbers.key(), &bytes, &extents);
        for at in (1..extents.len()).rev() {
            extents.swap(at, numbers.below(at + 1));
        }
        compare(&numbers.key(), &bytes, &extents);
    }
}

#[test]
fn windows_end_where_bytes_or_messages_do() {
    let mut numbers = Numbers(0xed6e);
    let bytes = numbers.bytes(1 << 18);
    for messages in [63, 64, 65, 127, 128, 511, 512, 513, 1023, 1025] {
        for len in [0, 15, 16, 128, 4096, 8191, 8192, 8193, 8224, 8225, 100_000] {
            if messages * len < 5 << 20 {
                compare(&numbers.key(), &bytes, &vec![(5, len); messages]);
            }
        }
    }
}

#[test]
fn long_messages_beside_short_ones() {
    let mut numbers = Numbers(0x1009);
    let bytes = numbers.bytes(1 << 21);
    let key = numbers.key();
    compare(&key, &bytes, &[(0, bytes.len())]);
    for long in [1, 2, 3, 7, 9] {
        let mut extents = vec![(9, 100); 20];
        for _ in 0..long {
            let start = numbers.below(1000);
            let len = numbers.below(bytes.len() - start);
            let at = numbers.below(extents.len());
            extents.insert(at, (start, len));
        }
        compare(&key, &bytes, &extents);
    }
}

#[test]
fn extents_beyond_the_buffer_hash_what_there_is() {
    let mut numbers = Numbers(0xbe70);
    let bytes = numbers.bytes(100);
    let key = numbers.key();
    let extents = [
        (0, 101),
        (90, 50),
        (100, 1),
        (101, 0),
        (101, 7),
        (0, usize::MAX),
        (usize::MAX, usize::MAX),
        (usize::MAX, 0),
        (10, usize::MAX - 5),
        (84, 16),
        (85, 15),
        (85, 16),
        (0, 100),
    ];
    for count in 0..=extents.len() {
        compare(&key, &bytes, &extents[..count]);
        compare(&key, &[], &extents[..count]);
    }
    compare(&key, &bytes, &[(0, usize::MAX); 600]);
}

/// Memory between two pages that cannot be accessed.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
mod guarded {
    use std::ptr;

    pub(crate) struct Guarded {
        start: *mut u8,
        page: usize,
        pages: usize,
    }

    impl Guarded {
        pub(crate) fn new(pages: usize) -> Self {
            // SAFETY: only asks for a value.
            let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap();
            let all = (pages + 2) * page;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            // SAFETY: makes a new map at an address of the system's choice, and protects pages within that map.
            let start = unsafe {
                let start = libc::mmap(ptr::null_mut(), all, libc::PROT_NONE, flags, -1, 0);
                assert_ne!(start, libc::MAP_FAILED);
                let inner = start.byte_add(page);
                let access = libc::PROT_READ | libc::PROT_WRITE;
                assert_eq!(libc::mprotect(inner, pages * page, access), 0);
                start.cast()
            };
            Self { start, page, pages }
        }

        pub(crate) fn bytes(&mut self) -> &mut [u8] {
            let len = self.pages * self.page;
            // SAFETY: the pages between the guards are mapped, readable and writable, initially zero, and owned by this
            // value alone.
            unsafe { std::slice::from_raw_parts_mut(self.start.add(self.page), len) }
        }
    }

    impl Drop for Guarded {
        fn drop(&mut self) {
            // SAFETY: unmaps the map that `new` made. No slice of it outlives `self`.
            unsafe { libc::munmap(self.start.cast(), (self.pages + 2) * self.page) };
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_is_read_before_or_behind_the_buffer() {
    let mut numbers = Numbers(0x69a4d);
    let mut guarded = guarded::Guarded::new(2);
    let bytes = guarded.bytes();
    let random = numbers.bytes(bytes.len());
    bytes.copy_from_slice(&random);
    let key = numbers.key();
    for len in 0..=300 {
        let end = bytes.len() - len;
        compare(&key, bytes, &[(0, len), (end, len)]);
        compare(&key, bytes, &[(end, len); 17]);
        compare(&key, bytes, &[(0, len); 17]);
        assert_eq!(
            hash(&Key::new(&key), &bytes[end..]),
            oracle(&key, &bytes[end..])
        );
        assert_eq!(
            hash(&Key::new(&key), &bytes[..len]),
            oracle(&key, &bytes[..len])
        );
        // Buffers with nothing but the message.
        compare(&key, &bytes[end..], &[(0, len)]);
        compare(&key, &bytes[..len], &[(0, len); 3]);
    }
    let many: Vec<_> = (0..2000).map(|at| (bytes.len() - at, at)).collect();
    compare(&key, bytes, &many);
}

#[test]
fn kernels_have_names_and_fall_back() {
    let available = Kernel::available();
    assert_eq!(available[0], Kernel::Portable);
    assert!(available.is_sorted());
    assert!(available.contains(&Kernel::detected()));
    for kernel in [Kernel::Portable, Kernel::Avx2, Kernel::Avx512] {
        let chosen = Batch::with_kernel(kernel).kernel();
        assert_eq!(kernel.is_available(), chosen == kernel);
        assert!(chosen <= kernel && available.contains(&chosen));
    }
    assert_eq!(
        format!("{:?}", Batch::with_kernel(Kernel::Portable)),
        "Batch(Portable)"
    );
}

/// Whether a process with `HIGHWAY_BATCH_KERNEL` set to `variable` uses this kernel. It runs the one test below, which
/// a variable tells to report the kernel.
fn process_uses(variable: &str, kernel: &str) -> bool {
    std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "the_environment_chooses_among_the_available_kernels",
        ])
        .env("HIGHWAY_BATCH_KERNEL", variable)
        .env(EXPECTED_KERNEL, kernel)
        .output()
        .unwrap()
        .status
        .success()
}

const EXPECTED_KERNEL: &str = "HIGHWAY_BATCH_TEST_EXPECTED_KERNEL";

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
    for other in ["", "AVX", "neon", "portable "] {
        assert!(process_uses(other, best.name()));
        assert!(!process_uses(other, "none"));
    }
}

/// Each head belongs to its own extent, in windows of all kinds. The bytes before an extent have no effect.
#[test]
fn heads_go_with_their_extents() {
    let mut numbers = Numbers(11);
    let (key, bytes) = (numbers.key(), numbers.bytes(300_000));
    for longest in [20, 40, 200, 3000, 70_000] {
        for count in [1, 2, 7, 8, 9, 63, 500, 1100] {
            let extents: Vec<_> = (0..count)
                .map(|_| (16 + numbers.below(200_000), numbers.below(longest)))
                .collect();
            let heads: Vec<[u8; 16]> = (0..count)
                .map(|_| numbers.bytes(16).try_into().unwrap())
                .collect();
            let expected: Vec<_> = heads
                .iter()
                .zip(&extents)
                .map(|(head, &(start, len))| {
                    oracle(&key, &[head, &bytes[start..start + len]].concat())
                })
                .collect();
            let mut hashes = Vec::new();
            for kernel in Kernel::available() {
                let mut batch = Batch::with_kernel(kernel);
                batch.hash_headed(&Key::new(&key), &heads, &bytes, &extents, &mut hashes);
                assert_eq!(hashes, expected, "{kernel}, {count} of at most {longest}");
                // Items without a counterpart are left out.
                batch.hash_headed(
                    &Key::new(&key),
                    &heads[..count - 1],
                    &bytes,
                    &extents,
                    &mut hashes,
                );
                assert_eq!(hashes, expected[..count - 1]);
            }
        }
    }
}

/// Each key belongs to its own extent, in windows of all kinds.
#[test]
fn keys_go_with_their_extents() {
    let mut numbers = Numbers(13);
    let bytes = numbers.bytes(300_000);
    for longest in [20, 40, 200, 3000, 70_000] {
        for count in [1, 2, 7, 8, 9, 63, 500, 1100] {
            let extents: Vec<_> = (0..count)
                .map(|_| (numbers.below(200_000), numbers.below(longest)))
                .collect();
            let keys: Vec<_> = (0..count).map(|_| numbers.key()).collect();
            let expected: Vec<_> = keys
                .iter()
                .zip(&extents)
                .map(|(key, &(start, len))| oracle(key, &bytes[start..start + len]))
                .collect();
            let keys: Vec<_> = keys.iter().map(Key::new).collect();
            assert!(keys.iter().all(|key| Key::from_words(key.words()) == *key));
            let mut hashes = Vec::new();
            for kernel in Kernel::available() {
                let mut batch = Batch::with_kernel(kernel);
                batch.hash_keyed(&keys, &bytes, &extents, &mut hashes);
                assert_eq!(hashes, expected, "{kernel}, {count} of at most {longest}");
                batch.hash_keyed(&keys[..count - 1], &bytes, &extents, &mut hashes);
                assert_eq!(hashes, expected[..count - 1]);
            }
        }
    }
}

proptest! {
    #[test]
    fn kernels_agree(
        key: [u8; 32],
        bytes in proptest::collection::vec(any::<u8>(), 0..3000),
        extents in proptest::collection::vec((0usize..3100, 0usize..700), 0..100),
    ) {
        compare(&key, &bytes, &extents);
    }
}
