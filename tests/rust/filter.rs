//! Conditions on columns that a format does not find by itself, and those that are refused.

use crate::common::{Plain, lenient, scan, segment, source, uuid};
use seglake::Error;
use seglake::checksum::Key;
use seglake::format::{
    self, Filter, Options, RecordId, Scalar, Start, Step, Value, WriteOptions, lookup, open, split,
    tenant,
};
use seglake::uuid6;

/// Nine records of three types, with bodies that count.
fn bytes() -> Vec<u8> {
    let value = |number: usize| vec![b'0' + u8::try_from(number).unwrap()];
    let type_of = |number: usize| ["order", "order.paid", "refund"][number % 3];
    let messages: Vec<_> = (0..9)
        .map(|number| (type_of(number), value(number)))
        .collect();
    segment(&Key::DEFAULT, &messages)
}

fn given(filter: Filter, options: Options) -> Vec<Vec<u8>> {
    let options = options.filter(filter);
    let (records, ledger) = scan(source(&bytes()), &options).unwrap();
    assert_eq!(ledger.len(), 9, "every record is in the ledger");
    let lookup = lookup(source(&bytes()), &options).unwrap();
    let mut walk = lookup.range(&options.filter).unwrap();
    let mut ranged = Vec::new();
    while walk.step().unwrap() == Step::More {
        let rows = walk.rows();
        ranged.extend((0..rows.len()).map(|row| rows.value(row).to_vec()));
    }
    let scanned: Vec<_> = records.into_iter().map(|record| record.value).collect();
    assert_eq!(scanned, ranged);
    scanned
}

#[test]
fn bodies_and_texts_are_compared_by_their_bytes() {
    let above = |value: &str| Filter::default().above("value", value);
    assert_eq!(given(above("6"), lenient()), [b"7", b"8"]);
    let from = Filter::default().at_least("value", "7");
    assert_eq!(given(from, lenient()), [b"7", b"8"]);
    let to = Filter::default().at_most("value", "1").below("value", "1");
    assert_eq!(given(to, lenient()), [b"0"]);
    let types = Filter::default()
        .at_least("type", "order.")
        .below("type", "order/");
    assert_eq!(given(types, lenient()), [b"1", b"4", b"7"]);
    let others = Filter::default()
        .not_among("type", ["order", "refund"])
        .above("value", "1");
    assert_eq!(given(others, lenient()), [b"4", b"7"]);
    let both = Filter::default()
        .among("type", ["order", "refund"])
        .among("type", ["order", "order.paid"])
        .not_among("value", ["3"]);
    assert_eq!(given(both, lenient()), [b"0", b"6"]);
}

#[test]
fn patterns_and_nulls() {
    let types = |pattern: &str| Filter::default().like("type", pattern);
    assert_eq!(given(types("order.%"), lenient()), [b"1", b"4", b"7"]);
    assert_eq!(given(types("%un_"), lenient()), [b"2", b"5", b"8"]);
    let others = Filter::default().not_like("type", "order%");
    assert_eq!(given(others.clone(), lenient()), [b"2", b"5", b"8"]);
    assert_eq!(given(others.is_not_null("type"), lenient()).len(), 3);
    let null = Filter::default().is_null("value");
    assert!(given(null, lenient()).is_empty());
    assert_eq!(given_pruned(types("%nd").like("value", "_")).len(), 3);
}

/// Readers that want no bodies still filter by them; a look-up that has been opened without says that it cannot.
#[test]
fn bodies_that_are_not_read() {
    let options = lenient().values(false);
    let filter = Filter::default().among("value", ["5"]);
    let walked = options.clone().filter(filter.clone());
    let (records, _) = scan(source(&bytes()), &walked).unwrap();
    assert_eq!(records.len(), 1);
    let lookup = lookup(source(&bytes()), &options).unwrap();
    assert!(matches!(lookup.range(&filter), Err(Error::Usage(_))));
}

#[test]
fn what_no_column_has_is_refused() {
    let refused = |filter: Filter| match open(
        source(&bytes()),
        &lenient().filter(filter),
        Start::Beginning,
    ) {
        Err(Error::Usage(message)) => message,
        _ => panic!("it was not refused"),
    };
    assert_eq!(
        refused(Filter::default().among("tenant", ["a"])),
        "cannot filter active records by tenant: they have no such column, only uuid, timestamp, type, value"
    );
    assert_eq!(
        refused(Filter::default().at_least("type", 5)),
        "cannot filter by type: expected a value of the kind text, found 5"
    );
    assert_eq!(
        refused(Filter::default().like("uuid", "a%")),
        "cannot filter by uuid: expected a value of the kind uuid, found a%"
    );
    // Also where another condition on the same column would come first.
    let twice = Filter::default().at_least("timestamp", 5);
    refused(twice.at_least("timestamp", [0; 16]));
}

