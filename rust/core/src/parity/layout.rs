//! The layout of a sidecar: heads, and the sizes of bands, blocks and frames.

use std::fmt;
use std::str::FromStr;

use crate::bug::OrBug;
use crate::checksum::{Key, batch, hash};
use crate::cursor::fields;
use crate::error::{Error, Result};

/// What every head begins with.
pub(crate) const MAGIC: [u8; 8] = *b"SLKPRTY1";

/// The bytes of a head.
pub(super) const HEAD_BYTES: usize = 56;

/// The bytes of an entry of a table.
pub(super) const ENTRY_BYTES: usize = 8;

/// The bytes of the smallest block. All sizes of blocks are multiples of it.
const MIN_BLOCK_BYTES: usize = 64;

/// The largest size of blocks that a set can have.
const MAX_BLOCK_BYTES: usize = 4096;

/// The bytes of a file are fewer.
const FILE_BYTES_END: u64 = 1 << 63;

/// How a file is divided, and how much parity it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    block_bytes: u16,
    data: u8,
    parity: u8,
    groups: u16,
}

impl Parameters {
    /// The profile `128+8`.
    pub const DEFAULT: Self = Self::profile_of(8, 32);

    /// The profiles by name.
    pub const PROFILES: &[(&str, Self)] = &[
        ("128+8", Self::DEFAULT),
        ("128+4", Self::profile_of(4, 32)),
        ("128+16", Self::profile_of(16, 32)),
        ("128+8-long", Self::profile_of(8, 256)),
    ];

    const fn profile_of(parity: u8, groups: u16) -> Self {
        Self {
            block_bytes: 4096,
            data: 128,
            parity,
            groups,
        }
    }

    /// Parameters with blocks of at most `block_bytes`, and `groups` in a full band, each of `data` blocks and `parity`
    /// blocks.
    ///
    /// # Errors
    /// [`Error::Usage`] if a number is outside of its limits.
    pub fn new(block_bytes: u16, data: u8, parity: u8, groups: u16) -> Result<Self> {
        Self::of(block_bytes, data, parity, groups).ok_or_else(|| {
            Error::Usage(format!(
                "expected blocks of 64, 128, ... or 4096 bytes, at least 1 of data and 1 of parity and at most 256 \
                 together in a group, and 1 to 256 groups; found {block_bytes}, {data}, {parity}, {groups}"
            ))
        })
    }

    fn of(block_bytes: u16, data: u8, parity: u8, groups: u16) -> Option<Self> {
        let is_valid = block_bytes.is_power_of_two()
            && (MIN_BLOCK_BYTES..=MAX_BLOCK_BYTES).contains(&usize::from(block_bytes))
            && data >= 1
            && parity >= 1
            && u16::from(data) + u16::from(parity) <= 256
            && (1..=256).contains(&groups);
        is_valid.then_some(Self {
            block_bytes,
            data,
            parity,
            groups,
        })
    }

    /// The number of data blocks in a full group (k).
    #[doc(hidden)] // public for the Python extension
    #[must_use]
    pub fn data(self) -> usize {
        usize::from(self.data)
    }

    /// The number of parity blocks in a group (m).
    #[doc(hidden)] // public for the Python extension
    #[must_use]
    pub fn parity(self) -> usize {
        usize::from(self.parity)
    }

    /// The bytes of a band (Z), less than 2^28.
    #[doc(hidden)] // public for the Python extension
    #[must_use]
    pub fn band_bytes(self) -> u64 {
        u64::from(self.block_bytes) * u64::from(self.data) * u64::from(self.groups)
    }
}

impl FromStr for Parameters {
    type Err = Error;

    /// The profile of this name. Another name is [`Error::Usage`].
    fn from_str(name: &str) -> Result<Self> {
        let profile = Self::PROFILES.iter().find(|(known, _)| *known == name);
        profile.map(|(_, parameters)| *parameters).ok_or_else(|| {
            let names: Vec<_> = Self::PROFILES.iter().map(|(name, _)| *name).collect();
            Error::Usage(format!(
                "there is no profile {name:?}: it is one of {}",
                names.join(", ")
            ))
        })
    }
}

impl fmt::Display for Parameters {
    /// The name of the profile, or the numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let profile = Self::PROFILES.iter().find(|(_, known)| known == self);
        match profile {
            Some((name, _)) => f.write_str(name),
            None => write!(
                f,
                "{}+{} with {} groups of blocks of {} bytes",
                self.data, self.parity, self.groups, self.block_bytes
            ),
        }
    }
}

/// What all frames of a sidecar have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set {
    /// Secure random for each new sidecar.
    pub id: [u8; 8],
    /// How the file is divided.
    pub parameters: Parameters,
}

impl Set {
    /// A set with a random ID.
    #[must_use]
    pub fn random(parameters: Parameters) -> Self {
        let [a, b, c, d, e, f, _, _, _, g, h, ..] = uuid::Uuid::new_v4().into_bytes();
        Self {
            id: [a, b, c, d, e, f, g, h],
            parameters,
        }
    }

    /// The key of the hash of a block.
    pub(super) fn key(&self, band: u64, block: usize) -> batch::Key {
        batch::Key::from_words([u64::from_be_bytes(self.id), band, block as u64, 0])
    }

