//! HighwayHash-64 of many messages at once, in lockstep.
//!
//! HighwayHash is one long chain of operations that depend on each other. A single message leaves most of a core idle,
//! and the beginning and end of a short one cost more than its bytes. Messages do not depend on each other. So this
//! crate hashes as many in lockstep as there are registers for. Use it for more than a few messages; for one alone,
//! [`hash`] is the fastest way.
//!
//! ```
//! use highway_batch::{Batch, Key, hash};
//!
//! let bytes = b"The first message.And another, which is longer.";
//! let extents = [(0, 18), (18, 29)]; // (offset, length)
//! let mut hashes = Vec::new();
//! Batch::new().hash(&Key::ZERO, bytes, &extents, &mut hashes);
//! assert_eq!(hashes, [hash(&Key::ZERO, &bytes[..18]), hash(&Key::ZERO, &bytes[18..])]);
//! ```
//!
//! # How
//!
//! Windows of up to 512 messages are sorted by the number of 32-byte packets. Neighbours in that order are hashed
//! together, while the bytes after the window are prefetched. The last packet of a message is made by one shuffle from
//! a table, whatever its length. Nothing outside of a message is read. See [`Kernel`] for the instructions.
//!
//! Hashing returns no errors. If an invariant of this crate is broken, hashes are wrong or zero, so sound messages seem
//! damaged. Builds with debug assertions panic.
//!
//! The algorithm is that of Google's [reference implementation](https://github.com/google/highwayhash); the crate
//! `highway` is the reference for tests of the kernels, and hashes on processors without a kernel.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod invariant;
mod kernel;
mod key;
#[cfg(target_arch = "x86_64")]
mod lockstep;
#[cfg(target_arch = "x86_64")]
mod message;
#[cfg(target_arch = "x86_64")]
mod simd;
#[cfg(target_arch = "x86_64")]
mod window;

use std::fmt;

use crate::invariant::Always;
use kernel::Dispatch;
pub use kernel::Kernel;
pub use key::Key;
#[cfg(target_arch = "x86_64")]
use message::Message;

/// Hashes many messages at once. It has about 2 KiB of memory for sorting, so reuse it for small batches. Batches do
/// not affect each other.
#[derive(Clone)]
pub struct Batch {
    dispatch: Dispatch,
    #[cfg(target_arch = "x86_64")]
    scratch: window::Scratch,
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Batch").field(&self.kernel()).finish()
    }
}

impl Batch {
    /// Uses the kernel that [`Kernel::detected`] returns.
    #[must_use]
    pub fn new() -> Self {
        Self::of(Dispatch::detected())
    }

    /// Uses this kernel. If the processor lacks its instructions, uses the best one below it.
    #[must_use]
    pub fn with_kernel(kernel: Kernel) -> Self {
        Self::of(Dispatch::of(kernel))
    }

    fn of(dispatch: Dispatch) -> Self {
        Self {
            dispatch,
            #[cfg(target_arch = "x86_64")]
            scratch: window::Scratch::default(),
        }
    }

    /// The kernel in use.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.dispatch.kernel()
    }

    /// HighwayHash-64 of messages in one buffer. `extents` are their (offset, length) in bytes, in any order, and may
    /// overlap. The content of `hashes` is replaced by one hash for each extent.
    ///
    /// An extent that reaches past `bytes` hashes the bytes that exist; callers check bounds first.
    pub fn hash(
        &mut self,
        key: &Key,
        bytes: &[u8],
        extents: &[(usize, usize)],
        hashes: &mut Vec<u64>,
    ) {
        hashes.clear();
        if let [extent] = extents {
            return hashes.push(hash_with(self.dispatch, key, part(bytes, *extent)));
        }
        let messages = Messages {
            bytes,
            extents,
            heads: &[],
            keys: &[],
        };
        self.hash_all::<0, false>(key, messages, hashes);
    }

    /// As [`hash`](Self::hash), for messages whose first 16 bytes are elsewhere. They are one of `heads`, and the rest
    /// is at the message's extent. So nothing has to be copied.
    ///
    /// This is fast if the buffer has 16 bytes before each extent, where the head takes their place; they are not used.
    /// There is one hash for each pair of a head and an extent.
    ///
    /// ```
    /// use highway_batch::{Batch, Key, hash};
    ///
    /// let bytes = b"................The first message.And another, which is longer.";
    /// let extents = [(16, 18), (34, 29)]; // (offset, length)
    /// let mut hashes = Vec::new();
    /// let heads = [[1; 16], [2; 16]];
    /// Batch::new().hash_headed(&Key::ZERO, &heads, bytes, &extents, &mut hashes);
    /// let joined = [&[2; 16], &bytes[34..]].concat();
    /// assert_eq!(hashes[1], hash(&Key::ZERO, &joined));
    /// ```
    pub fn hash_headed(
        &mut self,
        key: &Key,
        heads: &[[u8; HEAD_BYTES]],
        bytes: &[u8],
        extents: &[(usize, usize)],
        hashes: &mut Vec<u64>,
    ) {
        hashes.clear();
        let count = heads.len().min(extents.len());
        let messages = Messages {
            bytes,
            extents: extents.get(..count).always("no fewer extents"),
            heads: heads.get(..count).always("no fewer heads"),
            keys: &[],
        };
        self.hash_all::<HEAD_BYTES, false>(key, messages, hashes);
    }

    /// As [`hash`](Self::hash), with a key for each message. There is one hash for each pair of a key and an extent.
    ///
    /// ```
    /// use highway_batch::{Batch, Key, hash};
    ///
    /// let bytes = b"The first message.And another, which is longer.";
    /// let keys = [Key::new(&[1; 32]), Key::new(&[2; 32])];
    /// let mut hashes = Vec::new();
    /// Batch::new().hash_keyed(&keys, bytes, &[(0, 18), (18, 29)], &mut hashes);
    /// assert_eq!(hashes, [hash(&keys[0], &bytes[..18]), hash(&keys[1], &bytes[18..])]);
    /// ```
    pub fn hash_keyed(
        &mut self,
        keys: &[Key],
        bytes: &[u8],
        extents: &[(usize, usize)],
        hashes: &mut Vec<u64>,
    ) {
        hashes.clear();
        let count = keys.len().min(extents.len());
        let messages = Messages {
            bytes,
            extents: extents.get(..count).always("no fewer extents"),
            heads: &[],
            keys: keys.get(..count).always("no fewer keys"),
        };
        self.hash_all::<0, true>(&Key::ZERO, messages, hashes);
    }

    fn hash_all<const HEAD: usize, const KEYED: bool>(
        &mut self,
        key: &Key,
        messages: Messages<'_>,
        hashes: &mut Vec<u64>,
    ) {
        let count = messages.extents.len();
        match self.dispatch {
            Dispatch::Portable => {
                hashes.extend((0..count).map(|index| messages.hash_singly(key, index)));
            }
            #[cfg(target_arch = "x86_64")]
            Dispatch::Avx2(avx2) => {
                hashes.resize(count, 0);
                avx2.hash::<HEAD, KEYED>(key, messages, &mut self.scratch, hashes);
            }
            #[cfg(target_arch = "x86_64")]
            Dispatch::Avx512(avx512) => {
                hashes.resize(count, 0);
                avx512.hash::<HEAD, KEYED>(key, messages, &mut self.scratch, hashes);
            }
        }
    }
}

