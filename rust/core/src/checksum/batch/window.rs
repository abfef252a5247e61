//! As many messages as are sorted and hashed together.
#![allow(unsafe_code)]

use super::message::{Message, whole_packets};
use super::part;

/// The most messages of a window. Sorted, so many have few neighbours of unlike length.
pub(super) const MAX_MESSAGES: usize = 512;

/// A window ends where its messages have so many bytes, which stay in a near cache from prefetching to hashing ...
const MAX_BYTES: usize = 128 << 10;

/// ... but not before it has so many messages, since the lengths of fewer would differ too much.
const MIN_MESSAGES: usize = 64;

/// The classes that messages are sorted into: those too short for the kernels, those of each number of whole packets, and
/// last all that are longer.
const CLASSES: usize = 256;

/// Messages of one buffer, and the order to hash them in.
pub(super) struct Window<'a> {
    bytes: &'a [u8],
    extents: &'a [(usize, usize)],
    // Indices of `extents`, where these lie in the buffer: `Scratch::window` sees to it.
    order: &'a [u16],
    others: &'a [u16],
    ahead: &'a [u8],
}

impl Window<'_> {
    /// The indices of the messages to hash together, those with the most whole packets first.
    #[inline(always)]
    pub(super) fn order(&self) -> &[u16] {
        self.order
    }

    /// The indices of those that have to be hashed otherwise: short ones, or all, if any of them reaches beyond the buffer.
    #[inline(always)]
    pub(super) fn others(&self) -> &[u16] {
        self.others
    }

    /// What comes behind the window in the buffer, as many bytes as the window has: probably the next one.
    #[inline(always)]
    pub(super) fn ahead(&self) -> &[u8] {
        self.ahead
    }

    /// The bytes of the message of an index: what there is of it.
    pub(super) fn bytes(&self, index: u16) -> &[u8] {
        let extent = self.extents.get(usize::from(index)).copied();
        part(self.bytes, extent.unwrap_or_default())
    }

    /// The message of an index, unless it is too short.
    ///
    /// # Safety
    /// The index is one of [`Self::order`].
    #[inline(always)]
    pub(super) unsafe fn message(&self, index: u16) -> Option<Message<'_>> {
        // SAFETY: the order has indices of extents, and only where all of these have been found to lie in the buffer.
        Message::new(unsafe {
            let (start, len) = *self.extents.get_unchecked(usize::from(index));
            self.bytes.get_unchecked(start..).get_unchecked(..len)
        })
    }
}

/// Space to sort in.
#[derive(Debug, Clone)]
pub(super) struct Scratch {
    classes: [u8; MAX_MESSAGES],
    order: [u16; MAX_MESSAGES],
    places: [u16; CLASSES],
}

impl Default for Scratch {
    fn default() -> Self {
        Self {
            classes: [0; MAX_MESSAGES],
            order: [0; MAX_MESSAGES],
            places: [0; CLASSES],
        }
    }
}

/// The class of a message of `len` bytes.
#[inline(always)]
fn class(len: usize) -> u8 {
    match len {
        ..Message::MIN_BYTES => 0,
        _ => u8::try_from(whole_packets(len) + 1).unwrap_or(u8::MAX),
    }
}

/// What one look at the messages of a window tells.
struct Measure {
    messages: usize,
    bytes: usize,
    shortest: usize,
    longest: usize,
    /// Whether all of them lie whole in the buffer.
    inside: bool,
}

impl Measure {
    /// How many of these messages make a window, and how long they are.
    #[inline(always)]
    fn of(bytes: &[u8], extents: &[(usize, usize)]) -> Self {
        let mut all = Self {
            messages: 0,
            bytes: 0,
            shortest: usize::MAX,
            longest: 0,
            inside: true,
        };
        for extents in extents
            .chunks(MIN_MESSAGES)
            .take(MAX_MESSAGES / MIN_MESSAGES)
        {
            for &(start, len) in extents {
                all.shortest = all.shortest.min(len);
                all.longest = all.longest.max(len);
                all.inside &= start <= bytes.len() && len <= bytes.len().wrapping_sub(start);
                // Of messages in the buffer, it cannot overflow; of others, it does not matter.
                all.bytes = all.bytes.wrapping_add(len);
            }
            all.messages += extents.len();
            if all.bytes >= MAX_BYTES || !all.inside {
                break;
            }
        }
        all
    }
}

