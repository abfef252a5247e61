//! Columns of views: they name where each value is, in the source if it is in memory, or in a buffer of their own.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryViewArray, StringViewArray};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::ArrowError;
use bytes::Bytes;

use crate::bug::OrBug;
use crate::saturating::{saturating_u32, saturating_usize};
use crate::source::Source;

/// Values of up to this many bytes are stored in the view itself.
const INLINE_BYTES: usize = 12;
/// The longest range of the source that is one buffer: offsets in views have 31 bits.
const MAX_RANGE_BYTES: usize = i32::MAX as usize;

/// A source in memory, as a buffer that keeps the source alive as long as views of it exist.
#[derive(Clone, Debug)]
pub(crate) struct Base(Buffer);

/// Exposes the bytes of a source in memory.
struct Owner(Arc<dyn Source>);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        let bytes = self.0.as_slice();
        bytes.or_bug_default("a source that stays in memory")
    }
}

impl Base {
    /// `None` if the source is not in memory.
    pub(crate) fn new(source: &Arc<dyn Source>) -> Option<Self> {
        source.as_slice()?;
        Some(Self(Buffer::from(Bytes::from_owner(Owner(source.clone())))))
    }

    /// The range of `run` in the source; `None` if it is elsewhere. Compares addresses only.
    fn place(&self, run: &[u8]) -> Option<Range<usize>> {
        let start = run.as_ptr().addr().checked_sub(self.0.as_ptr().addr())?;
        let end = start.checked_add(run.len())?;
        (end <= self.0.len()).then_some(start..end)
    }
}

/// Views in Arrow's layout. A view of at most 12 bytes contains the value. Other views contain the length, the first
/// four bytes, the buffer and the offset in it.
#[derive(Debug)]
pub struct Views {
    views: Vec<u128>,
    base: Option<Base>,
    max_range_bytes: usize,
    /// The ranges of the source in use, each a buffer of its own. Only the last one grows.
    ranges: Vec<ViewedRange>,
    content: Content,
}

/// A range of the source, and the number of its buffer.
#[derive(Debug)]
struct ViewedRange {
    buffer: u32,
    range: Range<usize>,
}

/// Values that are not in the source: bytes, or text. They are the first buffer.
#[derive(Debug)]
enum Content {
    Bytes(Vec<u8>),
    /// With the view of the latest text.
    Text(String, Option<u128>),
}

/// The number of the buffer for values that are not in the source.
const OWN_BUFFER: u32 = 0;

impl Views {
    /// An empty column of bytes that may be in `base`.
    pub(crate) const fn of_bytes(base: Option<Base>) -> Self {
        Self::new(base, MAX_RANGE_BYTES, Content::Bytes(Vec::new()))
    }

    /// An empty column of texts. Texts are copied, because the bytes of a source may change and then not be UTF-8.
    pub(crate) const fn of_text() -> Self {
        Self::new(None, MAX_RANGE_BYTES, Content::Text(String::new(), None))
    }

    const fn new(base: Option<Base>, max_range_bytes: usize, content: Content) -> Self {
        Self {
            views: Vec::new(),
            base,
            max_range_bytes,
            ranges: Vec::new(),
            content,
        }
    }

    pub(crate) const fn is_text(&self) -> bool {
        matches!(self.content, Content::Text(..))
    }

    pub(crate) fn reserve(&mut self, rows: usize) {
        self.views.reserve_exact(rows);
    }

