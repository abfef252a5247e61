//! Tenant segments for tests: made by an encoder of their own, and read whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use seglake::format::{Options, Start, Step, Value, Walk, open, tenant};
use seglake::ledger::Span;
use seglake::source::Source;

/// A message as plain values. `block_end` is known of encoded ones alone, and not compared.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) position: u64,
    pub(crate) partition: u32,
    pub(crate) tenant: Vec<u8>,
    pub(crate) index: u32,
    pub(crate) value: Vec<u8>,
    pub(crate) block_end: u64,
}

impl Message {
    pub(crate) fn same_message(&self, other: &Self) -> bool {
        (self.partition, &self.tenant, self.index, &self.value)
            == (other.partition, &other.tenant, other.index, &other.value)
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.same_message(other) && self.position == other.position
    }
}

/// Options that add damage to the ledger and continue.
pub(crate) fn lenient() -> Options {
    Options::default().format(&tenant::FORMAT).strict(false)
}

/// An encoded segment and its content.
pub(crate) struct Segment {
    pub(crate) bytes: Vec<u8>,
    /// In file order.
    pub(crate) messages: Vec<Message>,
    /// The offset of the number of partitions.
    pub(crate) toc_end: u64,
    version: u16,
    /// The offset and length of each number of the front.
    fields: Vec<(usize, usize)>,
    counts: Vec<(usize, usize)>,
}

impl Segment {
    /// The offset and length of every number except those of messages.
    pub(crate) fn numbers(&self) -> Vec<(usize, usize)> {
        let numbers = self.fields.iter().chain(&self.counts);
        numbers.copied().collect()
    }

    /// Makes the table's checksum right again.
    pub(crate) fn seal(&self, bytes: &mut [u8]) {
        if self.version == 2 {
            let end = usize::try_from(self.toc_end).unwrap() - 4;
            let crc = crc32fast::hash(&bytes[..end]);
            bytes[end..end + 4].copy_from_slice(&crc.to_be_bytes());
        }
    }
}

/// The segment of these messages, in any order.
pub(crate) fn encode(version: u16, messages: &[(u32, Vec<u8>, Vec<u8>)]) -> Segment {
    let mut partitions = BTreeMap::<u32, BTreeMap<Vec<u8>, Vec<Vec<u8>>>>::new();
    for (partition, tenant, value) in messages {
        let tenants = partitions.entry(*partition).or_default();
        tenants
            .entry(tenant.clone())
            .or_default()
            .push(value.clone());
    }
    let u32_of = |len: usize| u32::try_from(len).unwrap().to_be_bytes();
    let blocks = partitions.values().map(BTreeMap::len).sum::<usize>();
    let toc_bytes = match version {
        1 => 20 * partitions.len(),
        _ => {
            let ids = partitions.values().flat_map(BTreeMap::keys);
            blocks * 32 + ids.map(Vec::len).sum::<usize>() + 4
        }
    };
    let entries = if version == 1 {
        partitions.len()
    } else {
        blocks
    };
    let toc_end = 10 + toc_bytes;
    let (mut toc, mut data, mut out) = (Vec::new(), Vec::new(), Vec::new());
    let (mut fields, mut counts) = (vec![(0, 4), (4, 2), (6, 4)], Vec::new());
    toc.extend_from_slice(b"TSEG");
    toc.extend_from_slice(&version.to_be_bytes());
    toc.extend_from_slice(&u32_of(entries));
    counts.push((toc_end, 4));
    data.extend_from_slice(&u32_of(partitions.len()));
    for (partition, tenants) in &partitions {
        let partition_at = data.len();
        counts.push((toc_end + data.len(), 4));
        data.extend_from_slice(&u32_of(tenants.len()));
        for (tenant, values) in tenants {
            let at = data.len();
            counts.extend([(toc_end + at, 4), (toc_end + at + 4, 4)]);
            data.extend_from_slice(&u32_of(values.len()));
            data.extend_from_slice(&u32_of(tenant.len()));
            data.extend_from_slice(tenant);
            for (index, value) in (0..).zip(values) {
                out.push(Message {
                    position: (toc_end + data.len()) as u64,
                    partition: *partition,
                    tenant: tenant.clone(),
                    index,
                    value: value.clone(),
                    block_end: 0,
                });
                data.extend_from_slice(&u32_of(value.len()));
                data.extend_from_slice(value);
            }
            let end = (toc_end + data.len()) as u64;
            let own = out.len() - values.len();
            out[own..]
                .iter_mut()
                .for_each(|message| message.block_end = end);
            if version == 2 {
                let mut covered = partition.to_be_bytes().to_vec();
                covered.extend_from_slice(&data[at..]);
                fields.extend([(toc.len(), 4), (toc.len() + 4, 4)]);
                toc.extend_from_slice(&partition.to_be_bytes());
                toc.extend_from_slice(&u32_of(tenant.len()));
                toc.extend_from_slice(tenant);
                let rest = toc.len();
                fields.extend([(rest, 4), (rest + 4, 8), (rest + 12, 8), (rest + 20, 4)]);
                toc.extend_from_slice(&u32_of(values.len()));
                toc.extend_from_slice(&((toc_end + at) as u64).to_be_bytes());
                toc.extend_from_slice(&((data.len() - at) as u64).to_be_bytes());
                toc.extend_from_slice(&crc32fast::hash(&covered).to_be_bytes());
            }
        }
        if version == 1 {
            let at = toc.len();
            fields.extend([(at, 4), (at + 4, 8), (at + 12, 8)]);
            toc.extend_from_slice(&partition.to_be_bytes());
            toc.extend_from_slice(&((toc_end + partition_at) as u64).to_be_bytes());
            toc.extend_from_slice(&((data.len() - partition_at) as u64).to_be_bytes());
        }
    }
    if version == 2 {
        let crc = crc32fast::hash(&toc);
        fields.push((toc.len(), 4));
        toc.extend_from_slice(&crc.to_be_bytes());
    }
    assert_eq!(toc.len(), toc_end);
    toc.extend_from_slice(&data);
    Segment {
        bytes: toc,
        messages: out,
        toc_end: toc_end as u64,
        version,
        fields,
        counts,
    }
}

