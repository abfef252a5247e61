//! Writing tenant segments: any order gives the same file, with any memory limit. Also what is refused.

use std::fs;
use std::path::Path;

use crate::common::source;
use crate::tenant_segments::{encode, lenient, messages};
use proptest::prelude::*;
use seglake::Error;
use seglake::format::{IfExists, RecordId, Value, WriteOptions, create, tenant};
use seglake::verbs::{ConvertOptions, convert};

fn options(version: u16, memory_bytes: u64) -> WriteOptions {
    WriteOptions::default()
        .set("version", version)
        .set("memory_bytes", memory_bytes)
}

fn write(path: &Path, messages: &[(u32, Vec<u8>, Vec<u8>)], options: &WriteOptions) {
    let mut writer = create(&tenant::FORMAT, path, options).unwrap();
    for (partition, tenant, value) in messages {
        let fields = [
            Value::Int64((*partition).into()),
            Value::Text(tenant),
            Value::Null,
            Value::Binary(value),
        ];
        writer.write(&fields).unwrap();
    }
    writer.close().unwrap();
    writer.close().unwrap();
}

/// The content of the folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_bytes_are_the_same_whatever_the_memory(messages in messages(), version in 1u16..3) {
        let expected = encode(version, &messages).bytes;
        let folder = tempfile::tempdir().unwrap();
        for memory_bytes in [0, 200, 1000, 64 << 20] {
            let path = folder.path().join(format!("{memory_bytes}.tenant"));
            write(&path, &messages, &options(version, memory_bytes));
            prop_assert_eq!(&fs::read(&path).unwrap(), &expected);
        }
        prop_assert_eq!(names(folder.path()).len(), 4);
    }
}

