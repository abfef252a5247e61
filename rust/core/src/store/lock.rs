//! One writer a log: an advisory lock (Unix) on a file of the folder, which says who has it.

use std::io::ErrorKind;
use std::path::Path;

use crate::disk::{DiskRef, Handle, Opening};
use crate::error::{Error, Result};
use crate::text;

const FILE_NAME: &str = "_lock";
const MOST_BYTES: usize = 256;

/// The lock of a log. Dropping it, or the end of the process, frees it.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "the lock ends with the file")] Handle);

impl Lock {
    /// Takes the lock.
    ///
    /// # Errors
    /// [`Error::Io`] with [`ErrorKind::ResourceBusy`] where another writer has it: the error names the process.
    pub(super) fn take(disk: &DiskRef, folder: &Path) -> Result<Self> {
        let path = folder.join(FILE_NAME);
        let failed = |error| Error::io(Some(&path), "cannot open the log's lock", error);
        let file = match disk.handle(&path, Opening::WriteOwn) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                match disk.handle(&path, Opening::New) {
                    // Another writer made it in between.
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                        disk.handle(&path, Opening::WriteOwn).map_err(failed)?
                    }
                    made => made.map_err(failed)?,
                }
            }
            opened => opened.map_err(failed)?,
        };
        match file.lock() {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                let holder = holder(&file);
                let busy = std::io::Error::new(
                    ErrorKind::ResourceBusy,
                    format!(
                        "another writer has it open{holder}: a log has one writer. Open it with readonly=True, or close it there"
                    ),
                );
                return Err(Error::io(
                    Some(folder),
                    "cannot open the log for writing",
                    busy,
                ));
            }
            Err(error) => return Err(failed(error)),
        }
        // For whoever is refused. Nothing depends on it, so nothing is made of an error.
        let text = format!("process {}\n", std::process::id());
        let _ = file
            .set_len(0)
            .and_then(|()| file.write_all_at(text.as_bytes(), 0));
        Ok(Self(file))
    }
}

/// Who has the lock, as the file says.
fn holder(file: &Handle) -> String {
    let len = file.len().ok().and_then(|len| usize::try_from(len).ok());
    let mut bytes = vec![0; len.unwrap_or_default().min(MOST_BYTES)];
    match file.read_exact_at(&mut bytes, 0) {
        Ok(()) if !bytes.is_empty() => {
            let said = String::from_utf8_lossy(&bytes);
            format!(" ({})", text::printable(said.trim_end()))
        }
        _ => String::new(),
    }
}
