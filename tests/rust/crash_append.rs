//! Losses of power while records are appended: afterwards every synced record is there, and none that was not written.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::crashes::{Acknowledged, Aftermath, Checked, Crashes, is_needed, seeds};
use crate::fault_samples::{appended, contents_of, id_among, options, write_value};
use crate::simulated::{Simulated, Trouble};
use seglake::Error;
use seglake::faults::{Disk, Opening};
use seglake::format::{self, Format, IfExists, Options, WriteOptions, Writer, active};
use seglake::ledger::{Kind, Span};
use seglake::source::{FileSource, Source};

/// Of several sizes, so that records end in, at and beyond sectors.
fn value(number: u64) -> Vec<u8> {
    let repeated = [1, 30, 4, 70, 7][usize::try_from(number % 5).unwrap()];
    format!("value {number} ").repeat(repeated).into_bytes()
}

fn path(format: &Format) -> PathBuf {
    Path::new("/data").join(format!("log.{}", format.extension))
}

fn source(disk: &Simulated, format: &Format) -> seglake::Result<Arc<dyn Source>> {
    Ok(Arc::new(FileSource::on(&disk.disk(), &path(format))?))
}

fn appending(disk: &Simulated, format: &Format) -> WriteOptions {
    options(format)
        .if_exists(IfExists::Append)
        .set("preallocate", 6000)
        .set("zero_torn_tail", true)
        .disk(disk.disk())
        .concerning(format)
}

/// Appends records from one number to another, and syncs each time `is_synced` of the next one. What is synced is acknowledged.
fn append(
    writer: &mut dyn Writer,
    disk: &Simulated,
    format: &Format,
    numbers: std::ops::Range<u64>,
    acknowledged: &mut Acknowledged,
) -> seglake::Result<()> {
    for number in numbers.clone() {
        match number - numbers.start {
            3 | 6 => {
                writer.sync()?;
                acknowledged.records = number;
                acknowledged.files = disk.visible();
            }
            8 => writer.flush()?,
            _ => {}
        }
        write_value(writer, format, number, &value(number))?;
    }
    writer.close()
}

/// Whether there is damage with records behind it, which an appender refuses.
fn has_corrupt(spans: &[Span]) -> bool {
    spans.iter().any(|span| span.kind == Kind::Corrupt)
}

/// That the records up to this number are there, and of later ones none that was not written.
fn check_records(
    disk: &Simulated,
    format: &'static Format,
    synced: u64,
) -> Result<Vec<Span>, String> {
    let Ok(source) = source(disk, format) else {
        return match synced {
            0 => Ok(Vec::new()),
            _ => Err("the file is gone".to_owned()),
        };
    };
    let (values, spans) = contents_of(source.clone(), format);
    let mut rest = values.iter();
    for number in 0..synced {
        if rest.next() != Some(&value(number)) {
            return Err(format!(
                "record {number} of {synced} is not there: {} are",
                values.len()
            ));
        }
    }
    // Nothing tells what is in a message of an oplog from what was written: it has no checksums.
    if format.name != "oplog" {
        let mut later = synced..;
        for found in rest {
            if !later
                .by_ref()
                .take(40)
                .any(|number| value(number) == *found)
            {
                return Err(format!("a record that was not written: {found:?}"));
            }
        }
    }
    let options = Options::default().format(format).strict(false);
    let lookup = format::lookup(source, &options).map_err(|error| error.to_string())?;
    for number in (0..synced).step_by(3) {
        let hits = lookup
            .get(&[id_among(format, number, value)])
            .map_err(|error| error.to_string())?;
        let mut found = None;
        hits.each(|hit| found = hit.map(|(rows, row)| rows.value(row).to_vec()));
        if found != Some(value(number)) {
            return Err(format!("record {number} of {synced} is not found"));
        }
    }
    Ok(spans)
}

/// That the bytes which were synced are there, of the index too.
fn check_bytes(aftermath: &Aftermath<'_>) -> Checked {
    let files = aftermath.disk.visible();
    for (path, synced) in &aftermath.acknowledged.files {
        // What was preallocated may have been written over.
        let used = synced
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1);
        if !files
            .get(path)
            .is_some_and(|own| own.starts_with(&synced[..used]))
        {
            return Err(format!("the {used} synced bytes of {path} are not there"));
        }
    }
    Ok(())
}

/// That nothing is left of the torn tail which opening the file removed.
fn check_untorn(aftermath: &Aftermath<'_>, format: &Format, spans: &[Span]) -> Checked {
    let name = path(format)
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let torn = &aftermath.before[&name];
    let end = torn
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    let good = spans
        .iter()
        .rfind(|span| matches!(span.kind, Kind::Record | Kind::Chunk));
    let start = good.map_or(0, |span| usize::try_from(span.end).unwrap());
    let files = aftermath.disk.visible();
    let left = files[&name].iter().take(end).skip(start);
    match left.filter(|byte| **byte != 0).count() {
        0 => Ok(()),
        left => Err(format!("{left} bytes of the torn tail came back")),
    }
}

