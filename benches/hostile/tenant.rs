//! Tenant segments of both versions.

use super::files::{Make, Random, struck, u32_of};

pub(crate) fn hostile_1() -> Vec<(&'static str, Make)> {
    vec![
        ("false lengths", false_lengths_1),
        ("partitions nested in partitions", nested_1),
        ("1 MiB of random bytes", |len| struck(clean_1(len))),
        ("entries that name one giant partition", giant_1),
        ("entries that name any place", anywhere_1),
    ]
}

pub(crate) fn hostile_2() -> Vec<(&'static str, Make)> {
    vec![
        ("false lengths", false_lengths_2),
        ("blocks nested in blocks", nested_2),
        ("1 MiB of random bytes", |len| struck(clean_2(len))),
        ("a million entries that name the same bytes", giant_2),
        ("entries that name any place", anywhere_2),
        ("all blocks damaged, one to a partition", all_damaged_2),
        ("entries wrong in turns", in_turns_2),
        ("table of contents damaged, entries anywhere", |len| {
            let mut bytes = anywhere_2(len);
            bytes[9] ^= 1;
            bytes
        }),
        ("failed entries over all good blocks", covered_2),
        ("long tenant IDs", long_names_2),
        ("blocks that decode to the end of the file", costly_decodes),
    ]
}

/// An entry of the table of contents.
struct Entry {
    partition: u32,
    tenant: Vec<u8>,
    messages: usize,
    /// From the number of partitions on.
    offset: u64,
    length: usize,
    crc: u32,
}

/// A file of these entries, with a matching checksum of the table. `data` begins with the number of partitions.
fn assemble(version: u16, entries: &[Entry], data: &[u8]) -> Vec<u8> {
    let toc: usize = match version {
        1 => 20 * entries.len(),
        _ => {
            entries
                .iter()
                .map(|entry| 32 + entry.tenant.len())
                .sum::<usize>()
                + 4
        }
    };
    let base = 10 + toc as u64;
    let mut bytes = Vec::with_capacity(data.len() + toc + 16);
    bytes.extend_from_slice(b"TSEG");
    bytes.extend_from_slice(&version.to_be_bytes());
    bytes.extend_from_slice(&u32_of(entries.len()));
    for entry in entries {
        bytes.extend_from_slice(&entry.partition.to_be_bytes());
        if version == 2 {
            bytes.extend_from_slice(&u32_of(entry.tenant.len()));
            bytes.extend_from_slice(&entry.tenant);
            bytes.extend_from_slice(&u32_of(entry.messages));
        }
        bytes.extend_from_slice(&(base + entry.offset).to_be_bytes());
        bytes.extend_from_slice(&(entry.length as u64).to_be_bytes());
        if version == 2 {
            bytes.extend_from_slice(&entry.crc.to_be_bytes());
        }
    }
    if version == 2 {
        let crc = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&crc.to_be_bytes());
    }
    bytes.extend_from_slice(data);
    bytes
}

fn block(out: &mut Vec<u8>, tenant: &[u8], messages: &[Vec<u8>]) {
    out.extend_from_slice(&u32_of(messages.len()));
    out.extend_from_slice(&u32_of(tenant.len()));
    out.extend_from_slice(tenant);
    for message in messages {
        out.extend_from_slice(&u32_of(message.len()));
        out.extend_from_slice(message);
    }
}

fn crc(partition: u32, block: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&partition.to_be_bytes());
    crc.update(block);
    crc.finalize()
}

pub(crate) fn clean_1(len: usize) -> Vec<u8> {
    sound(1, len)
}

pub(crate) fn clean_2(len: usize) -> Vec<u8> {
    sound(2, len)
}

/// Partitions of 100 tenants of 100 messages of mixed lengths.
fn sound(version: u16, len: usize) -> Vec<u8> {
    let (mut random, mut entries, mut data) = (Random::new(8), Vec::new(), vec![0; 4]);
    let mut partition = 0_u32;
    while data.len() < len {
        let start = data.len();
        data.extend_from_slice(&u32_of(100));
        for tenant in 0..100 {
            let tenant = format!("tenant-{tenant:04}").into_bytes();
            let messages: Vec<_> = (0..100)
                .map(|_| {
                    let len = random.lognormal();
                    random.bytes(len)
                })
                .collect();
            let at = data.len();
            block(&mut data, &tenant, &messages);
            if version == 2 {
                entries.push(Entry {
                    partition,
                    tenant,
                    messages: 100,
                    offset: at as u64,
                    length: data.len() - at,
                    crc: crc(partition, &data[at..]),
                });
            }
        }
        if version == 1 {
            entries.push(Entry {
                partition,
                tenant: Vec::new(),
                messages: 0,
                offset: start as u64,
                length: data.len() - start,
                crc: 0,
            });
        }
        partition += 1;
    }
    data[..4].copy_from_slice(&partition.to_be_bytes());
    assemble(version, &entries, &data)
}

