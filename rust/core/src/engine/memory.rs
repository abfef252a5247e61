//! Remembers what was proven of an open file, for later reads with the same options.

use std::any::Any;
use std::fmt;
use std::ptr;
use std::sync::{Arc, Mutex, Weak};

use crate::source::Source;

/// Shared by all clones of its options. It remembers the one file that was last read with them.
#[derive(Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<Option<Learned>>>);

struct Learned {
    /// The file, as long as it is open.
    source: Weak<dyn Source>,
    what: Arc<dyn Any + Send + Sync>,
}

impl Memory {
    /// Returns what is remembered of this file, or `T::default()` if it was not read before.
    ///
    /// It never waits. If another thread uses it at this moment, or did so when this process was forked, nothing is
    /// remembered.
    pub(crate) fn of<T: Any + Default + Send + Sync>(&self, source: &Arc<dyn Source>) -> Arc<T> {
        let Ok(mut learned) = self.0.try_lock() else {
            return Arc::default();
        };
        let own = learned.as_ref().filter(|own| {
            // As long as a weak reference to a source exists, no other source has its address.
            ptr::addr_eq(own.source.as_ptr(), Arc::as_ptr(source))
        });
        if let Some(Ok(known)) = own.map(|own| own.what.clone().downcast()) {
            return known;
        }
        let known = Arc::new(T::default());
        *learned = Some(Learned {
            source: Arc::downgrade(source),
            what: known.clone(),
        });
        known
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memory")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::OnceLock;

    use super::*;
    use crate::source::BytesSource;

    fn source() -> Arc<dyn Source> {
        Arc::new(BytesSource::new(Vec::new()))
    }

    #[test]
    fn what_is_remembered_is_of_one_file_alone() {
        let (memory, one, other) = (Memory::default(), source(), source());
        let number = |memory: &Memory, source| memory.of::<OnceLock<u32>>(source).get().copied();
        memory.of::<OnceLock<u32>>(&one).set(1).unwrap();
        assert_eq!(number(&memory.clone(), &one), Some(1));
        assert_eq!(number(&Memory::default(), &one), None);
        assert_eq!(number(&memory, &other), None);
        assert_eq!(number(&memory, &one), None, "the last file is remembered");
    }

    #[test]
    fn nobody_waits_for_who_is_there() {
        let (memory, one) = (Memory::default(), source());
        memory.of::<OnceLock<u32>>(&one).set(1).unwrap();
        let held = memory.0.try_lock().unwrap();
        assert_eq!(memory.of::<OnceLock<u32>>(&one).get(), None);
        drop(held);
        assert_eq!(memory.of::<OnceLock<u32>>(&one).get(), Some(&1));
    }
}
