//! A window: the messages that are sorted and hashed together.
#![allow(unsafe_code)]

use crate::invariant::Always;
use crate::message::{Message, whole_packets};
use crate::{Messages, part};

/// The most messages in a window. In sorted windows of this size, few neighbours differ in length.
pub(crate) const MAX_MESSAGES: usize = 512;

/// A window ends when its messages have this many bytes, which stay in a near cache from prefetching to hashing ...
const MAX_BYTES: usize = 128 << 10;

/// ... but not before it has this many messages, because the lengths of fewer would differ too much.
const MIN_MESSAGES: usize = 64;

/// The number of classes by which messages are sorted. The first is for messages too short for the kernels, the last
/// for all that are longer than the others. Between them there is one for each number of whole packets.
const CLASSES: usize = 256;

/// Messages of one buffer, and the order to hash them in. The first `HEAD` bytes of each, none or half a packet, are
/// elsewhere.
pub(crate) struct Window<'a, const HEAD: usize> {
    /// The buffer has `HEAD` bytes before each, of any content.
    messages: Messages<'a>,
    // Indices of those messages that are within the buffer: `Scratch::window` ensures it.
    order: &'a [u16],
    others: &'a [u16],
    ahead: &'a [u8],
}

impl<const HEAD: usize> Window<'_, HEAD> {
    #[inline(always)]
    pub(crate) fn messages(&self) -> &Messages<'_> {
        &self.messages
    }

    /// The indices of the messages to hash together, those with the most whole packets first.
    #[inline(always)]
    pub(crate) fn order(&self) -> &[u16] {
        self.order
    }

    /// The indices of the messages that no kernel hashes: short ones, or all, if any of them reaches past the buffer.
    #[inline(always)]
    pub(crate) fn others(&self) -> &[u16] {
        self.others
    }

    /// The bytes after the window in the buffer, as many as the window has: probably the next window.
    #[inline(always)]
    pub(crate) fn ahead(&self) -> &[u8] {
        self.ahead
    }

    /// The message with this index, unless it is too short. In the place of its head are any bytes.
    ///
    /// # Safety
    /// The index must be one of [`Self::order`].
    #[inline(always)]
    pub(crate) unsafe fn message(&self, index: u16) -> Option<Message<'_>> {
        // SAFETY: the order has indices of extents, and only if all extents, with room for their heads before them,
        // were found to be within the buffer.
        Message::new(unsafe {
            let (start, len) = *self.messages.extents.get_unchecked(usize::from(index));
            self.messages
                .bytes
                .get_unchecked(start - HEAD..)
                .get_unchecked(..HEAD + len)
        })
    }
}

/// Memory for sorting.
#[derive(Debug, Clone)]
pub(crate) struct Scratch {
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

/// The least length of a message with such a head for the kernels, in bytes, including its head.
const fn min_bytes(head: usize) -> usize {
    match head {
        0 => Message::MIN_BYTES,
        _ => Message::MIN_HEADED_BYTES,
    }
}

/// The class of a message of `len` bytes, of which `HEAD` are its head.
#[inline(always)]
fn class<const HEAD: usize>(len: usize) -> u8 {
    if len < min_bytes(HEAD) {
        return 0;
    }
    // The last class is for all that are longer.
    u8::try_from(whole_packets(len) + 1).unwrap_or(u8::MAX)
}

/// The result of one pass over the extents of a window.
struct Measure {
    messages: usize,
    bytes: usize,
    shortest: usize,
    longest: usize,
    /// Whether all of them are within the buffer.
    inside: bool,
}

impl Measure {
    /// How many of these messages make a window, and their length without heads.
    #[inline(always)]
    fn of<const HEAD: usize>(bytes: &[u8], extents: &[(usize, usize)]) -> Self {
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
                all.inside &=
                    start >= HEAD && start <= bytes.len() && len <= bytes.len().wrapping_sub(start);
                // For messages within the buffer it cannot overflow. For others the result is not used.
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
    /// Returns the next window of messages, and the messages after it.
    #[inline(always)]
    pub(crate) fn window<'s, 'a: 's, const HEAD: usize>(
        &'s mut self,
        messages: Messages<'a>,
    ) -> (Window<'s, HEAD>, Messages<'a>) {
        let measure = Measure::of::<HEAD>(messages.bytes, messages.extents);
        let (messages, rest) = messages.split_at(measure.messages);
        let [shortest, longest] =
            [measure.shortest, measure.longest].map(|len| len.saturating_add(HEAD));
        let alike = whole_packets(shortest) == whole_packets(longest);
        let together = if !measure.inside {
            0
        } else if alike && shortest >= min_bytes(HEAD) {
            self.keep_order();
            measure.messages
        } else {
            self.sort::<HEAD>(messages.extents)
        };
        if together == 0 {
            self.keep_order();
        }
        let order = self.order.get(..measure.messages);
        let order = order.always("no more messages than a window has");
        let (order, others) = order
            .split_at_checked(together)
            .always_or("no more messages together than there are", (&[], order));
        let window = Window {
            messages,
            order,
            others,
            ahead: ahead(messages.bytes, messages.extents, measure.bytes),
        };
        (window, rest)
    }

    #[inline(always)]
    fn keep_order(&mut self) {
        for (place, index) in self.order.iter_mut().zip(0..) {
            *place = index;
        }
    }

    /// Sorts the messages by descending class. Returns the number of those that are not too short.
    #[inline(always)]
    fn sort<const HEAD: usize>(&mut self, extents: &[(usize, usize)]) -> usize {
        let mut most = 0;
        for (class, (_, len)) in self.classes.iter_mut().zip(extents) {
            *class = self::class::<HEAD>(len.saturating_add(HEAD));
            most = most.max(*class);
        }
        let classes = self.classes.get(..extents.len());
        let classes = classes.always("no more messages than a window has");
        let used = ..=usize::from(most);
        let places = &mut self.places;
        #[allow(clippy::indexing_slicing)] // there is a place for each class
        {
            places[used].fill(0);
            for class in classes {
                places[usize::from(*class)] += 1;
            }
        }
        let [short, ..] = *places;
        #[allow(clippy::indexing_slicing)] // there is a place for each class
        let (longest, used) = (places[usize::from(most)], &mut places[used]);
        let mut begin = 0;
        for place in used.iter_mut().rev() {
            begin += std::mem::replace(place, begin);
        }
        #[allow(clippy::indexing_slicing)]
        // Each class has a place, and each message a slot.
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
        // This is always so. It is tested because the kernels rely on it without bounds checks.
        let order = self.order.get(..extents.len());
        let order = order.always("no more messages than a window has");
        let last = order.iter().fold(0, |last, index| last.max(*index));
        if usize::from(last) >= extents.len() {
            return 0;
        }
        extents.len().saturating_sub(usize::from(short))
    }
}

/// As many bytes after the last of these messages as they have themselves, if they are close together and in order.
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
    part(bytes, (end, total))
}
