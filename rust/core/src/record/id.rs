//! What records are found by.

/// What one record is found by.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordId {
    /// Its UUID, in network byte order: active, sealed.
    Uuid([u8; 16]),
    /// Its message offset: chunked.
    Offset(i64),
    /// Its place among the messages of a tenant in a partition, the first being 0: tenant.
    Message {
        /// The partition's ID.
        partition: u32,
        /// The tenant's ID.
        tenant: Vec<u8>,
        /// The place within the tenant's block.
        index: u64,
    },
    /// Its sequence number: oplog.
    Seq(u64),
}
