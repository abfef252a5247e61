//! Keys: given as bytes, read from a file, or from the environment.

use std::path::Path;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use seglake::checksum::Key;

use crate::error::raise;

/// 64 hexadecimal digits: the key where none is given.
const VARIABLE: &str = "SEGLAKE_KEY";
/// More than any key file needs: what is longer is no key file.
const MAX_FILE_BYTES: u64 = 4096;

/// Where a key came from: what decides whether a reader that holds it can be pickled.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// The public default.
    Default,
    /// Given in the call.
    Given,
    /// Read from a file.
    File,
    /// Read from the environment.
    Environment,
}

/// The keys to try, and where they came from. At most one of the arguments is given.
pub(crate) fn keys(
    py: Python<'_>,
    key: Option<&[u8]>,
    keys: Option<Vec<Vec<u8>>>,
    file: Option<&Path>,
) -> PyResult<(Vec<Key>, Origin)> {
    if usize::from(key.is_some()) + usize::from(keys.is_some()) + usize::from(file.is_some()) > 1 {
        return Err(PyValueError::new_err(
            "give one of key=, keys= and key_file=, not several",
        ));
    }
    if let Some(key) = key {
        return Ok((vec![from_bytes(key)?], Origin::Given));
    }
    if let Some(keys) = keys {
        let keys = keys
            .iter()
            .map(|key| from_bytes(key))
            .collect::<PyResult<Vec<_>>>()?;
        return if keys.is_empty() {
            Err(PyValueError::new_err(
                "keys= is empty: leave it out for the default key",
            ))
        } else {
            Ok((keys, Origin::Given))
        };
    }
    if let Some(path) = file {
        return Ok((vec![read(py, path)?], Origin::File));
    }
    match std::env::var(VARIABLE) {
        Ok(text) => {
            let key = Key::parse_hex(text.as_bytes()).map_err(|_| {
                PyValueError::new_err(format!(
                    "{VARIABLE} in the environment is not 64 hexadecimal digits"
                ))
            })?;
            Ok((vec![key], Origin::Environment))
        }
        Err(std::env::VarError::NotPresent) => Ok((vec![Key::DEFAULT], Origin::Default)),
        Err(std::env::VarError::NotUnicode(_)) => Err(PyValueError::new_err(format!(
            "{VARIABLE} in the environment is not 64 hexadecimal digits"
        ))),
    }
}

/// Whether a name is what a key file would hold.
fn is_key(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| Key::parse_hex(name.as_encoded_bytes()).is_ok())
}

fn from_bytes(key: &[u8]) -> PyResult<Key> {
    let bytes = key
        .try_into()
        .map_err(|_| PyValueError::new_err(format!("a key is 32 bytes, not {}", key.len())))?;
    Ok(Key::new(bytes))
}

fn read(py: Python<'_>, path: &Path) -> PyResult<Key> {
    if is_key(path) && !path.exists() {
        // Its name must not come into an error, as that of any other file that is not there would.
        return Err(PyValueError::new_err(
            "key_file= takes the path of a file, and this is 64 hexadecimal digits, a key itself: give key=",
        ));
    }
    let read = || {
        let mut text = Vec::new();
        let file = seglake::source::open_regular(path)?;
        std::io::Read::read_to_end(&mut std::io::Read::take(file, MAX_FILE_BYTES), &mut text)
            .map_err(|source| seglake::Error::Io {
                path: Some(path.to_path_buf()),
                action: "cannot read the key file".to_owned(),
                source,
            })?;
        Key::parse(&text).map_err(|error| {
            seglake::Error::Usage(format!("key file {}: {error}", seglake::text::path(path)))
        })
    };
    py.detach(read).map_err(|error| raise(py, error))
}