/// `count` entries of ascending partitions, at these offsets and lengths.
fn entries(count: usize, at: impl Fn(usize) -> (u64, usize)) -> Vec<Entry> {
    (0..count)
        .map(|number| {
            let (offset, length) = at(number);
            Entry {
                partition: number as u32,
                tenant: Vec::new(),
                messages: 0,
                offset,
                length,
                crc: 0,
            }
        })
        .collect()
}

fn with_count(count: usize, data: Vec<u8>) -> Vec<u8> {
    [u32_of(count).to_vec(), data].concat()
}

fn false_lengths_1(len: usize) -> Vec<u8> {
    let count = len / 64;
    // A partition of one tenant with one message, which claims much of the later bytes.
    let mut random = Random::new(9);
    let mut data = Vec::new();
    for number in 0..count {
        let rest = (count - number - 1) * 44;
        data.extend_from_slice(&u32_of(1));
        data.extend_from_slice(&u32_of(3));
        data.extend_from_slice(&u32_of(0));
        data.extend_from_slice(&u32_of(random.below(rest as u64) as usize));
        data.resize(44 * (number + 1), 0);
    }
    let entries = entries(count, |number| (4 + 44 * number as u64, 44));
    assemble(1, &entries, &with_count(count, data))
}

/// One tenant in each, whose one message is the next partition.
fn nested_1(len: usize) -> Vec<u8> {
    let count = len / 36;
    let mut data = Vec::new();
    for number in 0..count {
        data.extend_from_slice(&u32_of(1));
        data.extend_from_slice(&u32_of(1));
        data.extend_from_slice(&u32_of(0));
        data.extend_from_slice(&u32_of(16 * (count - number - 1)));
    }
    let entries = entries(count, |number| (4 + 16 * number as u64, 15));
    assemble(1, &entries, &with_count(count, data))
}

fn giant_1(len: usize) -> Vec<u8> {
    let count = len / 40;
    let messages = count * 4;
    let mut data = u32_of(1).to_vec();
    data.extend_from_slice(&u32_of(messages));
    data.resize(12 + 4 * messages, 0);
    let entries = entries(count, |_| (4, 7));
    assemble(1, &entries, &with_count(count, data))
}

fn anywhere_1(len: usize) -> Vec<u8> {
    let count = len / 40;
    let mut random = Random::new(10);
    let data = [u32_of(1), [0; 4], [0; 4], u32_of(1), [0; 4]].concat();
    let data: Vec<u8> = data.into_iter().cycle().take(20 * count).collect();
    let places: Vec<_> = (0..count).map(|_| random.below(count as u64)).collect();
    let entries = entries(count, |number| (4 + 20 * places[number], 11));
    assemble(1, &entries, &with_count(count, data))
}

/// Blocks where their entries say, which claim more bytes than they have.
fn false_lengths_2(len: usize) -> Vec<u8> {
    let count = len / 96;
    let mut random = Random::new(11);
    let mut data = Vec::new();
    for number in 0..count {
        let rest = 64 * (count - number - 1);
        data.extend_from_slice(&u32_of(1));
        data.extend_from_slice(&u32_of(0));
        data.extend_from_slice(&u32_of(random.below(rest as u64) as usize));
        data.resize(64 * (number + 1), 0);
    }
    let lengths: Vec<_> = (0..count)
        .map(|number| random.below(64 * (count - number) as u64) as usize)
        .collect();
    let entries = entries(count, |number| (8 + 64 * number as u64, lengths[number]));
    assemble(2, &entries, &with_count(count, data))
}

/// Each block's one message is the next block.
fn nested_2(len: usize) -> Vec<u8> {
    let count = len / 44;
    let mut data = vec![0; 4];
    for number in 0..count {
        data.extend_from_slice(&u32_of(1));
        data.extend_from_slice(&u32_of(0));
        data.extend_from_slice(&u32_of(12 * (count - number - 1)));
    }
    let entries = entries(count, |number| {
        (8 + 12 * number as u64, 12 * (count - number))
    });
    assemble(2, &entries, &with_count(count, data))
}

