//! HighwayHash-64 over one record, over many, and over records larger than a window.
//!
//! HighwayHash is Google's keyed hash (<https://github.com/google/highwayhash>). The `highway` crate computes it, and
//! chooses AVX2, SSE4.1, NEON or portable code at run time.
//!
//! A file under a key of its own cannot be changed unnoticed by those who do not have the key:
//!
//! ```
//! use seglake::checksum::Key;
//! use seglake::format::{WriteOptions, active, create};
//! use seglake::{Options, Reader, Value};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("orders.active");
//!
//! let key = Key::new(b"32 bytes that nobody else knows.");
//! let mut writer = create(&active::FORMAT, &path, &WriteOptions::default().key(key))?;
//! writer.write(&[Value::Null, Value::Null, "order.paid".into(), b"{}"[..].into()])?;
//! writer.close()?;
//!
//! let reader = Reader::open(&path, Options::default().keys(vec![key]))?;
//! assert_eq!(reader.records().filter_map(Result::ok).count(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::ops::Deref;

#[doc(hidden)]
pub use batch::hash_many;
use highway::{HighwayHash, HighwayHasher};
#[doc(hidden)]
pub use highway_batch as batch;

use crate::error::{Error, Result};
use crate::text::hex_byte;

/// HighwayHash-64 of a message.
#[inline]
#[must_use]
pub fn hash(key: &Key, message: &[u8]) -> u64 {
    batch::hash(key, message)
}

/// A 32-byte HighwayHash key. Its `Debug` output never shows the bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(batch::Key);

impl Key {
    /// The public default key: 32 zero bytes. It detects accidental damage. Only a secret key detects tampering.
    pub const DEFAULT: Self = Self(batch::Key::ZERO);

    /// A key from its 32 bytes, read as four little-endian 64-bit words, as HighwayHash defines.
    #[must_use]
    pub fn new(bytes: &[u8; 32]) -> Self {
        Self(batch::Key::new(bytes))
    }

    /// A key from 32 raw bytes, or from 64 hexadecimal digits that white space may surround: the content of a key file.
    ///
    /// # Errors
    /// [`Error::Usage`] for anything else. The message gives lengths only, never the content.
    pub fn parse(text: &[u8]) -> Result<Self> {
        if let Ok(bytes) = text.try_into() {
            return Ok(Self::new(bytes));
        }
        Self::parse_hex(text)
    }

    /// A key from 64 hexadecimal digits that white space may surround.
    ///
    /// # Errors
    /// [`Error::Usage`] for anything else. The message gives lengths only, never the content.
    #[doc(hidden)] // public for the Python extension
    pub fn parse_hex(text: &[u8]) -> Result<Self> {
        let digits = text.trim_ascii();
        let mut bytes = [0u8; 32];
        let (pairs, rest) = digits.as_chunks::<2>();
        let decoded = pairs.len() == bytes.len()
            && rest.is_empty()
            && bytes
                .iter_mut()
                .zip(pairs)
                .all(|(byte, digits)| match hex_byte(*digits) {
                    Some(decoded) => {
                        *byte = decoded;
                        true
                    }
                    None => false,
                });
        if !decoded {
            return Err(Error::Usage(format!(
                "expected a key of 32 raw bytes or 64 hexadecimal digits, found {} bytes that are neither",
                text.len()
            )));
        }
        Ok(Self::new(&bytes))
    }

    /// The checksum, if it may be shown. Under a secret key it may not: a forger who learns the expected checksum of a
    /// record needs no key.
    pub(crate) fn disclosed(&self, checksum: u64) -> Option<u64> {
        (*self == Self::DEFAULT).then_some(checksum)
    }
}

impl Default for Key {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::DEFAULT {
            "Key(default)"
        } else {
            "Key(..)"
        })
    }
}

#[doc(hidden)] // public for the Python extension and benches, which hash with `batch`
impl Deref for Key {
    type Target = batch::Key;

    /// The key as [`batch`] takes it.
    fn deref(&self) -> &batch::Key {
        &self.0
    }
}

/// HighwayHash-64 of a message that comes in pieces. Its `Debug` output shows nothing, because the hasher's state
/// begins as the key.
#[derive(Clone)]
#[doc(hidden)]
pub struct Incremental(HighwayHasher);

impl fmt::Debug for Incremental {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Incremental(..)")
    }
}

impl Incremental {
    /// A hasher without input.
    #[must_use]
    pub fn new(key: &Key) -> Self {
        Self(HighwayHasher::new(highway::Key(key.words())))
    }

    /// Adds the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.append(bytes);
    }

    /// The hash of all pieces.
    #[must_use]
    pub fn finish(self) -> u64 {
        self.0.finalize64()
    }
}