impl Scratch {
    /// The next window of messages, and the extents behind it.
    #[inline(always)]
    pub(super) fn window<'s, 'a: 's>(
        &'s mut self,
        bytes: &'a [u8],
        extents: &'a [(usize, usize)],
    ) -> (Window<'s>, &'a [(usize, usize)]) {
        let measure = Measure::of(bytes, extents);
        let (extents, rest) = extents
            .split_at_checked(measure.messages)
            .unwrap_or((extents, &[]));
        let alike = whole_packets(measure.shortest) == whole_packets(measure.longest);
        let together = if !measure.inside {
            0
        } else if alike && measure.shortest >= Message::MIN_BYTES {
            self.keep_order();
            measure.messages
        } else {
            self.sort(extents)
        };
        if together == 0 {
            self.keep_order();
        }
        let order = self.order.get(..measure.messages).unwrap_or_default();
        let (order, others) = order.split_at_checked(together).unwrap_or((&[], order));
        let window = Window {
            bytes,
            extents,
            order,
            others,
            ahead: ahead(bytes, extents, measure.bytes),
        };
        (window, rest)
    }

    #[inline(always)]
    fn keep_order(&mut self) {
        for (place, index) in self.order.iter_mut().zip(0..) {
            *place = index;
        }
    }

    /// Sorts the messages by descending class, and gives the number of those that are not too short.
    #[inline(always)]
    fn sort(&mut self, extents: &[(usize, usize)]) -> usize {
        let mut most = 0;
        for (class, (_, len)) in self.classes.iter_mut().zip(extents) {
            *class = self::class(*len);
            most = most.max(*class);
        }
        let classes = self.classes.get(..extents.len()).unwrap_or_default();
        let used = ..=usize::from(most);
        let places = &mut self.places;
        places.get_mut(used).unwrap_or_default().fill(0);
        #[allow(clippy::indexing_slicing)] // there is a place for each class
        for class in classes {
            places[usize::from(*class)] += 1;
        }
        let [short, ..] = *places;
        let longest = places.get(usize::from(most)).copied().unwrap_or_default();
        let mut begin = 0;
        for place in places.get_mut(used).unwrap_or_default().iter_mut().rev() {
            begin += std::mem::replace(place, begin);
        }
        #[allow(clippy::indexing_slicing)]
        // there is a place for each class, and a slot for each message
        for (class, index) in classes.iter().zip(0..) {
            let place = &mut places[usize::from(*class)];
            self.order[usize::from(*place) % MAX_MESSAGES] = index;
            *place += 1;
        }
        if most == u8::MAX
            && let Some(longest) = self.order.get_mut(..usize::from(longest))
        {
            longest.sort_unstable_by_key(|index| {
                let extent = extents.get(usize::from(*index));
                std::cmp::Reverse(extent.map(|(_, len)| *len))
            });
        }
        // It is so; but the kernels rely on it without looking.
        let order = self.order.get(..extents.len()).unwrap_or_default();
        let last = order.iter().fold(0, |last, index| last.max(*index));
        if usize::from(last) >= extents.len() {
            return 0;
        }
        extents.len().saturating_sub(usize::from(short))
    }
}

/// As many bytes behind the last of these messages as they have themselves, if they lie close together and in order.
#[inline(always)]
fn ahead<'a>(bytes: &'a [u8], extents: &[(usize, usize)], total: usize) -> &'a [u8] {
    let (Some(&(begin, _)), Some(&(start, len))) = (extents.first(), extents.last()) else {
        return &[];
    };
    let end = start.saturating_add(len);
    let dense = end.checked_sub(begin).is_some_and(|span| span / 2 <= total);
    if !dense || total > 2 * MAX_BYTES {
        return &[];
    }
    let rest = bytes.get(end..).unwrap_or_default();
    rest.get(..total).unwrap_or(rest)
}
