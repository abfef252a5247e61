//! Thresholds of reading and writing.
//!
//! Most change only speed and memory. These change results: the search budget (`search_*`, `generous_search_bytes`,
//! `plausible_bytes`, `pending_blocks`), `wrong_key_records`, `candidate_entries`, `key_table_bytes`, `max_parts` and `unwanted_bytes`.
//! Fuzzing builds (`--cfg fuzzing`) have tiny values, so that small inputs reach both sides of each threshold; not of
//! `key_table_bytes`, beyond which a file is refused.

macro_rules! limits {
    ($($(#[doc = $doc:literal])+ $name:ident: $kind:ty = $shipped:expr, fuzzing $tiny:expr;)+) => {
        /// The thresholds. Their values are in [`LIMITS`].
        #[cfg_attr(
            not(feature = "chunked"),
            allow(dead_code, reason = "some are used by chunked segments only")
        )]
        pub(crate) struct Limits {
            $($(#[doc = $doc])+ pub(crate) $name: $kind,)+
        }

        /// The thresholds of this build.
        pub(crate) const LIMITS: Limits = Limits {
            $($name: if cfg!(fuzzing) { $tiny } else { $shipped },)+
        };
    };
}

limits! {
    // Searching after damage: "The search budget" in docs/formats (rule 34).

    /// How many bytes one scan may hash or decode without success, besides its allowance for the file's length.
    search_bytes: u64 = 256 << 20, fuzzing 4 << 10;
    /// That allowance: so many bytes for each byte of the file. Decoding a block costs up to two for each of its bytes.
    search_bytes_per_byte: u64 = 2, fuzzing 2;
    /// Up to this much is spent on any candidate, and more only on plausible ones.
    generous_search_bytes: u64 = 32 << 20, fuzzing 128;
    /// A candidate up to this long is always plausible.
    plausible_bytes: u64 = 64 << 10, fuzzing 64;
    /// How many bytes are searched or hashed between two polls for an interrupt. Also the most that is read at once.
    search_piece_bytes: usize = 1 << 20, fuzzing 300;
    /// How many bytes a search reads first: most damage is short.
    first_search_piece_bytes: usize = 8 << 10, fuzzing 64;
    /// How many bytes are read at once to see what follows a candidate. Neighbouring candidates often share them. At
    /// least the longest header.
    look_piece_bytes: u64 = 4 << 10, fuzzing 512;
    /// This many records with sound lengths and UUIDs, and no matching checksum, mean a wrong key and not damage.
    wrong_key_records: usize = 8, fuzzing 2;
    /// How much of a chunk's content is decoded at once if only its checksum matters.
    trial_piece_bytes: usize = 128 << 10, fuzzing 64;

    // Lengths that a file states, and what stays in memory.

    /// A longer record is hashed or decoded in pieces first, so that a false length costs no memory. Also the most
    /// memory reserved for the content size that a frame states.
    unverified_bytes: u64 = 8 << 20, fuzzing 256;
    /// The most bytes of a tenant ID that stay in memory if bodies are not read. A longer one reads as null.
    unwanted_bytes: u64 = 32 << 20, fuzzing 256;

    // Steps and buffers of all formats.

    /// The most records in a step, for formats that store each record of a step by itself.
    step_rows: usize = 1024, fuzzing 4;
    /// A step ends after this many ranges of the index or table of contents. It may emit two more.
    front_step_spans: usize = 1 << 14, fuzzing 2;
    /// Bytes are buffered up to this many before they are written.
    write_buffer_bytes: usize = 1 << 20, fuzzing 64;

    // Parts of a file (rule 35).

    /// The smallest part that is useful, in bytes: each part has a fixed cost.
    least_part_bytes: u64 = 1 << 20, fuzzing 64;
    /// The most parts. Each takes a few hundred bytes until it is read.
    max_parts: u64 = 1 << 16, fuzzing 8;

    // Active segments.

    /// The most records that are hashed together: enough to fill every vector lane, few enough to stay in the cache.
    group_records: usize = 512, fuzzing 8;
    /// A group ends at this many bytes: one window of the hasher, which prefetches the next ...
    group_bytes: usize = 128 << 10, fuzzing 512;
    /// ... but not before it has this many records.
    least_group_records: usize = 64, fuzzing 4;
    /// The most messages that are hashed at once if bodies are not read: [`hash_many`](crate::checksum::hash_many)
    /// sorts them by length.
    unhashed_messages: usize = 512, fuzzing 8;
    /// They are hashed as soon as they have this many bytes, while they are in a core's own cache.
    unhashed_bytes: usize = 512 << 10, fuzzing 256;

    // Sealed segments.

    /// The most messages in a step.
    sealed_step_rows: usize = 1024, fuzzing 4;
    /// How many bytes are read or hashed between two polls for an interrupt. At least an entry of the index.
    sealed_piece_bytes: usize = 1 << 20, fuzzing 48;
    /// A longer message is hashed in pieces from the window. A shorter one is copied after its UUID, which is faster.
    copied_bytes: u64 = 2 << 10, fuzzing 64;
    /// The most bytes that are read ahead for headers and short messages outside the window.
    sealed_probe_bytes: usize = 64 << 10, fuzzing 64;
    /// How many bytes of checksums are read at once.
    checksums_ahead_bytes: usize = 64 << 10, fuzzing 16;
    /// The most messages that are hashed together.
    run_messages: usize = 512, fuzzing 8;
    /// The most bytes that they have together, with their UUIDs ...
    run_bytes: usize = 1 << 20, fuzzing 1 << 10;
    /// ... and where a run ends that has enough messages to fill every vector lane: the size of a core's nearer caches.
    near_run_bytes: usize = 64 << 10, fuzzing 256;
    /// How many messages fill every vector lane.
    enough_run_messages: usize = 16, fuzzing 2;
    /// How many entries before a range may be damaged before the whole file is walked instead.
    run_in_entries: u64 = 64, fuzzing 2;
    /// How many messages are looked up in turns: more cache misses than a processor can have at once.
    lookup_group: usize = 32, fuzzing 4;
    /// A table is made after one look-up for this many entries. By then it has paid: a look-up without it costs at
    /// least as much as reading that many entries.
    entries_per_lookup: u64 = 64, fuzzing 1;
    /// No table is made before this many look-ups, however few entries there are.
    least_lookups: u64 = 1 << 10, fuzzing 2;
    /// This many entries share a slot of the table if times are spread evenly and memory allows.
    entries_per_place: u64 = 4, fuzzing 2;
    /// A range of the table with more entries is divided.
    crowd_entries: u32 = 64, fuzzing 4;
    /// How many entries of an index are read at once: 3 KiB.
    index_block_entries: u64 = 128, fuzzing 2;
    /// How many of these blocks are cached: 192 KiB.
    max_index_blocks: usize = 64, fuzzing 2;

    // Tenant segments.

    /// The most messages in a step.
    tenant_step_rows: usize = 1 << 16, fuzzing 4;
    /// The most ranges in a step.
    tenant_step_spans: usize = 1 << 14, fuzzing 4;
    /// A block of up to this many windows is verified and emitted from memory. A larger one is read twice.
    whole_block_windows: u64 = 8, fuzzing 1;
    /// The most pending blocks and ranges. With more, blocks after the last sound one are no longer searched for if
    /// entries are in order, and the search ends if they are not.
    pending_blocks: usize = 1 << 12, fuzzing 3;
    /// The most pieces that a block is verified in. It bounds the memory for their hashes.
    block_pieces: u64 = 1 << 16, fuzzing 4;
    /// The most that is read ahead for lengths and tenant IDs.
    tenant_fields_ahead_bytes: usize = 64 << 10, fuzzing 16;
    /// A tenant ID up to this long is in memory while it is compared. Of a longer one only its place is.
    kept_tenant_bytes: u32 = 64 << 10, fuzzing 4;
    /// How much of two long tenant IDs is compared at once.
    tenant_piece_bytes: u32 = 64 << 10, fuzzing 3;
    /// A table of contents up to this long stays in memory.
    kept_toc_bytes: u64 = 8 << 20, fuzzing 64;
    /// Each part reads the table of contents once. A longer one may not exceed its share of a part.
    short_toc_bytes: u64 = 1 << 20, fuzzing 64;
    /// The places of every so many entries of the table of contents are remembered, so that a look-up need not read all
    /// of it again.
    signpost_stride: u64 = 256, fuzzing 2;
    /// The most places remembered. Of more entries, those of twice as many, of four times as many and so on are.
    max_signposts: u64 = 16 << 10, fuzzing 3;
    /// A longer tenant ID is not remembered.
    signpost_tenant_bytes: u32 = 256, fuzzing 8;
    /// The most verified blocks that a look-up lists if the table of contents does not lead to them. If there are more, it scans the file
    /// each time.
    listed_tenant_units: usize = 64 << 10, fuzzing 3;
    /// The most bytes that their tenant IDs have on average.
    listed_tenant_bytes: usize = 256, fuzzing 8;
    /// The most entries read to explain one range. A table of contents can be read only from its beginning.
    candidate_entries: u64 = 1 << 16, fuzzing 8;
    /// How many sorted runs are merged into one while writing. It bounds the number of open files.
    max_merged_sort_runs: usize = 32, fuzzing 2;
    /// How much of a run is read at once.
    sort_run_read_bytes: usize = 256 << 10, fuzzing 64;

    // Chunked segments.

    /// The most records in a step.
    chunked_step_rows: usize = 16 << 10, fuzzing 4;
    /// The most bytes of bodies in a step, unless the first record has more.
    chunked_step_bytes: usize = 4 << 20, fuzzing 128;
    /// The most body lengths of a content that stay in memory.
    kept_lengths: usize = 64 << 10, fuzzing 3;
    /// How much of a payload is decoded between two polls for an interrupt, and the least that is read at once.
    payload_input_bytes: usize = 1 << 20, fuzzing 64;
    /// A payload up to this long is read whole before it is decoded. A longer one is not: if headers are damaged, the
    /// next may begin inside it, and each would have to move the bytes in memory.
    whole_payload_bytes: usize = 64 << 10, fuzzing 32;
    /// Content is decoded in pieces of at least this many bytes: a zstd block.
    payload_output_bytes: usize = 128 << 10, fuzzing 64;
    /// A larger buffer is dropped after the chunk.
    kept_content_bytes: usize = 8 << 20, fuzzing 256;
    /// How many items of an index are tried to find one whose checksum matches.
    near_index_items: u64 = 16, fuzzing 2;
    /// The most chunks that are remembered from a pass over headers.
    max_known_chunks: usize = 64 << 10, fuzzing 2;

    // Oplogs.

    /// How much of a long message is read at once, in bytes.
    oplog_piece_bytes: usize = 64 << 10, fuzzing 32;
    /// How many bytes of memory a table of keys may take.
    key_table_bytes: u64 = 16 << 20, fuzzing 16 << 20;
}
