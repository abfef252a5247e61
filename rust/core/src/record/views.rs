//! Columns that do not hold their values but name where they are: in the source that is read, where that is in memory, or in a
//! buffer beside the views.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryViewArray, StringViewArray};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::ArrowError;
use bytes::Bytes;

use crate::bug::OrBug;
use crate::saturating::{saturating_u32, saturating_usize};
use crate::source::Source;

/// Values of so many bytes are in the view itself.
const INLINE_BYTES: usize = 12;
/// A stretch of the source that views name has at most so many bytes, since their offsets are of 31 bits.
const MAX_STRETCH_BYTES: usize = i32::MAX as usize;

/// A source in memory, as a buffer that keeps it for as long as any view of it is there.
#[derive(Clone, Debug)]
pub(crate) struct Home(Buffer);

/// Gives the bytes of a source that is in memory.
struct Owner(Arc<dyn Source>);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        let bytes = self.0.as_slice();
        bytes.or_bug_default("a source that stays in memory")
    }
}

impl Home {
    /// `None` where the source is not in memory.
    pub(crate) fn new(source: &Arc<dyn Source>) -> Option<Self> {
        source.as_slice()?;
        Some(Self(Buffer::from(Bytes::from_owner(Owner(source.clone())))))
    }

    /// Where `run` is in the source; `None` where it is somewhere else. Told by addresses alone.
    fn place(&self, run: &[u8]) -> Option<Range<usize>> {
        let start = run.as_ptr().addr().checked_sub(self.0.as_ptr().addr())?;
        let end = start.checked_add(run.len())?;
        (end <= self.0.len()).then_some(start..end)
    }
}

/// Views as Arrow lays them out: of values of at most 12 bytes the value, of others its length, its first four bytes, the buffer
/// that it is in and the offset there.
#[derive(Debug)]
pub struct Views {
    views: Vec<u128>,
    home: Option<Home>,
    max_stretch_bytes: usize,
    /// The stretches of the source that are named, each a buffer of its own. The last is the one that grows.
    stretches: Vec<Stretch>,
    content: Content,
}

/// A stretch of the source, and its place among the buffers.
#[derive(Debug)]
struct Stretch {
    buffer: u32,
    range: Range<usize>,
}

/// What is not in the source: bytes, or text. It is the first buffer.
#[derive(Debug)]
enum Content {
    Bytes(Vec<u8>),
    /// With the view of the text that came last.
    Text(String, Option<u128>),
}

/// The place of the buffer of what is not in the source.
const OWN_BUFFER: u32 = 0;

impl Views {
    /// No views yet, of bytes that may be in `home`.
    pub(crate) const fn of_bytes(home: Option<Home>) -> Self {
        Self::new(home, MAX_STRETCH_BYTES, Content::Bytes(Vec::new()))
    }

    /// No views yet, of texts. These are never in the source, whose bytes nobody can promise to stay UTF-8.
    pub(crate) const fn of_text() -> Self {
        Self::new(None, MAX_STRETCH_BYTES, Content::Text(String::new(), None))
    }

    const fn new(home: Option<Home>, max_stretch_bytes: usize, content: Content) -> Self {
        Self {
            views: Vec::new(),
            home,
            max_stretch_bytes,
            stretches: Vec::new(),
            content,
        }
    }

    pub(crate) const fn is_text(&self) -> bool {
        matches!(self.content, Content::Text(..))
    }

    pub(crate) fn reserve(&mut self, rows: usize) {
        self.views.reserve_exact(rows);
    }