/// The bytes of a message that [`Batch::hash_headed`] takes from elsewhere.
const HEAD_BYTES: usize = 16;

/// Messages to hash.
#[derive(Clone, Copy)]
struct Messages<'a> {
    bytes: &'a [u8],
    /// The place of each message, without its head.
    extents: &'a [(usize, usize)],
    /// As many heads, or none.
    heads: &'a [[u8; HEAD_BYTES]],
    /// As many keys, or none if all messages have the same.
    keys: &'a [Key],
}

impl<'a> Messages<'a> {
    /// The first `count` messages, and the others.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn split_at(self, count: usize) -> (Self, Self) {
        let (extents, later) = self.extents.split_at(count.min(self.extents.len()));
        let (heads, later_heads) = self.heads.split_at(count.min(self.heads.len()));
        let (keys, later_keys) = self.keys.split_at(count.min(self.keys.len()));
        let first = Self {
            bytes: self.bytes,
            extents,
            heads,
            keys,
        };
        let later = Self {
            bytes: self.bytes,
            extents: later,
            heads: later_heads,
            keys: later_keys,
        };
        (first, later)
    }

    /// The bytes of the message with this index, without its head, as far as they are within the buffer.
    fn rest(&self, index: usize) -> &'a [u8] {
        let extent = self.extents.get(index).copied();
        part(self.bytes, extent.always("the index of a message"))
    }

    /// The hash of the message with this index by the crate `highway`. A call for each takes 29 instructions more.
    #[inline(always)]
    fn hash_singly(&self, key: &Key, index: usize) -> u64 {
        let key = self.keys.get(index).unwrap_or(key);
        let rest = self.rest(index);
        match self.heads.get(index) {
            Some(head) => key::by_crate(key, head, rest),
            None => key::by_crate(key, &[], rest),
        }
    }
}

/// The bytes of an extent that are within `bytes`.
fn part(bytes: &[u8], (start, len): (usize, usize)) -> &[u8] {
    let rest = bytes.get(start..).unwrap_or_default();
    rest.get(..len).unwrap_or(rest)
}

/// HighwayHash-64 of many messages in one buffer. `extents` are (offset, length) within `bytes`, and `hashes` gets one
/// hash for each. It makes a [`Batch`] for one call.
///
/// An extent that reaches past `bytes` hashes the bytes that exist; callers check bounds first.
pub fn hash_many(key: &Key, bytes: &[u8], extents: &[(usize, usize)], hashes: &mut Vec<u64>) {
    Batch::new().hash(key, bytes, extents, hashes);
}

/// HighwayHash-64 of `bytes`, by the fastest instructions for one message.
#[must_use]
#[inline]
pub fn hash(key: &Key, bytes: &[u8]) -> u64 {
    hash_with(Dispatch::detected(), key, bytes)
}

#[inline]
fn hash_with(dispatch: Dispatch, key: &Key, message: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    let hash = match dispatch {
        Dispatch::Portable => None,
        Dispatch::Avx2(avx2) => {
            Message::new(message).and_then(|message| avx2.hash_one(key, message))
        }
        Dispatch::Avx512(avx512) => {
            Message::new(message).and_then(|message| avx512.avx2().hash_one(key, message))
        }
    };
    #[cfg(not(target_arch = "x86_64"))]
    let (Dispatch::Portable, hash) = (dispatch, None);
    hash.unwrap_or_else(|| key::by_crate(key, &[], message))
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
