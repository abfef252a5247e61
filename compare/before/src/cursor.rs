//! The one bounds-checked reader of integers and runs of bytes; everything decodes through it.

/// Reads forward through `bytes`; each method gives `None`, and moves nothing, where too few are left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn run(&mut self, len: usize) -> Option<&'a [u8]> {
        let (run, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(run)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (array, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(array)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| *byte)
    }

    pub(crate) fn u32_be(&mut self) -> Option<u32> {
        self.array().map(|bytes| u32::from_be_bytes(*bytes))
    }

    pub(crate) fn u64_be(&mut self) -> Option<u64> {
        self.array().map(|bytes| u64::from_be_bytes(*bytes))
    }

    pub(crate) fn i64_be(&mut self) -> Option<i64> {
        self.array().map(|bytes| i64::from_be_bytes(*bytes))
    }
}
