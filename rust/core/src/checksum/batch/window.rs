//! As many messages as are sorted and hashed together.

use super::lockstep::{MIN_BYTES, whole_packets};

/// The most messages of a window. Sorted, so many have few neighbours of unlike length.
pub(super) const MAX_MESSAGES: usize = 512;

/// A window ends where its messages have so many bytes, which stay in a near cache from prefetching to hashing ...
const MAX_BYTES: usize = 128 << 10;

/// ... but not before it has so many messages, since the lengths of fewer would differ too much.
const MIN_MESSAGES: usize = 64;

/// Messages of up to so many whole packets are sorted by counting.
const COUNTED: usize = 256;

/// Messages of one buffer, and the order to hash them in.
pub(super) struct Window<'a> {
    bytes: &'a [u8],
    extents: &'a [(usize, usize)],
    /// The indices of all messages of at least [`MIN_BYTES`], those with the most whole packets first.
    pub(super) order: &'a [u16],
    /// The indices of those shorter than that.
    pub(super) short: &'a [u16],
    /// What comes behind the window in the buffer, as many bytes as the window has: probably the next one.
    pub(super) ahead: &'a [u8],
}

impl Window<'_> {
    /// The message of an index: what there is of it.
    #[inline(always)]
    pub(super) fn message(&self, index: usize) -> &[u8] {
        let extent = self.extents.get(index).copied().unwrap_or_default();
        message(self.bytes, extent)
    }
}

/// What there is in `bytes` of an extent.
#[inline(always)]
pub(super) fn message(bytes: &[u8], (start, len): (usize, usize)) -> &[u8] {
    let rest = bytes.get(start..).unwrap_or_default();
    rest.get(..len).unwrap_or(rest)
}

/// Space to sort in.
#[derive(Debug, Clone)]
pub(super) struct Scratch {
    order: [u16; MAX_MESSAGES],
    places: [u16; COUNTED + 1],
}

impl Default for Scratch {
    fn default() -> Self {
        Self {
            order: [0; MAX_MESSAGES],
            places: [0; COUNTED + 1],
        }
    }
}

/// How many of these messages make a window, and how many bytes they have.
fn measure(bytes: &[u8], extents: &[(usize, usize)]) -> (usize, usize) {
    let (mut messages, mut total) = (0, 0usize);
    for extent in extents.iter().take(MAX_MESSAGES) {
        if total >= MAX_BYTES && messages >= MIN_MESSAGES {
            break;
        }
        total = total.saturating_add(message(bytes, *extent).len());
        messages += 1;
    }
    (messages, total)
}

impl Scratch {
    /// The next window of messages, and the extents behind it.
    pub(super) fn window<'s, 'a: 's>(
        &'s mut self,
        bytes: &'a [u8],
        extents: &'a [(usize, usize)],
    ) -> (Window<'s>, &'a [(usize, usize)]) {
        let (messages, total) = measure(bytes, extents);
        let (extents, rest) = extents.split_at_checked(messages).unwrap_or((extents, &[]));
        let long = self.sort(bytes, extents);
        let order = self.order.get(..extents.len()).unwrap_or_default();
        let (order, short) = order.split_at_checked(long).unwrap_or((order, &[]));
        let window = Window {
            bytes,
            extents,
            order,
            short,
            ahead: ahead(bytes, extents, total),
        };
        (window, rest)
    }

    /// Sorts the messages by descending number of whole packets, the short ones last, and gives the number of others.
    fn sort(&mut self, bytes: &[u8], extents: &[(usize, usize)]) -> usize {
        let lengths = || extents.iter().map(|extent| message(bytes, *extent).len());
        let (mut min, mut max) = (usize::MAX, 0);
        for len in lengths() {
            min = min.min(len);
            max = max.max(len);
        }
        if min >= MIN_BYTES && whole_packets(min) == whole_packets(max) {
            for (index, place) in (0..).zip(self.order.iter_mut().take(extents.len())) {
                *place = index;
            }
            return extents.len();
        }
        // Class 0 are those with the most packets, the last one the short ones.
        let most = (whole_packets(max) + 1).min(COUNTED);
        let class = |len: usize| match len {
            ..MIN_BYTES => most,
            _ => most.saturating_sub(whole_packets(len) + 1),
        };
        let Some(places) = self.places.get_mut(..=most) else {
            return 0;
        };
        places.fill(0);
        for len in lengths() {
            if let Some(count) = places.get_mut(class(len)) {
                *count += 1;
            }
        }
        let mut begin = 0;
        for place in places.iter_mut() {
            begin += std::mem::replace(place, begin);
        }
        let long = places.last().copied().map_or(0, usize::from);
        let longest = places.get(1).copied().map_or(0, usize::from);
        for (index, len) in (0..).zip(lengths()) {
            if let Some(place) = places.get_mut(class(len)) {
                if let Some(slot) = self.order.get_mut(usize::from(*place)) {
                    *slot = index;
                }
                *place += 1;
            }
        }
        // The first class has all that were too long to count.
        if most == COUNTED && let Some(longest) = self.order.get_mut(..longest) {
            longest.sort_unstable_by_key(|index| {
                let extent = extents.get(usize::from(*index)).copied();
                std::cmp::Reverse(whole_packets(message(bytes, extent.unwrap_or_default()).len()))
            });
        }
        long
    }
}

/// As many bytes behind the last of these messages as they have themselves, if they lie close together and in order.
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
