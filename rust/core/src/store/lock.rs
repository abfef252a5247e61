//! One writer a log: docs/formats/log.md, "One writer".

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::disk::{DiskRef, Handle, Opening};
use crate::error::{Error, Result};
use crate::saturating::saturating_usize;
use crate::text;

const FILE_NAME: &str = "_lock";
const MOST_BYTES: usize = 256;
/// How often the file is opened where others remove it meanwhile.
const TRIES: usize = 10;
const ACTION: &str = "cannot open the log's lock";

/// The lock of a log. Dropping it, or the end of the process, frees it.
#[derive(Debug)]
pub(super) struct Lock {
    disk: DiskRef,
    /// What the lock hangs on, and what it was when it was locked: the folder, where that can be locked, else the file.
    path: PathBuf,
    node: Option<(u64, u64)>,
    file: Handle,
    folder: Option<Handle>,
}

impl Lock {
    /// Takes the lock.
    ///
    /// # Errors
    /// [`Error::Io`] with [`ErrorKind::ResourceBusy`] where another writer has it: the error names the process.
    pub(super) fn take(disk: &DiskRef, folder: &Path) -> Result<Self> {
        let path = folder.join(FILE_NAME);
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::ResourceBusy => busy(disk, folder, &path),
            _ => Error::io(Some(&path), ACTION, error),
        };
        let opened = disk.open_folder(folder).map(Handle::new);
        let locked = match opened.and_then(|opened| opened.lock().map(|()| opened)) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => return Err(failed(error)),
            // Where folders cannot be locked, as on Windows and on network file systems, the file has to do.
            locked => locked.ok(),
        };
        let file = disk.locked(&path, false, Handle::lock, || open(disk, &path));
        let file = file.map_err(failed)?;
        // For whoever is refused. Nothing depends on it, so nothing is made of an error.
        let text = format!("process {}\n", std::process::id());
        let _ = file
            .set_len(0)
            .and_then(|()| file.write_all_at(text.as_bytes(), 0));
        let (hook, hooked) = match &locked {
            Some(locked) => (locked, folder),
            None => (&file, &*path),
        };
        Ok(Self {
            disk: disk.clone(),
            node: hook.node().map_err(failed)?,
            path: hooked.to_path_buf(),
            file,
            folder: locked,
        })
    }

    /// Whether a writer has the log open. For a moment the lock is taken for that, shared with other readers; who begins to write waits.
    pub(super) fn is_held(disk: &DiskRef, folder: &Path) -> bool {
        let opened = disk.open_folder(folder).map(Handle::new);
        let held = opened.and_then(|opened| opened.is_locked()).or_else(|_| {
            // Where folders cannot be locked, the file has to do.
            disk.handle(&folder.join(FILE_NAME), Opening::ReadOwn)?
                .is_locked()
        });
        // A log without a lock that can be looked at has no writer on this computer.
        matches!(held, Ok(true))
    }

    /// Refuses to go on where another process may have the lock: what it hangs on is gone, or another one is in its place.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn check(&self) -> Result<()> {
        let is_own = self
            .disk
            .names(&self.path, self.folder.is_some(), self.node);
        let error = match is_own {
            Ok(true) => return Ok(()),
            Ok(false) => io::Error::other(
                "it was removed or replaced, so another process may write to the log",
            ),
            Err(error) => error,
        };
        Err(Error::io(Some(&self.path), "the log's lock is lost", error))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.file.unlock();
        self.folder.iter().for_each(Handle::unlock);
    }
}

/// Opens the file of the lock, or creates it. It is never created and kept open: only an existing file is opened so that it cannot be
/// removed meanwhile (Windows).
fn open(disk: &DiskRef, path: &Path) -> io::Result<Handle> {
    let mut tries = TRIES;
    loop {
        match disk.handle(path, Opening::WriteOwn) {
            Err(error) if error.kind() == ErrorKind::NotFound && tries > 0 => tries -= 1,
            opened => return opened,
        }
        match disk.handle(path, Opening::New) {
            // Another writer made it in between.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => drop(made?),
        }
    }
}

/// The error where another writer has the lock.
fn busy(disk: &DiskRef, folder: &Path, path: &Path) -> Error {
    let holder = match holder(disk, path) {
        Ok(said) if !said.is_empty() => format!(" ({said})"),
        _ => String::new(),
    };
    let error = io::Error::new(
        ErrorKind::ResourceBusy,
        format!(
            "another writer has it open{holder}: a log has one writer. Close it there, or open the log to read, which needs no lock"
        ),
    );
    Error::io(Some(folder), "cannot open the log for writing", error)
}

/// Who has the lock, as the file says.
fn holder(disk: &DiskRef, path: &Path) -> io::Result<String> {
    let file = disk.handle(path, Opening::ReadOwn)?;
    let mut bytes = vec![0; saturating_usize(file.len()?).min(MOST_BYTES)];
    file.read_exact_at(&mut bytes, 0)?;
    let said = String::from_utf8_lossy(&bytes);
    Ok(text::printable(said.trim_end()).to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn take(folder: &Path) -> Result<Lock> {
        Lock::take(&DiskRef::default(), folder)
    }

    /// A fork of the process has the same open files, and may live on.
    #[test]
    fn it_ends_with_its_owner_and_not_with_a_fork() {
        let folder = tempfile::tempdir().unwrap();
        let lock = take(folder.path()).unwrap();
        let mut inherited: Vec<_> = lock.folder.iter().map(Handle::another).collect();
        inherited.push(lock.file.another());
        for handle in &mut inherited {
            handle.disown();
            handle.unlock();
        }
        assert!(take(folder.path()).is_err());
        drop(lock);
        let lock = take(folder.path()).unwrap();
        lock.check().unwrap();
        drop(inherited);
    }

    #[test]
    fn the_file_names_its_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        std::fs::write(&path, [b'x'; 1000]).unwrap();
        let lock = take(folder.path()).unwrap();
        let process = format!("process {}", std::process::id());
        let said = std::fs::metadata(&path).unwrap().len();
        assert_eq!(said, process.len() as u64 + 1);
        let refused = take(folder.path()).unwrap_err().to_string();
        assert_eq!(refused.contains(&process), cfg!(unix), "{refused}");
        drop(lock);
    }
}