    /// Adds the ID to parity, or removes it.
    pub(super) fn mask(&self, parity: &mut [u8]) {
        let id = u64::from_ne_bytes(self.id);
        for bytes in parity.as_chunks_mut::<8>().0 {
            *bytes = (u64::from_ne_bytes(*bytes) ^ id).to_ne_bytes();
        }
    }

    /// Where a band begins in the file. No band whose head is valid begins at 2^63 or after it.
    pub(super) fn band_start(&self, band: u64) -> u64 {
        band.saturating_mul(self.parameters.band_bytes())
    }
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) set: Set,
    /// The second copy, after the parity.
    pub(super) is_second: bool,
    pub(super) band: u64,
    /// The bytes of the band that the frame covers (L).
    pub(super) len: u32,
    /// The bytes of the file that were covered by then (C).
    pub(super) covered: u64,
}

/// The fields of a head before its checksum.
type Fields = ([u8; 8], [u8; 8], u16, (u8, u8, u16), u16, (u64, u64, u64));

impl Head {
    /// Rule 1: the head, if its magic and checksum are right and its fields are within their limits.
    pub(super) fn parse(bytes: &[u8; HEAD_BYTES]) -> Option<Self> {
        let (hashed, checksum): (&[u8; 48], u64) = fields(bytes);
        let (magic, id, block_bytes, (data, parity, groups), copy, (band, len, covered)): Fields =
            fields(hashed);
        if magic != MAGIC || hash(&Key::DEFAULT, hashed) != checksum {
            return None;
        }
        let parameters = Parameters::of(block_bytes, data, parity, groups)?;
        let end = band
            .checked_mul(parameters.band_bytes())?
            .checked_add(len)?;
        let is_valid = copy <= 1
            && (1..=parameters.band_bytes()).contains(&len)
            && end <= covered
            && covered < FILE_BYTES_END;
        is_valid.then_some(Self {
            set: Set { id, parameters },
            is_second: copy == 1,
            band,
            len: u32::try_from(len).ok()?,
            covered,
        })
    }

    /// The bytes of the head.
    pub(super) fn bytes(&self) -> [u8; HEAD_BYTES] {
        let Parameters {
            block_bytes,
            data,
            parity,
            groups,
        } = self.set.parameters;
        let mut bytes = Vec::with_capacity(HEAD_BYTES);
        bytes.extend(MAGIC);
        bytes.extend(self.set.id);
        bytes.extend(block_bytes.to_be_bytes());
        bytes.extend([data, parity]);
        bytes.extend(groups.to_be_bytes());
        bytes.extend(u16::from(self.is_second).to_be_bytes());
        bytes.extend(self.band.to_be_bytes());
        bytes.extend(u64::from(self.len).to_be_bytes());
        bytes.extend(self.covered.to_be_bytes());
        let checksum = hash(&Key::DEFAULT, &bytes);
        bytes.extend(checksum.to_be_bytes());
        bytes
            .try_into()
            .ok()
            .or_bug_value("the fields of a head", [0; HEAD_BYTES])
    }

    pub(super) fn geometry(&self) -> Geometry {
        Geometry::new(self.set.parameters, self.len)
    }
}

/// The sizes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    /// The bytes of the band that it covers (L).
    pub(super) len: usize,
    /// The bytes of a block (b).
    pub(super) block_bytes: usize,
    /// The data blocks (n).
    pub(super) blocks: usize,
    /// The groups (g).
    pub(super) groups: usize,
    /// The data blocks of a full group (k).
    pub(super) data: usize,
    /// The parity blocks of a group (m).
    pub(super) parity: usize,
}

impl Geometry {
    /// The sizes of a frame that covers `len` bytes of its band.
    pub(super) fn new(parameters: Parameters, len: u32) -> Self {
        let (data, parity) = (parameters.data(), parameters.parity());
        let most = usize::from(parameters.block_bytes);
        let len = crate::saturating::saturating_usize(len);
        let mut block_bytes = MIN_BLOCK_BYTES;
        while block_bytes < most
            && (parity * block_bytes < len.min(most) || data * block_bytes < len)
        {
            block_bytes *= 2;
        }
        let blocks = len.div_ceil(block_bytes);
        Self {
            len,
            block_bytes,
            blocks,
            groups: blocks.div_ceil(data),
            data,
            parity,
        }
    }

    /// The number of parity blocks.
    pub(super) fn parity_blocks(&self) -> usize {
        self.parity * self.groups
    }

    /// The number of entries of a table.
    pub(super) fn entries(&self) -> usize {
        self.blocks + self.parity_blocks()
    }

    /// The bytes of a front: head and table.
    pub(super) fn front_bytes(&self) -> usize {
        HEAD_BYTES + ENTRY_BYTES * self.entries()
    }

    /// The bytes of the parity.
    pub(super) fn parity_bytes(&self) -> usize {
        self.parity_blocks() * self.block_bytes
    }

    /// Where the second front begins in the frame.
    pub(super) fn second_front(&self) -> usize {
        self.front_bytes() + self.parity_bytes()
    }

    /// The bytes of the frame.
    pub(super) fn frame_bytes(&self) -> usize {
        self.second_front() + self.front_bytes()
    }

    /// The bytes of a data block within the band, without padding.
    pub(super) fn block(&self, block: usize) -> std::ops::Range<usize> {
        let start = block * self.block_bytes;
        start..(start + self.block_bytes).min(self.len)
    }
}