/// That the torn tail is in the file or beside it.
fn check_kept(aftermath: &Aftermath<'_>, format: &Format) -> Checked {
    let name = path(format)
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let whole = &aftermath.before[&name];
    let end = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let files = aftermath.disk.visible();
    let mut aside = files.iter().filter_map(|(path, content)| {
        let offset = path
            .strip_prefix(&format!("{name}."))?
            .strip_suffix(".quarantine")?;
        Some((offset.parse::<usize>().ok()?, content))
    });
    let is_aside = aside.any(|(at, content)| content.starts_with(&whole[at..end]));
    // The name of the file may not have been synced.
    let file = files.get(&name);
    match is_aside || file.is_none_or(|file| file.starts_with(&whole[..end])) {
        true => Ok(()),
        false => Err(format!("the torn tail is gone: {:?}", files.keys())),
    }
}

/// Opens the file again, which may have to remove a torn tail, and appends to it. Power is lost meanwhile, too.
fn check_again(
    aftermath: Aftermath<'_>,
    format: &'static Format,
    synced: u64,
    spans: &[Span],
) -> Checked {
    let Aftermath {
        disk, mut random, ..
    } = aftermath;
    let crashing = disk.copy();
    crashing.trouble(random.below(12), Trouble::Crash);
    let mut meanwhile = Acknowledged::default();
    let next = disk_records(&disk, format);
    let _ = append_again(&crashing, format, next, &mut meanwhile);
    let after = crashing.after_power_loss(random.next());
    let synced_again = synced.max(meanwhile.records);
    check_again_records(&after, format, synced, synced_again, next)
        .map_err(|failure| format!("power lost again: {failure}"))?;

    let before = disk.visible();
    match append_again(&disk, format, next, &mut meanwhile) {
        Ok(()) => {
            let after = disk.after_power_loss(random.next());
            check_again_records(&after, format, synced, next + 6, next)
                .map_err(|failure| format!("opened again: {failure}"))
        }
        // Damage with records behind it, or other than of one record that was not written to its end.
        Err(Error::Damage(_)) if has_corrupt(spans) || disk.visible() == before => Ok(()),
        // Only garbage survived of the index, which might be anybody's file.
        Err(error)
            if error
                .to_string()
                .contains("nothing in this file is an index item") =>
        {
            Ok(())
        }
        Err(error) => Err(format!("it cannot be appended to: {error}")),
    }
}

fn append_again(
    disk: &Simulated,
    format: &Format,
    next: u64,
    acknowledged: &mut Acknowledged,
) -> seglake::Result<()> {
    let mut writer = format::create(format, path(format), &appending(disk, format))?;
    append(&mut *writer, disk, format, next..next + 9, acknowledged)
}

/// The number behind the last record that may be there.
fn disk_records(disk: &Simulated, format: &'static Format) -> u64 {
    let Ok(source) = source(disk, format) else {
        return 0;
    };
    let (values, _) = contents_of(source, format);
    let last = values
        .iter()
        .rev()
        .find_map(|found| (0..40).find(|number| value(*number) == *found));
    last.map_or(0, |last| last + 1)
}

/// That the synced records are there, and what was synced after opening again.
fn check_again_records(
    disk: &Simulated,
    format: &'static Format,
    synced: u64,
    synced_again: u64,
    next: u64,
) -> Checked {
    check_records(disk, format, synced)?;
    if synced_again <= next {
        return Ok(());
    }
    let (values, _) = contents_of(
        source(disk, format).map_err(|error| error.to_string())?,
        format,
    );
    for number in next..synced_again {
        if !values.contains(&value(number)) {
            return Err(format!("record {number} is gone, which was synced then"));
        }
    }
    Ok(())
}

/// What is there before records are appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Nothing,
    Records,
    /// The same, but the name of the file was not synced.
    Unnamed,
    /// Likewise, and the last record is torn.
    Torn,
}

const PRESENT: u64 = 4;

fn prepare(disk: &Simulated, format: &'static Format, before: Before) {
    if before == Before::Nothing {
        return;
    }
    let is_torn = before == Before::Torn;
    let options = options(format).disk(disk.disk());
    let mut writer = format::create(format, path(format), &options).unwrap();
    for number in 0..PRESENT + u64::from(is_torn) {
        write_value(&mut *writer, format, number, &value(number)).unwrap();
    }
    writer.close().unwrap();
    drop(writer);
    if is_torn {
        tear(disk, format);
    }
    match before {
        Before::Unnamed | Before::Torn => disk.settle_contents(),
        _ => disk.settle(),
    }
}