#[test]
fn conditions_that_contradict_each_other() {
    let all = Filter::default();
    assert!(all.is_empty() && !all.is_contradictory());
    let from = |least: i64| Filter::default().at_least("timestamp", least);
    assert!(from(5).below("timestamp", 5).is_contradictory());
    assert!(!from(5).at_most("timestamp", 5).is_contradictory());
    assert!(
        from(5)
            .above("timestamp", 9)
            .at_most("timestamp", 9)
            .is_contradictory()
    );
    assert!(from(5).among("timestamp", [1, 4]).is_contradictory());
    let none = Filter::default().among("type", Vec::<Scalar>::new());
    assert!(none.is_contradictory());
    let apart = Filter::default().among("type", ["a"]).among("type", ["b"]);
    assert!(apart.is_contradictory());
    let greatest = Filter::default().above("uuid", [0xff; 16]);
    assert!(greatest.is_contradictory());
    let least = Filter::default().at_most("uuid", [0xff; 16]);
    assert!(!least.is_contradictory());
    // A UUID has a time; other records may have times before all of those.
    let time = uuid6::timestamp_micros(&uuid(5));
    assert!(from(time + 1).below("uuid", uuid(5)).is_contradictory());
    assert!(!from(time).below("uuid", uuid(6)).is_contradictory());
    assert!(
        !from(i64::MIN)
            .below("timestamp", i64::MIN + 1)
            .is_contradictory()
    );
}

/// Times outside the range of records are not an error: no record is before the first, and none after the last.
#[test]
fn times_outside_what_a_record_can_have() {
    let far = Scalar::Integer(i128::from(i64::MAX) + 1);
    let near = Scalar::Integer(i128::from(i64::MIN) - 1);
    assert_eq!(
        given(
            Filter::default().at_least("timestamp", near.clone()),
            lenient()
        )
        .len(),
        9
    );
    assert_eq!(
        given(Filter::default().below("timestamp", far.clone()), lenient()).len(),
        9
    );
    assert!(given_pruned(Filter::default().at_least("timestamp", far)).is_empty());
    assert!(given_pruned(Filter::default().below("timestamp", near)).is_empty());
}

fn given_pruned(filter: Filter) -> Vec<Plain> {
    let options = lenient().filter(filter).prune(true);
    scan(source(&bytes()), &options).unwrap().0
}

/// A look-up by key is not filtered, and parts are.
#[test]
fn looking_up_and_parts() {
    let options = lenient().filter(Filter::default().among("value", ["5"]));
    let mut walk = open(source(&bytes()), &lenient(), Start::Beginning).unwrap();
    walk.step().unwrap();
    let Value::Uuid(first) = walk.rows().field(0, 0) else {
        panic!("a UUID")
    };
    let lookup = lookup(source(&bytes()), &options).unwrap();
    let hits = lookup.get(&[RecordId::from(first)]).unwrap();
    assert_eq!(hits.places.len(), 1);
    assert!(hits.places[0].is_some());
    let parts = split(source(&bytes()), &options, 1).unwrap();
    let counts = parts.iter().map(|part| {
        let mut walk = open(source(&bytes()), &options, Start::Part(part)).unwrap();
        let mut count = 0;
        while walk.step().unwrap() == Step::More {
            count += walk.rows().len();
        }
        count
    });
    assert_eq!(counts.sum::<usize>(), 1);
}

/// A tenant ID may be too long to keep if bodies are not read.
#[test]
fn long_tenant_ids_are_compared_where_bodies_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tenant");
    let long = vec![b'z'; 33 << 20];
    let mut writer = format::create(&tenant::FORMAT, &path, &WriteOptions::default()).unwrap();
    for tenant in [b"a".as_slice(), &long] {
        let fields = [
            Value::Int64(1),
            Value::Text(tenant),
            Value::Null,
            Value::Binary(b"value"),
        ];
        writer.write(&fields).unwrap();
    }
    writer.close().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    for filter in [
        Filter::default().not_among("tenant", ["a"]),
        Filter::default().at_least("tenant", "b"),
    ] {
        for values in [false, true] {
            let options = lenient()
                .format(&tenant::FORMAT)
                .filter(filter.clone())
                .values(values);
            let mut walk = open(source(&bytes), &options, Start::Beginning).unwrap();
            let mut count = 0;
            while walk.step().unwrap() == Step::More {
                count += walk.rows().len();
            }
            assert_eq!(count, 1, "{values}");
        }
    }
}
