//! Keys: given as bytes, read from a file, or from the environment.

use std::path::{Path, PathBuf};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList};
use seglake::checksum::Key;

use crate::error::detached;
use crate::numbers::wrong_type;

/// 64 hexadecimal digits: the key where none is given.
const VARIABLE: &str = "SEGLAKE_KEY";
/// More than any key file needs: what is longer is no key file.
const MAX_FILE_BYTES: u64 = 4096;

/// `key=`: 32 bytes, the path of a file that holds a key, or several of these, of which the first under which any record checks
/// is the file's.
#[derive(Clone, Debug)]
pub(crate) enum KeyArgument {
    Bytes(Vec<u8>),
    File(PathBuf),
    Several(Vec<Self>),
}

impl<'py> FromPyObject<'_, 'py> for KeyArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Self::Bytes(bytes.as_bytes().to_vec()));
        }
        if let Ok(bytes) = object.cast::<PyByteArray>() {
            return Ok(Self::Bytes(bytes.to_vec()));
        }
        if let Ok(path) = object.extract::<PathBuf>() {
            return Ok(Self::File(path));
        }
        let wrong = || {
            wrong_type(
                "key",
                "32 bytes, the path of a file, or a list of these",
                &object,
            )
        };
        let each = object.try_iter().map_err(|_| wrong())?;
        let each = each.map(|one| match one?.extract() {
            Ok(Self::Several(_)) | Err(_) => Err(wrong()),
            Ok(one) => Ok(one),
        });
        Ok(Self::Several(each.collect::<PyResult<_>>()?))
    }
}

/// What is pickled: bytes never are.
impl<'py> IntoPyObject<'py> for &KeyArgument {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        Ok(match self {
            KeyArgument::Bytes(_) => py.None().into_bound(py),
            KeyArgument::File(path) => path.as_os_str().into_pyobject(py)?.into_any(),
            KeyArgument::Several(several) => PyList::new(py, several)?.into_any(),
        })
    }
}

impl KeyArgument {
    /// Whether a key was given as bytes, which are kept nowhere.
    pub(crate) fn has_bytes(&self) -> bool {
        match self {
            Self::Bytes(_) => true,
            Self::File(_) => false,
            Self::Several(several) => several.iter().any(Self::has_bytes),
        }
    }
}

/// The keys to try.
pub(crate) fn keys(py: Python<'_>, given: Option<&KeyArgument>) -> PyResult<Vec<Key>> {
    match given {
        Some(KeyArgument::Bytes(key)) => Ok(vec![from_bytes(key)?]),
        Some(KeyArgument::File(path)) => Ok(vec![read(py, path)?]),
        Some(KeyArgument::Several(several)) if several.is_empty() => Err(PyValueError::new_err(
            "key is an empty list: leave it out for the default key",
        )),
        Some(KeyArgument::Several(several)) => {
            let each = several.iter().map(|one| keys(py, Some(one)));
            Ok(each.collect::<PyResult<Vec<_>>>()?.concat())
        }
        None => match std::env::var_os(VARIABLE) {
            Some(text) => {
                let key = Key::parse_hex(text.as_encoded_bytes()).map_err(|_| {
                    PyValueError::new_err(format!(
                        "{VARIABLE} in the environment is not 64 hexadecimal digits"
                    ))
                })?;
                Ok(vec![key])
            }
            None => Ok(vec![Key::DEFAULT]),
        },
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
            "key is 64 hexadecimal digits, a key itself, and text is the path of a file: give its 32 bytes",
        ));
    }
    let read = || {
        let mut text = Vec::new();
        let file = seglake::source::open_regular(path)?;
        std::io::Read::read_to_end(&mut std::io::Read::take(file, MAX_FILE_BYTES), &mut text)
            .map_err(|error| seglake::Error::io(Some(path), "cannot read the key file", error))?;
        Key::parse(&text).map_err(|error| {
            seglake::Error::Usage(format!("key file {}: {error}", seglake::text::path(path)))
        })
    };
    detached(py, read)
}