fn giant_2(len: usize) -> Vec<u8> {
    let count = (1 << 20).min(len / 64);
    let size = len.saturating_sub(32 * count);
    let messages = size / 4 - 4;
    let mut data = vec![0; 4];
    data.extend_from_slice(&u32_of(messages));
    data.resize(size, 0);
    let entries = entries(count, |_| (8, size - 8));
    assemble(2, &entries, &with_count(count, data))
}

/// Short blocks in random places and order.
fn anywhere_2(len: usize) -> Vec<u8> {
    let count = len / 64;
    let mut random = Random::new(12);
    let data = [
        [0; 4],
        u32_of(3),
        [0; 4],
        [0; 4],
        [0; 4],
        [0; 4],
        [0; 4],
        [0; 4],
    ]
    .concat();
    let data: Vec<u8> = data.into_iter().cycle().take(32 * count).collect();
    let places: Vec<_> = (0..count).map(|_| random.below(count as u64)).collect();
    let entries = entries(count, |number| (8 + 32 * places[number], 20));
    assemble(2, &entries, &with_count(count, data))
}

/// As a writer makes it, except for the blocks' bytes.
fn all_damaged_2(len: usize) -> Vec<u8> {
    let count = len / 48;
    let data = [u32_of(1), [0xff; 4], [0xff; 4], [0xff; 4]].concat();
    let data: Vec<u8> = data.into_iter().cycle().take(16 * count).collect();
    let entries = entries(count, |number| (8 + 16 * number as u64, 12));
    assemble(2, &entries, &with_count(count, data))
}

/// No two neighbours fail for the same cause, nor do their ranges touch.
fn in_turns_2(len: usize) -> Vec<u8> {
    let count = len / 48;
    let data = vec![0xff; 16 * count];
    let mut entries = entries(count, |number| (8 + 16 * number as u64, 8));
    for entry in entries.iter_mut().step_by(2) {
        // Its checksum matches, but it does not decode.
        entry.crc = crc(entry.partition, &[0xff; 8]);
    }
    assemble(2, &entries, &with_count(count, data))
}

/// A good block, entries out of order that claim everything from there on, and good blocks with gaps between them.
fn covered_2(len: usize) -> Vec<u8> {
    // More would use up the budget before the good blocks come.
    let (failed, count) = ((len / 280).min(1900), len / 56);
    let data: Vec<u8> = [u32_of(1), [0; 4], [0; 4]].concat();
    let data = data.into_iter().cycle().take(12 * (count + 1)).collect();
    let size = 4 + 12 * (count + 1);
    let mut entries = entries(1 + failed + count, |number| match number {
        0 => (8, 8),
        _ if number <= failed => (8, size - 8),
        _ => (8 + 12 * (number - failed) as u64, 8),
    });
    for entry in entries.iter_mut().filter(|entry| entry.length == 8) {
        entry.crc = crc(entry.partition, &[0; 8]);
    }
    assemble(2, &entries, &with_count(count + 1, data))
}

/// Sound, mostly tenant IDs.
fn long_names_2(len: usize) -> Vec<u8> {
    let count = len / (2 * (60 << 10) + 44);
    let (mut data, mut entries) = (u32_of(1).to_vec(), Vec::new());
    data.extend_from_slice(&u32_of(count));
    for number in 0..count {
        let tenant = [&u32_of(number)[..], &vec![b'x'; 60 << 10]].concat();
        let at = data.len();
        block(&mut data, &tenant, &[Vec::new()]);
        entries.push(Entry {
            partition: 0,
            crc: crc(0, &data[at..]),
            tenant,
            messages: 1,
            offset: at as u64,
            length: data.len() - at,
        });
    }
    assemble(2, &entries, &data)
}

/// Entries for a few bytes each, in ascending places. At each place begins a block that decodes to the end of the file,
/// with as many messages of 4 bytes as there are from there on.
pub(crate) fn costly_decodes(len: usize) -> Vec<u8> {
    let count = 2000;
    let messages = len / 4;
    let mut data = vec![0; 8];
    for number in 0..count {
        data.extend_from_slice(&u32_of(messages + 2 * (count - number - 1)));
        data.extend_from_slice(&u32_of(0));
    }
    // Within an earlier block, a block's head reads as two messages without content, except for its number of messages.
    data.resize(data.len() + 4 * messages, 0);
    let entries = entries(count, |number| (8 + 8 * number as u64, 8));
    assemble(2, &entries, &data)
}