    /// Appends views of byte strings. Returns their number.
    pub(crate) fn extend<'a>(&mut self, runs: impl Iterator<Item = &'a [u8]>) -> usize {
        let before = self.views.len();
        self.views.reserve(runs.size_hint().0);
        runs.for_each(|run| self.push_bytes(run));
        self.views.len() - before
    }

    /// Appends a view of bytes. In a column of text only the empty value is allowed, as the slot of a null.
    pub(crate) fn push_bytes(&mut self, run: &[u8]) {
        let view = if run.len() <= INLINE_BYTES {
            inline(run)
        } else if let Some(view) = self.view_of_source(run) {
            view
        } else if let Content::Bytes(bytes) = &mut self.content {
            let start = bytes.len();
            bytes.extend_from_slice(run);
            view(run, OWN_BUFFER, start)
        } else {
            inline(&[])
        };
        self.views.push(view);
    }

    /// Appends one text `times` times. It is stored once, also if it equals the latest one.
    pub(crate) fn push_text(&mut self, text: &str, times: usize) {
        let Content::Text(stored, last) = &mut self.content else {
            return;
        };
        let bytes = text.as_bytes();
        let new = if bytes.len() <= INLINE_BYTES {
            inline(bytes)
        } else {
            let same = last.filter(|last| {
                let start = saturating_usize(last >> 96);
                let there = stored.as_bytes().get(start..);
                there == Some(bytes)
            });
            same.unwrap_or_else(|| {
                let start = stored.len();
                stored.push_str(text);
                view(bytes, OWN_BUFFER, start)
            })
        };
        if bytes.len() > INLINE_BYTES {
            *last = Some(new);
        }
        self.views.resize(self.views.len() + times, new);
    }

    /// A view of bytes that are in the source.
    fn view_of_source(&mut self, run: &[u8]) -> Option<u128> {
        let place = self.base.as_ref()?.place(run)?;
        let max = self.max_range_bytes;
        if let Some(range) = self.ranges.last_mut()
            && let Some(start) = place.start.checked_sub(range.range.start)
            && place.end - range.range.start <= max
        {
            range.range.end = range.range.end.max(place.end);
            return Some(view(run, range.buffer, start));
        }
        // If there are too many buffers, values are copied instead.
        let buffer = u32::try_from(self.ranges.len()).ok()?.checked_add(1)?;
        self.ranges.push(ViewedRange {
            buffer,
            range: place,
        });
        Some(view(run, buffer, 0))
    }

    /// The views as an array.
    #[allow(unsafe_code)]
    pub(crate) fn into_array(
        self,
        nulls: Option<NullBuffer>,
    ) -> std::result::Result<ArrayRef, ArrowError> {
        let content = match self.content {
            Content::Bytes(bytes) => (bytes, false),
            Content::Text(text, _) => (text.into_bytes(), true),
        };
        let (mut content, is_text) = content;
        if i32::try_from(content.len()).is_err() {
            return Err(too_long(content.len()));
        }
        content.shrink_to_fit();
        let views = ScalarBuffer::from(fitted(self.views));
        let mut buffers = vec![Buffer::from_vec(content)];
        if let Some(Base(buffer)) = &self.base {
            let named = self.ranges.iter().map(|range| &range.range);
            buffers.extend(named.map(|range| buffer.slice_with_length(range.start, range.len())));
        }
        let buffers = Arc::from(buffers);
        // SAFETY: each view was made in one of two ways. `inline` makes it of at most 12 bytes and zeros the rest.
        // `view` makes it of bytes that are at its offset in its buffer, and takes length and prefix from these bytes.
        // That buffer is either `OWN_BUFFER`, which is only appended to and short enough that no offset is cut off, or a
        // range of the source that includes every value named in it. Texts are all in views or in `OWN_BUFFER`, which
        // is then a `String`, each from one push to the next: so they are whole and UTF-8. `nulls` has one entry for
        // each view. The bytes of a source do not change while they are borrowed, and `base` borrows them as long as it
        // exists.
        Ok(unsafe {
            if is_text {
                Arc::new(StringViewArray::new_unchecked(views, buffers, nulls))
            } else {
                Arc::new(BinaryViewArray::new_unchecked(views, buffers, nulls))
            }
        })
    }
}

/// The view of a value that is stored in a buffer.
fn view(run: &[u8], buffer: u32, offset: usize) -> u128 {
    // Batches and ranges end before 2^31 bytes.
    let [len, offset] = [run.len(), offset].map(saturating_u32);
    let prefix = run.first_chunk().copied();
    let prefix = prefix.or_bug_default("a value longer than a view can store");
    let prefix = u32::from_le_bytes(prefix);
    u128::from(len) | u128::from(prefix) << 32 | u128::from(buffer) << 64 | u128::from(offset) << 96
}

/// The view of a value of at most 12 bytes, which is stored in the view itself.
fn inline(run: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    let len = run.len() as u128;
    for (to, from) in bytes.iter_mut().skip(4).zip(run) {
        *to = *from;
    }
    len | u128::from_le_bytes(bytes)
}