/// Some 1,500 runs, which become fewer on the way.
#[test]
fn many_runs_are_merged_in_the_order_in_which_they_came() {
    let messages: Vec<_> = (0..1500_u32)
        .map(|number| {
            let tenant = format!("t{}", number * 31 % 5).into_bytes();
            (number * 17 % 3, tenant, number.to_be_bytes().to_vec())
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.tenant");
    write(&path, &messages, &options(2, 0));
    assert!(fs::read(&path).unwrap() == encode(2, &messages).bytes);
    assert_eq!(names(folder.path()), ["many.tenant"]);
}

#[test]
fn blocks_larger_than_every_buffer_are_written() {
    let messages: Vec<_> = (0..6_u8)
        .map(|number| {
            let value = vec![number; 700_000];
            (u32::from(number % 2), b"t".to_vec(), value)
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    for memory_bytes in [1 << 20, 64 << 20] {
        let path = folder.path().join(format!("{memory_bytes}"));
        write(&path, &messages, &options(2, memory_bytes));
        assert!(fs::read(&path).unwrap() == encode(2, &messages).bytes);
    }
}

fn refusal(fields: &[Value<'_>]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("refused.tenant");
    let mut writer = create(&tenant::FORMAT, &path, &options(2, 1 << 20)).unwrap();
    match writer.write(fields) {
        Err(Error::Usage(message)) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let (tenant, value) = (Value::Text(b"t"), Value::Binary(b"v"));
    let of = |partition, index: Value<'static>| {
        refusal(&[partition, tenant.clone(), index, value.clone()])
    };
    assert!(of(Value::Int64(-1), Value::Null).contains("partition -1"));
    assert!(of(Value::Int64(1 << 32), Value::Null).contains("4294967296"));
    assert!(of(Value::Int64(0), Value::Int64(-5)).contains("-5"));
    assert!(of(Value::Int64(0), Value::Int64(1)).contains("which is 0"));
    assert!(of(Value::Null, Value::Null).contains("partition is missing"));
    let none = [Value::Int64(0), Value::Null, Value::Null, value.clone()];
    assert!(refusal(&none).contains("tenant is missing"));
    // Without an index too it would be a tenant without messages.
    let none = [Value::Int64(0), tenant, Value::Int64(0), Value::Null];
    assert!(refusal(&none).contains("value is missing"));
    let folder = tempfile::tempdir().unwrap();
    let created = create(
        &tenant::FORMAT,
        folder.path().join("v3"),
        &options(3, 1 << 20),
    );
    assert!(matches!(created, Err(Error::Usage(message)) if message.contains("version is 3")));
}

#[test]
fn a_refused_record_leaves_the_others_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.tenant");
    let mut writer = tenant::Writer::create(&path, &options(2, 1 << 20)).unwrap();
    assert_eq!(writer.append(1, b"t", None, b"a").unwrap(), Some(0));
    assert!(writer.append(1, b"t", Some(7), b"b").is_err());
    assert!(writer.append(2, b"u", Some(7), b"b").is_err());
    assert_eq!(writer.append(1, b"t", Some(1), b"c").unwrap(), Some(1));
    assert!(!path.exists(), "it appears when it is complete");
    writer.close().unwrap();
    assert!(writer.append(1, b"t", None, b"d").is_err());
    let all = [
        (1, b"t".to_vec(), b"a".to_vec()),
        (1, b"t".to_vec(), b"c".to_vec()),
    ];
    assert!(fs::read(&path).unwrap() == encode(2, &all).bytes);
}

#[test]
fn an_identifier_is_returned_while_it_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("told.tenant");
    let mut writer = create(&tenant::FORMAT, &path, &options(2, 1 << 20)).unwrap();
    let fields = [
        Value::Int64(5),
        Value::Text(b"t"),
        Value::Null,
        Value::Binary(b""),
    ];
    for index in 0..3 {
        let id = RecordId::new([5.into(), "t".into(), index.into()]);
        assert_eq!(writer.write(&fields).unwrap(), Some(id));
    }
}

/// With temporary files a wrong index shows when they are merged.
#[test]
fn a_wrong_index_is_refused_however_late() {
    let folder = tempfile::tempdir().unwrap();
    for (indexes, fits) in [
        ([Some(0), Some(1), Some(2)], true),
        ([None, Some(1), None], true),
        ([None, None, Some(3)], false),
        ([None, Some(0), None], false),
    ] {
        let path = folder.path().join("late.tenant");
        let mut writer = tenant::Writer::create(&path, &options(2, 0)).unwrap();
        for index in indexes {
            writer.append(1, b"t", index, b"v").unwrap();
        }
        let closed = writer.close();
        assert_eq!(closed.is_ok(), fits, "{indexes:?}: {closed:?}");
        assert!(fits || matches!(closed, Err(Error::Usage(_))));
        assert_eq!(path.exists(), fits);
        let _ = fs::remove_file(&path);
    }
}

#[test]
fn an_existing_file_is_replaced_only_if_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("there.tenant");
    fs::write(&path, b"precious").unwrap();
    let refused = tenant::Writer::create(&path, &options(2, 1 << 20));
    assert!(matches!(refused, Err(Error::Io { .. })));
    let overwrite = options(2, 1 << 20).if_exists(IfExists::Overwrite);
    let mut writer = tenant::Writer::create(&path, &overwrite).unwrap();
    writer.append(1, b"t", None, b"v").unwrap();
    writer.abandon();
    drop(writer);
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    assert_eq!(names(folder.path()), ["there.tenant"]);
    let mut writer = tenant::Writer::create(&path, &overwrite).unwrap();
    writer.close().unwrap();
    assert!(fs::read(&path).unwrap() == encode(2, &[]).bytes);
}

#[test]
fn an_interrupt_ends_the_writing_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stopped.tenant");
    let interrupted = options(2, 0).interrupt(seglake::format::Interrupt::new(|| true));
    let mut writer = tenant::Writer::create(&path, &interrupted).unwrap();
    writer.append(1, b"t", None, b"v").unwrap();
    assert!(matches!(writer.close(), Err(Error::Interrupted)));
    drop(writer);
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

/// A tenant without messages is in no record.
#[test]
fn converting_keeps_tenants_without_messages() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    for version in [1, 2] {
        let mut writer = create(&tenant::FORMAT, &old, &options(version, 1 << 20)).unwrap();
        for (tenant, value) in [(b"a", Value::Binary(b"value")), (b"b", Value::Null)] {
            let fields = [Value::Int64(3), Value::Text(tenant), Value::Null, value];
            writer.write(&fields).unwrap();
        }
        writer.close().unwrap();
        let conversion = ConvertOptions::to(&tenant::FORMAT)
            .write(options(version, 1 << 20))
            .if_exists(IfExists::Overwrite);
        let bytes = fs::read(&old).unwrap();
        convert(source(&bytes), &lenient(), &new, &conversion, |_| Ok(())).unwrap();
        assert_eq!(fs::read(&new).unwrap(), bytes);
        fs::remove_file(&old).unwrap();
    }
}
