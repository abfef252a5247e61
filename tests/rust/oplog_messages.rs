//! Single messages: those of the npm package `autobase`, field by field, and what can be wrong with one.

use crate::messages;
use crate::messages::{Plain, fields, key, named};
use proptest::prelude::*;
use seglake::format::oplog::{decode_message, decode_system, encode_message};
use seglake::format::{Dialect, RecordSet, Value};
use seglake::ledger::Cause;
use seglake::{Damage, Error};
use serde_json::{Value as Json, json};

fn damage<T>(result: seglake::Result<T>) -> Damage {
    match result {
        Err(Error::Damage(damage)) => *damage,
        Err(other) => panic!("not damage: {other}"),
        Ok(_) => panic!("no damage"),
    }
}

fn refused(bytes: &[u8], dialect: Dialect) -> (u64, Cause) {
    let damage = damage(decode_message(bytes, dialect, None));
    assert_eq!(damage.path, None);
    assert_eq!(damage.finding.cause(), damage.cause);
    (damage.offset, damage.cause)
}

#[test]
fn what_does_not_decode_says_where() {
    use Cause::{LengthOutOfBounds as Beyond, TrailingBytes as Trailing, UnsupportedVersion};
    let many = [
        &[0, 1, 0xfe],
        &0x10_0001u32.to_le_bytes()[..],
        &[0; 0x40_0000],
    ]
    .concat();
    let most = b"\0\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0";
    for (bytes, at, cause) in [
        (&b""[..], 0, Beyond),
        (b"\0", 1, Beyond),
        (b"\xfd\0", 0, Beyond),
        (b"\0\0abc", 2, Beyond),
        (b"\0\x01\x01\0\0\0", 3, Beyond),
        (b"\0\x01\0\0\0\x05abcd", 6, Beyond),
        (b"\0\x01\0\0\0\x03abcd", 9, Trailing),
        (
            b"\0\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            14,
            Beyond,
        ),
        (most, 11, Beyond),
    ] {
        assert_eq!(refused(bytes, Dialect::Draft), (at, cause), "{bytes:?}");
    }
    for (bytes, at, cause) in [
        (&b"\0\x01\0\0\0\0"[..], 6, Beyond),
        (b"\0\x01\0\0\0\0\x01", 7, Beyond),
        (b"\0\x01\0\0\0\0\0\0", 7, Trailing),
        (&many, 2, Beyond),
    ] {
        assert_eq!(refused(bytes, Dialect::Draft11), (at, cause));
    }
    for (bytes, at, cause) in [
        (&b"\x03"[..], 0, UnsupportedVersion),
        (b"\x02\0\x01\0", 4, Beyond),
        (b"\x02\0\x01\0\x01", 5, Beyond),
        (b"\x02\0\x01\0\x01\0", 6, Beyond), // an empty frame
        (b"\x02\0\x01\0\x02\x01\x01\x05", 7, Beyond), // a frame that ends before its fields do
        (b"\x02\0\x01\0\x08\x03\0\0\x01\0", 9, Beyond),
        (b"\x01\x01\0\0\x01\0\0", 6, Trailing),
        (b"\0\0\0\x01\0\x01\0\0", 7, Trailing),
    ] {
        assert_eq!(refused(bytes, Dialect::Autobase), (at, cause), "{bytes:?}");
    }
    let text = damage(decode_message(b"\x07", Dialect::Autobase, None)).to_string();
    assert!(text.contains("found version 7"), "{text}");
    // Exactly as many items as an array may have.
    let mut full = vec![0, 1, 0, 0, 0, 0, 0xfe];
    full.extend_from_slice(&0x10_0000u32.to_le_bytes());
    full.resize(full.len() + 0x200_0000, 7);
    let full = decode_message(full, Dialect::Draft11, None).unwrap();
    let rows = full.rows();
    let Value::List(keys) = rows.field(0, 8) else {
        panic!("no keys")
    };
    assert_eq!(keys.len(), 0x10_0000);
}