pub(crate) fn messages() -> impl Strategy<Value = Vec<(u32, Vec<u8>, Vec<u8>)>> {
    let partition = prop_oneof![0u32..3, Just(u32::MAX)];
    let tenant = prop_oneof![
        "[a-c]{0,2}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..40)
    ];
    let value = prop::collection::vec(any::<u8>(), 0..120);
    prop::collection::vec((partition, tenant, value), 0..30)
}

/// Messages of many sizes, together about `len` bytes.
pub(crate) fn varied(version: u16, len: usize) -> Segment {
    let (mut all, mut bytes) = (Vec::new(), 0);
    for number in 1_u32.. {
        if bytes >= len {
            break;
        }
        let tenant = format!("tenant-{}", number * 7 % 23).into_bytes();
        let value: Vec<u8> = (0..number * 37 % 150)
            .map(|byte| u8::try_from(byte % 251).unwrap())
            .collect();
        bytes += value.len() + 8;
        all.push(([0, 3, 7, 900, 901][number as usize % 5], tenant, value));
    }
    encode(version, &all)
}

/// Appends the messages of a walk's last step.
pub(crate) fn collect(walk: &dyn Walk, messages: &mut Vec<Message>) {
    let rows = walk.rows();
    for row in 0..rows.len() {
        let (Value::Int64(partition), Value::Text(tenant), Value::Int64(index)) =
            (rows.field(row, 0), rows.field(row, 1), rows.field(row, 2))
        else {
            panic!("columns moved")
        };
        messages.push(Message {
            position: rows.position(row),
            partition: partition.try_into().unwrap(),
            tenant: tenant.to_vec(),
            index: index.try_into().unwrap(),
            value: rows.value(row).to_vec(),
            block_end: 0,
        });
    }
}

/// All messages, and the ranges in the order in which they came.
pub(crate) fn scan(
    source: Arc<dyn Source>,
    options: &Options,
) -> seglake::Result<(Vec<Message>, Vec<Span>)> {
    let mut walk = open(source, options, Start::Beginning)?;
    let (mut messages, mut spans) = (Vec::new(), Vec::new());
    while walk.step()? == Step::More {
        collect(&*walk, &mut messages);
        spans.extend_from_slice(walk.spans());
    }
    assert_eq!(walk.step()?, Step::Done);
    Ok((messages, spans))
}

/// The damage that strict reading raises, if any; it is raised again.
pub(crate) fn strict_error(source: Arc<dyn Source>) -> Option<seglake::Damage> {
    let options = lenient().strict(true);
    let mut walk = open(source, &options, Start::Beginning).unwrap();
    loop {
        match walk.step() {
            Ok(Step::More) => assert!(walk.spans().iter().all(|span| !span.is_damage())),
            Ok(_) => return None,
            Err(seglake::Error::Damage(damage)) => {
                let again = walk.step().unwrap_err().to_string();
                assert_eq!(again, damage.to_string());
                return Some(*damage);
            }
            Err(other) => panic!("not damage: {other}"),
        }
    }
}
