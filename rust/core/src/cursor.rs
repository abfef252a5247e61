//! The bounds-checked reader of integers and bytes. All decoding goes through it.

/// Reads forward through `bytes`. Each method returns `None`, without moving, if too few bytes are left.
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

    /// As [`run`](Self::run), but returns all remaining bytes if they are fewer.
    pub(crate) fn run_up_to(&mut self, len: usize) -> &'a [u8] {
        let (run, rest) = self.rest.split_at_checked(len).unwrap_or((self.rest, &[]));
        self.rest = rest;
        run
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (array, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(array)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| *byte)
    }

    pub(crate) fn u16_be(&mut self) -> Option<u16> {
        self.array().map(|bytes| u16::from_be_bytes(*bytes))
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

/// Splits an array into adjacent fields. This cannot fail: the compiler refuses fields whose total length differs from
/// the array's.
///
/// ```text
/// let (uuid, offset): ([u8; 16], u64) = fields(entry); // of `entry: &[u8; 24]`
/// ```
#[inline]
pub(crate) fn fields<'a, F: Field<'a>, const N: usize>(bytes: &'a [u8; N]) -> F {
    const { assert!(F::BYTES == N, "the fields have as many bytes as the array") };
    match F::read(&mut Cursor::new(bytes)) {
        Some(fields) => fields,
        None => unreachable!("the lengths were compared when this was compiled"),
    }
}

/// A value with a fixed length in bytes. Integers are big-endian.
pub(crate) trait Field<'a>: Sized {
    /// Its length in bytes.
    const BYTES: usize;

    /// Reads one; `None` only if fewer than [`BYTES`](Self::BYTES) bytes are left.
    fn read(cursor: &mut Cursor<'a>) -> Option<Self>;
}

impl<'a, const N: usize> Field<'a> for &'a [u8; N] {
    const BYTES: usize = N;

    #[inline]
    fn read(cursor: &mut Cursor<'a>) -> Option<Self> {
        cursor.array()
    }
}

impl<'a, const N: usize> Field<'a> for [u8; N] {
    const BYTES: usize = N;

    #[inline]
    fn read(cursor: &mut Cursor<'a>) -> Option<Self> {
        cursor.array().copied()
    }
}

macro_rules! integer_fields {
    ($($integer:ty: $read:ident),+) => {
        $(impl<'a> Field<'a> for $integer {
            const BYTES: usize = size_of::<Self>();

            #[inline]
            fn read(cursor: &mut Cursor<'a>) -> Option<Self> {
                cursor.$read()
            }
        })+
    };
}

integer_fields!(u8: u8, u16: u16_be, u32: u32_be, u64: u64_be, i64: i64_be);

macro_rules! tuple_fields {
    ($(($($field:ident),+))+) => {
        $(impl<'a, $($field: Field<'a>),+> Field<'a> for ($($field,)+) {
            const BYTES: usize = 0 $(+ $field::BYTES)+;

            #[inline]
            fn read(cursor: &mut Cursor<'a>) -> Option<Self> {
                Some(($($field::read(cursor)?,)+))
            }
        })+
    };
}

tuple_fields! {
    (A, B)
    (A, B, C)
    (A, B, C, D)
    (A, B, C, D, E)
    (A, B, C, D, E, F)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; 24] = [
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
    ];

    #[test]
    fn a_run_ends_where_the_bytes_do() {
        let mut cursor = Cursor::new(&BYTES);
        assert_eq!(cursor.run_up_to(20), &BYTES[..20]);
        assert_eq!(cursor.run(5), None);
        assert_eq!(cursor.run_up_to(5), &BYTES[20..]);
        assert!(cursor.run_up_to(5).is_empty() && cursor.run_up_to(0).is_empty());
    }

    #[test]
    fn fields_are_the_array_s_bytes_in_order() {
        let (uuid, offset): ([u8; 16], u64) = fields(&BYTES);
        assert_eq!(uuid, BYTES[..16]);
        assert_eq!(offset, 0x1112_1314_1516_1718);
        let (a, b, c, d, e, f): (u8, u16, u32, i64, &[u8; 8], u8) = fields(&BYTES);
        assert_eq!((a, b, c), (1, 0x0203, 0x0405_0607));
        assert_eq!(
            (d, e, f),
            (0x0809_0a0b_0c0d_0e0f, &[16, 17, 18, 19, 20, 21, 22, 23], 24)
        );
    }

    #[test]
    fn signed_numbers_and_nested_fields_are_read() {
        let (number, [byte]): (i64, [u8; 1]) =
            fields(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 7]);
        assert_eq!((number, byte), (-2, 7));
        let (a, (b, c), d): (u8, (u16, u32), &[u8; 3]) = fields(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!((a, b, c, d), (1, 0x0203, 0x0405_0607, &[8, 9, 10]));
        let one: u32 = fields(&[0, 0, 1, 0]);
        assert_eq!(one, 256);
    }

    /// After a read that fails, the cursor has not moved.
    #[test]
    fn integers_need_all_their_bytes() {
        let mut cursor = Cursor::new(&BYTES[..1]);
        assert_eq!((cursor.u16_be(), cursor.u32_be()), (None, None));
        assert_eq!((cursor.u64_be(), cursor.i64_be()), (None, None));
        assert_eq!((cursor.array::<2>(), cursor.u8()), (None, Some(1)));
        assert_eq!(cursor.u8(), None);
    }
}
