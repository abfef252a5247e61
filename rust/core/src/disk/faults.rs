//! For tests, the feature `faults`: file operations that fail on purpose, and the trait [`Disk`], which a disk of one's own
//! implements for [`Options::disk`](crate::Options::disk) and [`WriteOptions::disk`](crate::format::WriteOptions::disk).
//!
//! ```
//! use seglake::faults::{Fault, How, inject};
//! use seglake::source::open_regular;
//!
//! let path = std::env::temp_dir();
//! let (opened, operations) = inject(None, || open_regular(&path).is_ok());
//! let fault = Fault { at: 0, lasting: false, how: How::Fails(5) };
//! let (failed, _) = inject(Some(fault), || open_regular(&path).unwrap_err());
//! assert!(!opened && !operations.is_empty());
//! assert!(failed.to_string().contains("os error 5"));
//! ```

use std::cell::RefCell;
use std::io;

pub use super::{Disk, DiskFile, Kind, Opening, Operation, Stat};

/// A fault: one operation fails, or all from one on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The number of the operation in this thread, from 0.
    pub at: usize,
    /// Whether all later operations of its kind fail too, as on a full disk.
    pub lasting: bool,
    /// How it fails.
    pub how: How,
}

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// With this error number of the operating system, and without effect.
    Fails(i32),
    /// A read or write transfers only its first byte. Other operations succeed.
    Short,
}

#[derive(Default)]
struct Injection {
    fault: Option<Fault>,
    /// The kind of the operation that failed.
    hit: Option<Operation>,
    /// All operations so far.
    operations: Vec<Operation>,
}

thread_local! {
    static INJECTION: RefCell<Option<Injection>> = const { RefCell::new(None) };
}

/// Runs `work` with a fault in the file operations of this thread. Also returns all its operations.
pub fn inject<T>(fault: Option<Fault>, work: impl FnOnce() -> T) -> (T, Vec<Operation>) {
    INJECTION.set(Some(Injection {
        fault,
        ..Injection::default()
    }));
    let done = work();
    let injection = INJECTION.take().unwrap_or_default();
    (done, injection.operations)
}

/// Continues an operation with the number of bytes to transfer.
pub(crate) fn reach(operation: Operation, bytes: usize) -> io::Result<usize> {
    let how = INJECTION.with_borrow_mut(|injection| injection.as_mut()?.reach(operation));
    match how {
        None => Ok(bytes),
        Some(How::Short) => Ok(bytes.min(1)),
        Some(How::Fails(number)) => Err(io::Error::from_raw_os_error(number)),
    }
}

impl Injection {
    fn reach(&mut self, operation: Operation) -> Option<How> {
        let number = self.operations.len();
        self.operations.push(operation);
        let fault = self.fault?;
        if number == fault.at {
            self.hit = Some(operation);
        } else if !fault.lasting || self.hit != Some(operation) {
            return None;
        }
        Some(fault.how)
    }
}
