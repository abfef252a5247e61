//! What writers of active and sealed segments and of logs share: ascending UUIDs, and the fields of a record.

use uuid::Uuid;

use super::layout::UUID_BYTES;
use crate::engine::writer::missing;
use crate::error::{Error, Result};
use crate::record::Value;
use crate::uuid6::{Generator, is_v6, timestamp_micros};

/// The UUIDs of a segment or a log that is being written.
#[derive(Debug)]
pub(crate) struct Sequence {
    generator: Generator,
    last: Option<[u8; UUID_BYTES]>,
    /// What they are of, for errors: `segment` or `log`.
    of: &'static str,
}

impl Default for Sequence {
    /// Those of a new segment.
    fn default() -> Self {
        Self {
            generator: Generator::default(),
            last: None,
            of: "segment",
        }
    }
}

impl Sequence {
    /// Those of a log, the last of which was this.
    pub(crate) fn of_log(last: Option<[u8; UUID_BYTES]>) -> Self {
        Self {
            last,
            of: "log",
            ..Self::default()
        }
    }

    /// The last UUID, in network byte order.
    pub(crate) const fn last(&self) -> Option<[u8; UUID_BYTES]> {
        self.last
    }

    /// Sets the last UUID.
    pub(crate) const fn set_last(&mut self, uuid: [u8; UUID_BYTES]) {
        self.last = Some(uuid);
    }

    /// Takes back the last UUIDs: this was the last one before them.
    pub(in crate::format) const fn go_back_to(&mut self, last: Option<[u8; UUID_BYTES]>) {
        self.last = last;
    }

    /// Refuses a UUID that cannot come next.
    ///
    /// # Errors
    /// [`Error::Usage`] for a UUID that is not of version 6 or does not ascend.
    pub(crate) fn check(&self, uuid: &Uuid) -> Result<()> {
        let bytes = uuid.as_bytes();
        if !is_v6(bytes) {
            return Err(Error::Usage(format!(
                "the UUID {uuid} is not of version 6, variant 10: use a generator of version 6"
            )));
        }
        // Compared in place: a copy would wait until the last record's UUID leaves the store buffer.
        match &self.last {
            Some(last) if bytes <= last => Err(Error::Usage(format!(
                "the UUID {uuid} does not ascend: the last one of the {} is {}. Write records sorted by uuid, each once",
                self.of,
                Uuid::from_bytes(*last)
            ))),
            _ => Ok(()),
        }
    }

    /// The next UUID: of the present time, or the smallest one after the last.
    ///
    /// # Errors
    /// [`Error::Usage`] if the last UUID has the latest time that a UUID can have.
    pub(in crate::format) fn next(&self) -> Result<Uuid> {
        let next = match &self.last {
            None => Some(self.generator.now()),
            Some(last) => self.generator.after(last),
        };
        next.ok_or_else(|| self.exhausted())
    }

    /// As [`next`](Self::next), for a caller that has the sequence to itself.
    ///
    /// # Errors
    /// As `next`.
    #[inline]
    pub(crate) fn next_alone(&mut self) -> Result<Uuid> {
        let next = self.generator.next_alone(self.last.as_ref());
        next.ok_or_else(|| self.exhausted())
    }

    #[cold]
    fn exhausted(&self) -> Error {
        Error::Usage(format!(
            "the last UUID of the {}, {}, has the latest time that UUIDs of version 6 have, in the year 5236: no record can follow. Begin \
             another one",
            self.of,
            Uuid::from_bytes(self.last.unwrap_or_default())
        ))
    }

    /// The UUID, type and value of a record given by its columns. A UUID that is null is generated: of the timestamp, or of the present
    /// time.
    ///
    /// # Errors
    /// [`Error::Usage`] if a field is missing, or the timestamp differs from the UUID's.
    pub(in crate::format) fn record<'a>(
        &self,
        fields: &[Value<'a>],
    ) -> Result<(Uuid, &'a [u8], &'a [u8])> {
        let (uuid, timestamp, type_, value) = match fields {
            [uuid, timestamp, Value::Text(type_), Value::Binary(value)] => {
                (uuid, timestamp, *type_, *value)
            }
            [_, _, Value::Text(_), _] => return Err(missing("value")),
            _ => return Err(missing("type")),
        };
        let uuid = match uuid {
            Value::Uuid(uuid) => Uuid::from_bytes(*uuid),
            _ => match timestamp {
                Value::Timestamp(micros) => self.generator.at(*micros).ok_or_else(|| {
                    Error::Usage(format!(
                        "timestamp {micros} gives no UUID: those of version 6 cannot hold that time, or all of that microsecond are used"
                    ))
                })?,
                _ => self.next()?,
            },
        };
        let own = timestamp_micros(uuid.as_bytes());
        match timestamp {
            Value::Timestamp(given) if *given != own => Err(Error::Usage(format!(
                "timestamp {given} is not that of the UUID {uuid}, which is {own}: leave timestamp out"
            ))),
            _ => Ok((uuid, type_, value)),
        }
    }
}