pub(crate) fn too_long(bytes: usize) -> ArrowError {
    ArrowError::OffsetOverflowError(bytes)
}

/// Frees the reserved memory that is not needed, if it is much.
pub(crate) fn fitted<T>(mut values: Vec<T>) -> Vec<T> {
    if values.len() < values.capacity() / 2 {
        values.shrink_to_fit();
    }
    values
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use std::ops::Range;

    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::source::BytesSource;

    /// The array of these byte strings. It is compared with the one that Arrow makes of the same parts with its own
    /// checks.
    fn array_of(views: Views, base: &Base) -> BinaryViewArray {
        let (parts, ranges) = (views.views.clone(), &views.ranges);
        let Content::Bytes(copied) = &views.content else {
            unreachable!("these are views of bytes")
        };
        let mut buffers = vec![Buffer::from(copied.as_slice())];
        for ViewedRange { buffer, range } in ranges {
            assert_eq!(usize::try_from(*buffer), Ok(buffers.len()));
            assert!(range.len() <= views.max_range_bytes);
            buffers.push(base.0.slice_with_length(range.start, range.len()));
        }
        let twin = BinaryViewArray::try_new(parts.into(), buffers, None).unwrap();
        let array = views.into_array(None).unwrap();
        let array = array.as_binary_view().clone();
        array.to_data().validate_full().unwrap();
        assert_eq!(array, twin);
        array
    }

    proptest! {
        #[test]
        fn runs_are_found_whatever_range_they_are_in(
            bytes in vec(any::<u8>(), 1..400),
            places in vec((any::<prop::sample::Index>(), 0..40_usize), 0..60),
            foreign in vec(any::<u8>(), 0..40),
            max in 40..100_usize,
        ) {
            let source: Arc<dyn Source> = Arc::new(BytesSource::new(bytes));
            let base = Base::new(&source).unwrap();
            let bytes = source.as_slice().unwrap();
            let mut runs: Vec<&[u8]> = places
                .iter()
                .map(|(start, len)| {
                    let start = start.index(bytes.len());
                    &bytes[start..bytes.len().min(start + len)]
                })
                .collect();
            runs.push(&foreign);
            let content = Content::Bytes(Vec::new());
            let mut views = Views::new(Some(base.clone()), max, content);
            prop_assert_eq!(views.extend(runs.iter().copied()), runs.len());
            // No value of the source was copied.
            let expected = if foreign.len() > INLINE_BYTES { foreign.len() } else { 0 };
            prop_assert!(matches!(&views.content, Content::Bytes(copied) if copied.len() == expected));
            let array = array_of(views, &base);
            prop_assert!(array.iter().map(Option::unwrap).eq(runs));
        }

        #[test]
        fn texts_that_repeat_are_kept_once(texts in vec(("[a-zäß]{0,30}", 1..4_usize), 0..20)) {
            let mut views = Views::of_text();
            for (text, times) in &texts {
                views.push_text(text, *times);
                views.push_text(text, 1);
            }
            let mut long: Vec<_> = texts.iter().map(|(text, _)| text.as_str()).filter(|text| text.len() > 12).collect();
            long.dedup();
            prop_assert!(matches!(&views.content, Content::Text(stored, _) if *stored == long.concat()));
            let array = views.into_array(None).unwrap();
            array.to_data().validate_full().unwrap();
            let expected = texts.iter().flat_map(|(text, times)| std::iter::repeat_n(text.as_str(), times + 1));
            prop_assert!(array.as_string_view().iter().map(Option::unwrap).eq(expected));
        }
    }

    #[test]
    fn what_is_beside_the_source_is_not_in_it() {
        let bytes: &'static [u8] = &[7; 64];
        let (before, rest) = bytes.split_at(16);
        let (within, behind) = rest.split_at(32);
        let source: Arc<dyn Source> = Arc::new(BytesSource::new(within));
        let base = Base::new(&source).unwrap();
        assert_eq!(base.place(within), Some(0..32));
        assert_eq!(base.place(&within[3..20]), Some(3..20));
        let none: Option<Range<usize>> = None;
        for other in [before, behind, &bytes[..17], &bytes[47..], bytes] {
            assert_eq!(base.place(other), none);
        }
    }
}
