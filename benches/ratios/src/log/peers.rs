//! Other logs, each as durable before a write returns as seglake's.

use std::fs::File;
use std::path::Path;
use std::sync::Mutex;

use okaywal::{Configuration, LogVoid, WriteAheadLog};

/// As large as seglake's segments.
const SEGMENT_BYTES: u32 = 64 << 20;
/// As many as a segment has room for.
const INDEX_ITEMS: usize = 1 << 22;

/// SQLite in WAL mode, each record a transaction. Threads share a connection: they wait for a lock instead of sleeping until the
/// database is free.
pub(super) struct Sqlite(Mutex<rusqlite::Connection>);

impl Sqlite {
    pub(super) fn new(path: &Path) -> Self {
        let connection = rusqlite::Connection::open(path).unwrap();
        for (name, value) in [("journal_mode", "wal"), ("synchronous", "full")] {
            connection.pragma_update(None, name, value).unwrap();
        }
        let table = "create table records (number integer primary key, value blob)";
        connection.execute(table, ()).unwrap();
        Self(Mutex::new(connection))
    }

    pub(super) fn write(&self, value: &[u8]) {
        let connection = self.0.lock().unwrap();
        let insert = "insert into records (value) values (?)";
        let mut insert = connection.prepare_cached(insert).unwrap();
        insert.execute((value,)).unwrap();
    }
}

/// The crate okaywal: a log for databases, with group commit.
pub(super) struct OkayWal(WriteAheadLog);

impl OkayWal {
    pub(super) fn new(path: &Path) -> Self {
        let configuration = Configuration::default_for(path)
            .preallocate_bytes(SEGMENT_BYTES)
            .checkpoint_after_bytes(u64::from(SEGMENT_BYTES) * 3 / 4);
        Self(configuration.open(LogVoid).unwrap())
    }

    pub(super) fn write(&self, value: &[u8]) {
        let mut entry = self.0.begin_entry().unwrap();
        entry.write_chunk(value).unwrap();
        entry.commit().unwrap();
    }
}

/// The crate commitlog. Its `flush` syncs its index, but not its records, so their file is synced beside it.
pub(super) struct CommitLog(Mutex<(commitlog::CommitLog, File)>);

impl CommitLog {
    pub(super) fn new(path: &Path) -> Self {
        let mut options = commitlog::LogOptions::new(path);
        options.segment_max_bytes(SEGMENT_BYTES as usize);
        options.index_max_items(INDEX_ITEMS);
        let log = commitlog::CommitLog::new(options).unwrap();
        let file = File::open(path.join("00000000000000000000.log")).unwrap();
        Self(Mutex::new((log, file)))
    }

    pub(super) fn write(&self, value: &[u8]) {
        let mut own = self.0.lock().unwrap();
        own.0.append_msg(value).unwrap();
        own.0.flush().unwrap();
        own.1.sync_data().unwrap();
    }
}
