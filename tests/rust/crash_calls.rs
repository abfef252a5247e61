//! Every place in the code that makes something last is one that the tests of losses of power leave out.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The methods of a disk and its files that make something last.
const CALLS: [&str; 6] = [
    ".sync_data(",
    ".sync_all(",
    ".sync_folder(",
    ".rename(",
    ".rename_new(",
    ".hard_link(",
];

/// How many such calls each file has, and where they are left out. A new one belongs here, and into a scenario.
const PLACES: [(&str, usize, &str); 10] = [
    // `sync`: the data, and the folder.
    ("output/appender.rs", 2, "crash_append"),
    // `sync`: a sidecar.
    ("output/locked_file.rs", 1, "crash_parity"),
    // `commit`: the folder. `sync`: the data. `place`: both ways to rename. `replace`: the link, or a rename, and the folder before and
    // after the new file has its name. Renaming back only serves an error that does not end the process:
    // `repair::whatever_fails_the_damaged_file_stays`.
    // `commit_together`: `sync_folders`, called twice. Renaming back and the link aside only serve an error that does not end the process:
    // `recover_faults::recovering_over_other_files`.
    // `Staging`: `commit`: the folder before the last file, and behind it. `put`: renaming twice, the link.
    // A rename instead of a link is only for file systems without links: `faults::converting_without_links`.
    (
        "output/new_file.rs",
        17,
        "crash_whole: writing, seal, index, undo, recover, convert; crash_repair",
    ),
    // `sync`: a file before it is covered. Windows opens it once more for that.
    ("source/file.rs", 2, "crash_parity"),
    // `commit`: the segment, and the folder where it is new.
    ("store/commit.rs", 2, "crash_log"),
    // `begin_folder`: the folder of a new log.
    ("store/log.rs", 1, "crash_log"),
    // `begin`: the folder. `sync`: the mark, which is a lower bound: its syncs are not left out.
    ("store/mark.rs", 2, "crash_log"),
    // `LogFolder::remove`: the folder.
    ("store/folder.rs", 1, "crash_log"),
    // `remove_tail` and `rewrite`: the segment. `sync_folder`, twice, and `settle_doubled`: the folder, and a sealed file that is put
    // aside: `store::a_sealed_file_that_lacks_records_does_not_replace_the_active_one`.
    ("store/recovery.rs", 5, "crash_log"),
    // `snapshot`: the rename, and the folder around it. `link`.
    ("store/snapshot.rs", 3, "crash_snapshot"),
];

fn count(folder: &Path, root: &Path, found: &mut BTreeMap<String, usize>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            count(&path, root, found);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("\nmod tests").next().unwrap();
        let lines = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let calls = |line: &str| {
            CALLS
                .iter()
                .map(|call| line.matches(call).count())
                .sum::<usize>()
        };
        let calls: usize = lines.map(calls).sum();
        let name = path.strip_prefix(root).unwrap().to_str().unwrap();
        if calls > 0 && !name.starts_with("disk/") {
            found.insert(name.to_owned(), calls);
        }
    }
}

#[test]
fn each_is_known() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rust/core/src");
    let mut found = BTreeMap::new();
    count(&root, &root, &mut found);
    let known = PLACES.map(|(path, calls, _)| (path.to_owned(), calls));
    assert_eq!(found, BTreeMap::from(known));
}