#[test]
fn later_fields_are_kept_after_the_message_and_skipped_in_frames() {
    let shown = |bytes: &[u8]| {
        let single = decode_message(bytes, Dialect::Autobase, Some(3)).unwrap();
        let rows = single.rows();
        let again = encode_message(&fields(&*rows, 0, Dialect::Autobase), Dialect::Autobase);
        (named(&*rows, 0, Dialect::Autobase), again.unwrap())
    };
    let later = b"\x02\0\x01\0\xfd\x14\x01later";
    let (fields, again) = shown(later);
    assert_eq!(fields["flags"], 0x114);
    assert_eq!(fields["extra"], hex::encode("later"));
    assert_eq!(
        (&fields["optimistic"], &fields["seq"]),
        (&json!(true), &json!(3))
    );
    assert_eq!(again, later);
    let (fields, again) = shown(b"\x02\0\x01\0\x02\x05\x01\x07new");
    assert_eq!(fields["digest"], json!({"pointer": 7, "key": null}));
    assert_eq!(fields["extra"], Json::Null);
    assert_eq!(again, b"\x02\0\x01\0\x02\x02\x01\x07");
    // A user list that is there and empty is another thing than none.
    let (empty, again) = shown(b"\x02\0\x01\0\x01\x02\x04\0");
    assert_eq!(empty["checkpoint"]["user"], json!([]));
    assert_eq!(again, b"\x02\0\x01\0\x01\x02\x04\0");
    let (none, _) = shown(b"\x02\0\x01\0\x01\x01\0");
    assert_eq!(none["checkpoint"]["user"], Json::Null);
    // Integers wider than they need be are read, and written narrow.
    let (_, again) = shown(b"\xfd\x02\0\xfe\0\0\0\0\xff\x01\0\0\0\0\0\0\0\0\xfd\0\0");
    assert_eq!(again, b"\x02\0\x01\0\0");
    // Versions 0 and 1 have flags too, but no place for later fields.
    let old = decode_message(b"\x01\x01\x42\0\x01\0", Dialect::Autobase, None).unwrap();
    let old = named(&*old.rows(), 0, Dialect::Autobase);
    assert_eq!(
        (&old["flags"], &old["optimistic"]),
        (&json!(0x42), &json!(true))
    );
}

#[test]
fn system_can_be_had_alone() {
    let hash = [9; 32];
    let bytes = [&b"\x01\0"[..], &hash, b"\xfd\0\x01", b"encrypted"].concat();
    for dialect in [Dialect::Draft, Dialect::Draft11] {
        let system = decode_system(&bytes, dialect).unwrap();
        assert_eq!((system.version, system.checkpointer), (1, 0));
        assert_eq!(system.checkpoint, Some((hash.as_slice(), 256)));
        assert_eq!(system.node, b"encrypted");
        let system = decode_system(b"\x01\x05", dialect).unwrap();
        assert_eq!((system.checkpoint, system.node), (None, &b""[..]));
        let short = damage(decode_system(&bytes[..30], dialect));
        assert_eq!((short.offset, short.cause), (2, Cause::LengthOutOfBounds));
    }
    let refused = decode_system(&bytes, Dialect::Autobase).unwrap_err();
    assert!(matches!(&refused, Error::Usage(text) if text.contains("Node comes first")));
}

