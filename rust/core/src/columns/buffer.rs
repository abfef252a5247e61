//! The buffers that columns are collected in, laid out as Arrow has them.

use crate::text::escape;

/// One column being filled. Values are appended with the method of the column's kind; a method of another kind appends
/// nothing.
#[derive(Debug)]
pub enum ColumnBuffer {
    /// 16 bytes a value.
    Fixed16(Vec<u8>),
    /// Signed 64-bit integers.
    Int64(Vec<i64>),
    /// Bytes or UTF-8 text of any length: value `i` is `data[offsets[i]..offsets[i + 1]]`. UUIDs are appended as their
    /// hyphenated text if `text` is set, as 16 bytes otherwise.
    Variable {
        /// One more than there are values, the first 0.
        offsets: Vec<i32>,
        /// The values, end to end.
        data: Vec<u8>,
        /// Whether the data is UTF-8 text.
        text: bool,
    },
}

impl ColumnBuffer {
    /// An empty column of values of any length.
    #[must_use]
    pub fn variable(text: bool) -> Self {
        Self::Variable {
            offsets: vec![0],
            data: Vec::new(),
            text,
        }
    }

    /// How many bytes the column's values have, offsets not counted.
    #[must_use]
    pub fn data_len(&self) -> usize {
        match self {
            Self::Fixed16(bytes) => bytes.len(),
            Self::Int64(values) => values.len() * 8,
            Self::Variable { data, .. } => data.len(),
        }
    }

    /// Appends a UUID, given in network byte order.
    pub fn push_uuid(&mut self, uuid: &[u8; 16]) {
        match self {
            Self::Fixed16(bytes) => bytes.extend_from_slice(uuid),
            Self::Variable { text: true, .. } => {
                let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
                self.push_bytes(
                    uuid::Uuid::from_bytes(*uuid)
                        .hyphenated()
                        .encode_lower(&mut text)
                        .as_bytes(),
                );
            }
            _ => self.push_bytes(uuid),
        }
    }

    /// Appends an integer.
    pub fn push_int64(&mut self, value: i64) {
        if let Self::Int64(values) = self {
            values.push(value);
        }
    }

    /// Appends bytes as they are.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        if let Self::Variable { offsets, data, .. } = self {
            data.extend_from_slice(bytes);
            // `Batches` ends a batch before its data reaches 2^31 bytes.
            offsets.push(i32::try_from(data.len()).unwrap_or(i32::MAX));
        }
    }

    /// Appends bytes that are meant to be text, [escaped](escape).
    pub fn push_text(&mut self, bytes: &[u8]) {
        self.push_bytes(escape(bytes).as_bytes());
    }
}
