//! What is serialized by its name: the table of formats has it.

/// A format.
pub(super) mod format {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use crate::format::by_name;
    use crate::spec::Spec;

    pub(crate) fn serialize<S: Serializer>(
        format: &&'static Spec,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(format.name)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<&'static Spec, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = by_name(&name).map_err(D::Error::custom)?;
        Ok(&found.spec)
    }
}

/// The names of the columns that identify a format's records.
pub(super) mod identifier {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use crate::format::FORMATS;

    type Names = &'static [&'static str];

    pub(crate) fn serialize<S: Serializer>(
        names: &Names,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        names.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Names, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        let mut known = FORMATS.iter().map(|format| format.identifier);
        let found = known.find(|known| names.iter().eq(known.iter()));
        found.ok_or_else(|| D::Error::custom("these are not the identifying columns of a format"))
    }
}
