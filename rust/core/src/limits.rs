//! Thresholds of reading and writing.
//!
//! Most change only speed and memory. These change results: the search budget (`search_*`, `generous_search_bytes`,
//! `plausible_bytes`, `pending_blocks`), `wrong_key_records`, `suspect_entries`, `max_parts` and `unwanted_bytes`.
//! Fuzzing builds (`--cfg fuzzing`) have tiny values, so that small inputs reach both sides of each threshold.

macro_rules! limits {
    ($($(#[doc = $doc:literal])+ $name:ident: $kind:ty = $shipped:expr, fuzzing $tiny:expr;)+) => {
        /// The thresholds. [`LIMITS`] has their values.
        #[cfg_attr(
            not(feature = "chunked"),
            allow(dead_code, reason = "some are of chunked segments alone")
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

    /// What one scan may hash or decode in vain, in bytes, beside its share of the file's length.
    search_bytes: u64 = 256 << 20, fuzzing 4 << 10;
    /// That share: so many bytes for each byte of the file. Decoding a block costs up to two for each of its bytes.
    search_bytes_per_byte: u64 = 2, fuzzing 2;
    /// Up to this much is spent on any candidate; from then on, on plausible ones alone.
    generous_search_bytes: u64 = 32 << 20, fuzzing 128;
    /// A candidate up to this long is always plausible.
    plausible_bytes: u64 = 64 << 10, fuzzing 64;
    /// How much is searched or hashed between two looks at whether to stop, and read at once at most.
    search_piece_bytes: usize = 1 << 20, fuzzing 300;
    /// How much a search reads first: most damage is short.
    first_search_piece_bytes: usize = 8 << 10, fuzzing 64;
    /// Looks at what follows a candidate read whole stretches of this length: those at candidates side by side often fall
    /// into one. At least as long as the longest header.
    look_piece_bytes: u64 = 4 << 10, fuzzing 512;
    /// This many records with sound lengths and UUIDs and no right checksum mean a wrong key, not damage.
    wrong_key_records: usize = 8, fuzzing 2;
    /// How much of a chunk's content is decoded at a time only to see whether it is right.
    trial_piece_bytes: usize = 128 << 10, fuzzing 64;

    // What a length may claim, and what is kept.

    /// A longer record is hashed or decoded in pieces first, so that a false length costs no memory. Also the most room that
    /// is made for the content size that a frame states.
    unverified_bytes: u64 = 8 << 20, fuzzing 256;
    /// So much of a content, or of a tenant ID, is kept at most where no bodies are wanted. A longer tenant ID reads as null.
    unwanted_bytes: u64 = 32 << 20, fuzzing 256;

    // Steps and buffers of all formats.

    /// The most records that a step gives, of formats whose records are kept one by one.
    step_rows: usize = 1024, fuzzing 4;
    /// How much of what was noted of an index is read at once.
    notes_read_bytes: usize = 16 << 10, fuzzing 32;
    /// A step ends after this many ranges of the index or table of contents. It may give two more.
    front_step_spans: usize = 1 << 14, fuzzing 2;
    /// Bytes that are written are collected up to this many first.
    write_buffer_bytes: usize = 1 << 20, fuzzing 64;

    // Parts of a file (rule 35).

    /// No part need be smaller, in bytes: each costs something by itself.
    least_part_bytes: u64 = 1 << 20, fuzzing 64;
    /// How many parts there are at most: each takes some hundred bytes until it is read.
    max_parts: u64 = 1 << 16, fuzzing 8;

    // Active segments.

    /// How many records are hashed together at most: enough to fill every lane of a processor, few enough to stay in its cache.
    group_records: usize = 512, fuzzing 8;
    /// A group ends at this many bytes: one window of the hasher, which prefetches the next ...
    group_bytes: usize = 128 << 10, fuzzing 512;
    /// ... but it does not end there before it has so many records.
    least_group_records: usize = 64, fuzzing 4;
    /// So many messages whose bodies are not wanted are hashed at once, at most: what
    /// [`hash_many`](crate::checksum::hash_many) sorts by length together.
    unhashed_messages: usize = 512, fuzzing 8;
    /// They are hashed as soon as they have this many bytes: while a core's own cache still holds them.
    unhashed_bytes: usize = 512 << 10, fuzzing 256;

    // Sealed segments.

    /// How many messages a step gives at most.
    sealed_step_rows: usize = 1024, fuzzing 4;
    /// How much is read or hashed between two looks at whether to stop. At least an entry of the index.
    sealed_piece_bytes: usize = 1 << 20, fuzzing 48;
    /// A longer message is hashed where it lies: a shorter one is copied behind its UUID, which takes less time than hashing
    /// in pieces.
    copied_bytes: u64 = 2 << 10, fuzzing 64;
    /// The most that is read ahead of headers and short messages outside the window.
    sealed_probe_bytes: usize = 64 << 10, fuzzing 64;
    /// How many bytes of checksums are read at once.
    checksums_ahead_bytes: usize = 64 << 10, fuzzing 16;
    /// How many messages are checked together at most.
    run_messages: usize = 512, fuzzing 8;
    /// How many bytes they have together at most, their UUIDs among them ...
    run_bytes: usize = 1 << 20, fuzzing 1 << 10;
    /// ... and where a run ends that has enough messages to fill every lane of a processor: what its nearer caches hold.
    near_run_bytes: usize = 64 << 10, fuzzing 256;
    /// How many messages are enough for that.
    enough_run_messages: usize = 16, fuzzing 2;
    /// How many entries in front of a range may be damaged before all of the file is walked.
    run_in_entries: u64 = 64, fuzzing 2;
    /// How many messages are looked up in turns: more than a processor can wait for at once.
    lookup_group: usize = 32, fuzzing 4;
    /// Once there was one look-up for so many entries, making a table has paid: a look-up saves at least what reading as many
    /// takes.
    entries_per_lookup: u64 = 64, fuzzing 1;
    /// Before fewer look-ups than these no table is made, however few entries there are.
    least_lookups: u64 = 1 << 10, fuzzing 2;
    /// So many entries share a place of the table where times are spread evenly and memory allows.
    entries_per_place: u64 = 4, fuzzing 2;
    /// A stretch of the table with more entries is a crowd, which is divided.
    crowd_entries: u32 = 64, fuzzing 4;
    /// How many entries of an index are read at once: 3 KiB.
    index_block_entries: u64 = 128, fuzzing 2;
    /// How many of these blocks are kept: 192 KiB.
    max_index_blocks: usize = 64, fuzzing 2;

    // Tenant segments.

    /// The most messages that a step gives.
    tenant_step_rows: usize = 1 << 16, fuzzing 4;
    /// The most ranges that a step gives.
    tenant_step_spans: usize = 1 << 14, fuzzing 4;
    /// A block of up to so many windows is checked in memory, and given out from there; a larger one is read twice.
    whole_block_windows: u64 = 8, fuzzing 1;
    /// How many blocks and ranges are pending at most. With more, a block after the last good one is no longer searched for if
    /// the entries are in order, and the search ends if they are not.
    pending_blocks: usize = 1 << 12, fuzzing 3;
    /// The most pieces that a block is checked in, so that what is kept of each stays small.
    block_pieces: u64 = 1 << 16, fuzzing 4;
    /// The most that is read ahead of lengths and tenant IDs.
    tenant_fields_ahead_bytes: usize = 64 << 10, fuzzing 16;
    /// A tenant ID up to this long is kept in memory while it is compared; of a longer one only where it stands.
    kept_tenant_bytes: u32 = 64 << 10, fuzzing 4;
    /// How much of two long tenant IDs is compared at once.
    tenant_piece_bytes: u32 = 64 << 10, fuzzing 3;
    /// How much of a long tenant ID is read at once.
    tenant_read_bytes: u64 = 1 << 20, fuzzing 16;
    /// A table of contents up to this long is kept in memory.
    kept_toc_bytes: usize = 8 << 20, fuzzing 64;
    /// Each part reads the table of contents once. One of more bytes than this is not to be more than its share of a part.
    short_toc_bytes: u64 = 1 << 20, fuzzing 64;
    /// Every so many entries the table of contents is remembered, so that a look-up need not go through all of it again.
    signpost_stride: u64 = 256, fuzzing 2;
    /// Where so many are remembered, every other is forgotten.
    max_signposts: usize = 16 << 10, fuzzing 3;
    /// A longer tenant ID is not remembered.
    signpost_tenant_bytes: u32 = 256, fuzzing 8;
    /// How many entries are gone through for one range: a table of contents cannot be searched but from its beginning.
    suspect_entries: u64 = 1 << 16, fuzzing 8;
    /// So many sorted runs become one while writing, so that few files are open at once.
    max_merged_sort_runs: usize = 32, fuzzing 2;
    /// How much of a run is read at once.
    sort_run_read_bytes: usize = 256 << 10, fuzzing 64;

    // Chunked segments.

    /// How many records a step gives out at most.
    chunked_step_rows: usize = 16 << 10, fuzzing 4;
    /// How many bytes of bodies a step gives out at most, unless the first has more.
    chunked_step_bytes: usize = 4 << 20, fuzzing 128;
    /// How much content is decoded at a time in the second pass over a large chunk.
    second_pass_bytes: usize = 256 << 10, fuzzing 64;
    /// So many body lengths of a content are kept at most.
    kept_lengths: usize = 64 << 10, fuzzing 3;
    /// How much of a payload is decoded between two looks at whether to stop, and at least read at once.
    payload_input_bytes: usize = 1 << 20, fuzzing 64;
    /// A payload up to this long is read whole before it is decoded. Not a longer one: the next may begin inside it where
    /// headers are damaged, and what is held would have to move for each.
    whole_payload_bytes: usize = 64 << 10, fuzzing 32;
    /// Content is decoded in pieces of at least this many bytes: a zstd block.
    payload_output_bytes: usize = 128 << 10, fuzzing 64;
    /// A buffer that has grown beyond this is not kept for the next chunk.
    kept_content_bytes: usize = 8 << 20, fuzzing 256;
    /// How many items of an index are looked at in search of one whose checksum is right.
    near_index_items: u64 = 16, fuzzing 2;
    /// How many chunks that hopping met are remembered.
    max_known_chunks: usize = 64 << 10, fuzzing 2;

    // Oplogs.

    /// How much of a long message is read at once, in bytes.
    oplog_piece_bytes: usize = 64 << 10, fuzzing 32;
    /// How many bytes of keys are read at once.
    keys_ahead_bytes: u64 = 32 << 10, fuzzing 64;
    /// How much memory a table of keys takes, in bytes.
    key_table_bytes: u64 = 16 << 20, fuzzing 256;
    /// One signpost for so many owners of late keys: what is between two of them is read at once.
    late_key_stride: u64 = 256, fuzzing 2;
}