#[test]
fn a_single_message_resolves_its_own_keys() {
    let message = Plain {
        checkpointer: 1,
        clock: vec![(5, 50), (6, 60), (5, 51)],
        keys: vec![7, 5],
        ..Plain::default()
    };
    let mut given = message.fields(Dialect::Draft11);
    let refused = encode_message(&given, Dialect::Draft11).unwrap_err();
    assert!(refused.to_string().contains("seq is needed"), "{refused}");
    given[0] = Value::Int64(4);
    let bytes = encode_message(&given, Dialect::Draft11).unwrap();
    let known = decode_message(bytes.as_slice(), Dialect::Draft11, Some(4)).unwrap();
    let rows = known.rows();
    assert_eq!((rows.cause(0), rows.len(), rows.position(0)), (None, 1, 0));
    let entry = |number: u8, length: u64, offset: u64| json!({"key": hex::encode(key(number)), "length": length, "seq": 4, "offset": offset});
    let ours = named(&*rows, 0, Dialect::Draft11);
    assert_eq!(
        ours["clock"],
        json!([entry(5, 50, 0), entry(6, 60, 1), entry(5, 51, 0)])
    );
    let declared = [5, 6, 7].map(|number| hex::encode(key(number)));
    assert_eq!(ours["keys"], json!(declared));
    let again = encode_message(&fields(&*rows, 0, Dialect::Draft11), Dialect::Draft11);
    assert_eq!(again.unwrap(), bytes);

    // Read as another message, its references are dangling. Nothing else is lost, and it is written back
    // unchanged.
    for seq in [None, Some(9)] {
        let other = decode_message(bytes.as_slice(), Dialect::Draft11, seq).unwrap();
        let rows = other.rows();
        assert_eq!(rows.cause(0), Some(Cause::DanglingReference));
        let ours = named(&*rows, 0, Dialect::Draft11);
        assert_eq!(ours["clock"][1]["key"], Json::Null);
        assert_eq!(
            (&ours["clock"][1]["seq"], &ours["keys"]),
            (&json!(4), &json!(declared))
        );
        let again = encode_message(&fields(&*rows, 0, Dialect::Draft11), Dialect::Draft11);
        assert_eq!(again.unwrap(), bytes);
    }
}

#[test]
fn what_cannot_be_encoded_is_refused_by_name() {
    let refused = |dialect: Dialect, column: usize, value: Value<'_>, expected: &str| {
        let message = Plain {
            clock: vec![(1, 1)],
            user: Some(vec![(0, true)]),
            digest: Some((1, true)),
            trace: Some(vec![1]),
            ..Plain::default()
        };
        let mut fields = message.fields(dialect);
        fields[0] = Value::Int64(0);
        encode_message(&fields, dialect).unwrap();
        fields[column] = value;
        match encode_message(&fields, dialect) {
            Err(Error::Usage(text)) => assert!(text.contains(expected), "{text}"),
            other => panic!("{expected}: {other:?}"),
        }
    };
    let list = |items| Value::List(items);
    refused(Dialect::Draft, 0, Value::Int64(-1), "cannot be negative");
    refused(Dialect::Draft, 1, Value::Null, "version is missing");
    refused(
        Dialect::Draft,
        1,
        Value::Int64(1),
        "version must be an unsigned integer",
    );
    refused(Dialect::Draft, 2, Value::UInt64(3), "leave checkpoint out");
    refused(
        Dialect::Draft,
        3,
        Value::Null,
        "checkpointer 0 needs a checkpoint",
    );
    let short = Value::Struct(vec![Value::Binary(b"short"), Value::UInt64(0)]);
    refused(Dialect::Draft, 3, short, "has 5 bytes: it must have 32");
    refused(Dialect::Draft, 4, Value::Null, "clock is missing");
    let three = list(vec![Value::Struct(vec![Value::Null; 3])]);
    refused(Dialect::Draft, 4, three, "clock entry 0 has 3 fields");
    refused(Dialect::Draft, 7, Value::Null, "value is missing");
    refused(
        Dialect::Draft,
        8,
        list(vec![]),
        "only the dialect draft-1.1",
    );
    let entry = |parts: Vec<Value<'static>>| Value::List(vec![Value::Struct(parts)]);
    let nulls = [Value::Null, Value::Null];
    let unnamed = entry([&[Value::Null, Value::UInt64(1)], &nulls[..]].concat());
    refused(Dialect::Draft11, 4, unnamed, "clock entry 0 has no key");
    let own = [
        Value::Null,
        Value::UInt64(1),
        Value::UInt64(0),
        Value::UInt64(9),
    ];
    let text = "refers to key 9 of message 0, which was not found";
    refused(Dialect::Draft11, 4, entry(own.to_vec()), text);
    let half = [
        Value::Binary(key(1)),
        Value::UInt64(1),
        Value::UInt64(0),
        Value::Null,
    ];
    refused(
        Dialect::Draft11,
        4,
        entry(half.to_vec()),
        "the offset of clock entry 0 is missing",
    );
    let wrong = [
        Value::Binary(key(1)),
        Value::UInt64(1),
        Value::UInt64(0),
        Value::UInt64(2),
    ];
    refused(
        Dialect::Draft11,
        4,
        entry(wrong.to_vec()),
        "its key will be at (0, 0)",
    );
    let keys = list(vec![Value::Binary(b"short")]);
    refused(Dialect::Draft11, 8, keys, "key 0 has 5 bytes");
    let many = list(vec![Value::UInt64(0); 0x10_0001]);
    let trace = Value::Struct(vec![many, list(vec![]), list(vec![])]);

    let no_such = "version 2 of the dialect autobase has no such field";
    for column in [2, 5, 9] {
        refused(Dialect::Autobase, column, Value::UInt64(1), no_such);
    }
    refused(Dialect::Autobase, 8, list(vec![]), no_such);
    for version in [0, 1, 3] {
        let text = format!("version {version} of the dialect autobase cannot be written");
        refused(Dialect::Autobase, 1, Value::UInt64(version), &text);
    }
    refused(
        Dialect::Autobase,
        10,
        Value::UInt64(1),
        "optimistic must be a truth value",
    );
    refused(Dialect::Autobase, 11, Value::Null, "(bits 0x2)");
    refused(
        Dialect::Autobase,
        12,
        trace,
        "trace.system has 1048577 items",
    );
    refused(Dialect::Autobase, 14, Value::UInt64(0x10 | 4), "(bits 0x4)");
    let unsigned = Value::Struct(vec![Value::UInt64(0), Value::Null, Value::UInt64(1)]);
    let checkpoint = Value::Struct(vec![unsigned, Value::Null, Value::Null]);
    refused(
        Dialect::Autobase,
        3,
        checkpoint,
        "the signature of checkpoint.system is missing",
    );
    let draft = Plain::default();
    let fields = draft.fields(Dialect::Draft);
    let refused = encode_message(&fields, Dialect::Autobase).unwrap_err();
    assert!(
        refused.to_string().contains("9 fields: it must have 15"),
        "{refused}"
    );
}