    /// Appends views of runs of bytes. Gives how many.
    pub(crate) fn extend<'a>(&mut self, runs: impl Iterator<Item = &'a [u8]>) -> usize {
        let before = self.views.len();
        self.views.reserve(runs.size_hint().0);
        runs.for_each(|run| self.push_bytes(run));
        self.views.len() - before
    }

    /// Appends a view of bytes. Into a column of text only nothing, which stands where there is a null.
    pub(crate) fn push_bytes(&mut self, run: &[u8]) {
        let view = if run.len() <= INLINE_BYTES {
            inline(run)
        } else if let Some(view) = self.view_of_home(run) {
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

    /// Appends one text so many times: it is kept once, also where it came last before.
    pub(crate) fn push_text(&mut self, text: &str, times: usize) {
        let Content::Text(own, last) = &mut self.content else {
            return;
        };
        let bytes = text.as_bytes();
        let new = if bytes.len() <= INLINE_BYTES {
            inline(bytes)
        } else {
            let same = last.filter(|last| {
                let start = saturating_usize(last >> 96);
                let there = own.as_bytes().get(start..);
                there == Some(bytes)
            });
            same.unwrap_or_else(|| {
                let start = own.len();
                own.push_str(text);
                view(bytes, OWN_BUFFER, start)
            })
        };
        if bytes.len() > INLINE_BYTES {
            *last = Some(new);
        }
        self.views.resize(self.views.len() + times, new);
    }

    /// A view of bytes that are in the source.
    fn view_of_home(&mut self, run: &[u8]) -> Option<u128> {
        let place = self.home.as_ref()?.place(run)?;
        let max = self.max_stretch_bytes;
        if let Some(stretch) = self.stretches.last_mut()
            && let Some(start) = place.start.checked_sub(stretch.range.start)
            && place.end - stretch.range.start <= max
        {
            stretch.range.end = stretch.range.end.max(place.end);
            return Some(view(run, stretch.buffer, start));
        }
        // If there are more than so many, values are copied beside them.
        let buffer = u32::try_from(self.stretches.len()).ok()?.checked_add(1)?;
        self.stretches.push(Stretch {
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
        let own = match self.content {
            Content::Bytes(bytes) => (bytes, false),
            Content::Text(text, _) => (text.into_bytes(), true),
        };
        let (mut own, is_text) = own;
        if i32::try_from(own.len()).is_err() {
            return Err(too_long(own.len()));
        }
        own.shrink_to_fit();
        let views = ScalarBuffer::from(fitted(self.views));
        let mut buffers = vec![Buffer::from_vec(own)];
        if let Some(Home(home)) = &self.home {
            let named = self.stretches.iter().map(|stretch| &stretch.range);
            buffers.extend(named.map(|range| home.slice_with_length(range.start, range.len())));
        }
        let buffers = Arc::from(buffers);
        // SAFETY: each view is made by `inline` of at most 12 bytes, the rest being zero, or by `view` of bytes that stand at
        // its offset in its buffer, from which length and prefix are taken: in the own one, to which is only appended and
        // which is short enough for no offset to be cut off, or in a stretch of the source, which reaches behind every value
        // that is named in it. Texts are all in views or in the own buffer, which is then a `String`, from one push to the
        // next: whole and UTF-8. There is one entry in `nulls` for each view. The bytes of a source do not change while they
        // are borrowed, and `home` borrows them for as long as it is there.
        Ok(unsafe {
            if is_text {
                Arc::new(StringViewArray::new_unchecked(views, buffers, nulls))
            } else {
                Arc::new(BinaryViewArray::new_unchecked(views, buffers, nulls))
            }
        })
    }
}

/// The view of a value that is not in the view itself.
fn view(run: &[u8], buffer: u32, offset: usize) -> u128 {
    // Batches end before 2^31 bytes, and so do stretches.
    let [len, offset] = [run.len(), offset].map(saturating_u32);
    let prefix = run.first_chunk().copied();
    let prefix = prefix.or_bug_default("a value that is longer than a view holds");
    let prefix = u32::from_le_bytes(prefix);
    u128::from(len) | u128::from(prefix) << 32 | u128::from(buffer) << 64 | u128::from(offset) << 96
}

/// The view of a value of at most 12 bytes, which is in the view itself.
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

/// What was reserved and is not needed goes, where that is much.
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

    /// What the runs of bytes become, held against what Arrow makes of the same parts where it checks them.
    fn viewed(views: Views, home: &Home) -> BinaryViewArray {
        let (parts, stretches) = (views.views.clone(), &views.stretches);
        let Content::Bytes(own) = &views.content else {
            unreachable!("these are views of bytes")
        };
        let mut buffers = vec![Buffer::from(own.as_slice())];
        for Stretch { buffer, range } in stretches {
            assert_eq!(usize::try_from(*buffer), Ok(buffers.len()));
            assert!(range.len() <= views.max_stretch_bytes);
            buffers.push(home.0.slice_with_length(range.start, range.len()));
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
        fn runs_are_found_whatever_stretch_they_are_in(
            bytes in vec(any::<u8>(), 1..400),
            places in vec((any::<prop::sample::Index>(), 0..40_usize), 0..60),
            foreign in vec(any::<u8>(), 0..40),
            max in 40..100_usize,
        ) {
            let source: Arc<dyn Source> = Arc::new(BytesSource::new(bytes));
            let home = Home::new(&source).unwrap();
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
            let mut views = Views::new(Some(home.clone()), max, content);
            prop_assert_eq!(views.extend(runs.iter().copied()), runs.len());
            // Nothing of the source was copied.
            let expected = if foreign.len() > INLINE_BYTES { foreign.len() } else { 0 };
            prop_assert!(matches!(&views.content, Content::Bytes(own) if own.len() == expected));
            let array = viewed(views, &home);
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
            prop_assert!(matches!(&views.content, Content::Text(own, _) if *own == long.concat()));
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
        let (own, behind) = rest.split_at(32);
        let source: Arc<dyn Source> = Arc::new(BytesSource::new(own));
        let home = Home::new(&source).unwrap();
        assert_eq!(home.place(own), Some(0..32));
        assert_eq!(home.place(&own[3..20]), Some(3..20));
        let none: Option<Range<usize>> = None;
        for other in [before, behind, &bytes[..17], &bytes[47..], bytes] {
            assert_eq!(home.place(other), none);
        }
    }
}