fn crashes(format: &'static Format, before: Before, index: bool, test: impl Fn(&Crashes<'_>)) {
    let present = if before == Before::Nothing {
        0
    } else {
        PRESENT
    };
    let work = |disk: &Simulated, acknowledged: &mut Acknowledged| {
        if before == Before::Records {
            acknowledged.records = present;
        }
        let options = appending(disk, format)
            .set("index", index)
            .concerning(format);
        let mut writer = format::create(format, path(format), &options)?;
        acknowledged.opened = Some(disk.calls().len());
        if before == Before::Torn {
            acknowledged.records = present; // removing the torn record synced the file
        }
        append(
            &mut *writer,
            disk,
            format,
            present..present + 10,
            acknowledged,
        )
    };
    let check = |aftermath: Aftermath<'_>| -> Checked {
        let synced = aftermath.acknowledged.records;
        let spans = check_records(&aftermath.disk, format, synced)?;
        check_bytes(&aftermath)?;
        let opened = aftermath.acknowledged.opened;
        // An oplog has no unused space: zeros behind its messages are damage.
        if opened.is_none() && format.name != "oplog" && has_corrupt(&spans) {
            return Err(format!("a torn tail became damage: {spans:?}"));
        }
        if before == Before::Torn && aftermath.is_smooth {
            check_kept(&aftermath, format)?;
        }
        if before == Before::Torn && opened == Some(aftermath.at) {
            check_untorn(&aftermath, format, &spans)?;
        }
        check_again(aftermath, format, synced, &spans)
    };
    test(&Crashes {
        name: format!("append to {format:?}, there before: {before:?}, index: {index}"),
        prepare: &|disk| prepare(disk, format, before),
        work: &work,
        check: &check,
    });
}

/// Cuts the last record or chunk in half.
fn tear(disk: &Simulated, format: &'static Format) {
    let (_, spans) = contents_of(source(disk, format).unwrap(), format);
    let last = spans
        .iter()
        .rfind(|span| matches!(span.kind, Kind::Record | Kind::Chunk))
        .unwrap();
    let half = usize::try_from(last.start.midpoint(last.end)).unwrap();
    let name = path(format)
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let mut bytes = disk.files()[&name][..half].to_vec();
    if format.name == "active" {
        bytes.resize(bytes.len() + 3000, 0); // as if preallocated
    }
    for path in [path(format), path(format).with_extension("index")] {
        let _ = seglake::faults::Disk::unlink(disk, &path); // not all have an index
    }
    disk.put(path(format).to_str().unwrap(), &bytes);
}

fn all(test: impl Fn(Before, &Crashes<'_>)) {
    for format in appended() {
        for before in [
            Before::Nothing,
            Before::Records,
            Before::Unnamed,
            Before::Torn,
        ] {
            for index in [true, false] {
                if index || format.writes_with("index") {
                    crashes(format, before, index, |crashes| test(before, crashes));
                }
            }
        }
    }
}

thread_local! {
    /// The disk of a writer, and how many operations it goes on before another one removes its file.
    static REMOVED: RefCell<(Simulated, usize)> = RefCell::new((Simulated::new(), 0));
}

/// Removes the file as a writer does that could not open it: with its lock held.
fn remove_in_time() -> u64 {
    let disk = REMOVED.with_borrow_mut(|(disk, left)| {
        *left = left.wrapping_sub(1);
        (*left == 0).then(|| disk.clone())
    });
    let Some(disk) = disk else { return 0 };
    let path = path(&active::FORMAT);
    if let Ok(file) = disk.open(&path, Opening::Write)
        && file.lock().is_ok()
    {
        let _ = Disk::unlink(&disk, &path); // another may have removed it
        file.unlock().unwrap();
    }
    0
}

/// A file may vanish between the moments when it is opened and when it is locked. Then nothing is appended to it.
#[test]
fn what_is_synced_is_in_the_file_of_the_name() {
    let format = &active::FORMAT;
    for before in 1..40 {
        let disk = Simulated::new();
        prepare(&disk, format, Before::Records);
        REMOVED.set((disk.clone(), before));
        let own = disk.clone().pausing(remove_in_time);
        let options = options(format).if_exists(IfExists::Append).disk(own.disk());
        let mut writer = format::create(format, path(format), &options).unwrap();
        write_value(&mut *writer, format, 9, b"synced").unwrap();
        writer.sync().unwrap();
        writer.close().unwrap();
        let (values, _) = contents_of(source(&disk, format).unwrap(), format);
        assert_eq!(
            values.last().map(Vec::as_slice),
            Some(&b"synced"[..]),
            "{before}"
        );
    }
}

#[test]
fn synced_records_stay() {
    all(|_, crashes| crashes.crash(seeds(8)));
}

#[test]
fn synced_records_stay_after_errors() {
    all(|_, crashes| crashes.trouble(seeds(6)));
}

/// The tests above are worth something: they notice each sync that is left out.
#[test]
fn no_sync_can_be_left_out() {
    all(|before, crashes| {
        // What was certain before needs no sync of its folder.
        if before != Before::Records {
            let tried = crashes.mutate(0..30, is_needed);
            assert!(tried >= 2, "{}: {tried}", crashes.name);
        }
    });
}