/// A reference of three bytes becomes a key of 32 and a number of 8.
#[test]
fn many_references_weigh_what_they_take_in_columns() {
    for (count, least) in [(10, 0), (1000, 1000 * 40)] {
        let message = Plain {
            clock: vec![(1, 1); count],
            ..Plain::default()
        };
        let mut fields = message.fields(Dialect::Draft11);
        fields[0] = Value::Int64(1);
        let bytes = encode_message(&fields, Dialect::Draft11).unwrap();
        let single = decode_message(bytes.as_slice(), Dialect::Draft11, Some(1)).unwrap();
        let weight = single.rows().weight(0);
        assert!(
            weight >= bytes.len() + least,
            "{weight} for {}",
            bytes.len()
        );
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_or_damage(bytes: Vec<u8>, dialect in messages::dialects()) {
        match decode_message(bytes.as_slice(), dialect, Some(1)) {
            Err(Error::Damage(damage)) => prop_assert!(damage.offset <= bytes.len() as u64),
            Err(other) => panic!("{other}"),
            Ok(single) => {
                let rows = single.rows();
                prop_assert_eq!((rows.len(), rows.weight(0)), (1, bytes.len()));
                named(&*rows, 0, dialect);
            }
        }
    }

    /// What is decoded is encoded as the same bytes if its integers are minimal, as the writer's are.
    #[test]
    fn messages_alone_round_trip(messages in messages::messages(), dialect in messages::dialects()) {
        for message in &messages {
            let mut given = message.fields(dialect);
            given[0] = Value::Int64(3);
            let bytes = encode_message(&given, dialect).unwrap();
            let single = decode_message(bytes.as_slice(), dialect, Some(3)).unwrap();
            let again = encode_message(&fields(&*single.rows(), 0, dialect), dialect).unwrap();
            prop_assert_eq!(again, bytes);
        }
    }
}
