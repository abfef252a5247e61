//! Single flipped bits: found exactly, proposed, never applied.

use crate::common;
use crate::diagnoses::{Sound, active, chunked, repairs, sealed, shown, tenant};
use seglake::verbs::{Certainty, Reason, verify};

/// That whatever bit of a file is flipped, exactly that bit is proposed, and flipping it back makes the file sound.
fn every_bit_is_proposed(sound: &Sound) {
    for at in 0..sound.bytes.len() {
        for bit in 0..8 {
            let bytes = sound.damaged(|bytes| bytes[at] ^= 1 << bit);
            let (report, found) = sound.explained(&bytes);
            let name = format!(
                "{}: bit {bit} of byte {at}\n{}",
                sound.format.name,
                shown(&found)
            );
            if report.is_sound() {
                // Two bits of the byte after a zstd frame's magic do not change its content (RFC 8878, 3.1.1.1.1):
                // one is unused, the other chooses between two ways to state how much memory decoding takes.
                let is_harmless = sound.format.name == "chunked" && (bit == 4 || bit == 5);
                assert!(
                    is_harmless && bytes[at - 4..at] == [0x28, 0xb5, 0x2f, 0xfd],
                    "{name}"
                );
                continue;
            }
            assert_eq!(found.len(), report.summary.damage.len(), "{name}");
            let proposed = repairs(&found);
            assert_eq!(proposed.len(), 1, "{name}");
            let repair = proposed[0];
            assert_eq!((repair.offset, repair.bit), (at as u64, bit), "{name}");
            assert_eq!(
                (repair.old, repair.new),
                (bytes[at], sound.bytes[at]),
                "{name}"
            );
            for own in &found {
                assert!(
                    matches!(own.reason, Reason::FlippedBit | Reason::Consequence),
                    "{name}"
                );
                assert_eq!(own.certainty, Some(Certainty::Proven), "{name}");
            }
            let mut mended = bytes;
            mended[at] = repair.new;
            let report = verify(common::source(&mended), &sound.options(), |_| Ok(())).unwrap();
            assert!(report.is_sound(), "{name}");
        }
    }
}

#[test]
fn every_bit_of_an_active_segment() {
    every_bit_is_proposed(&active(4, 20, 100));
}

#[test]
fn every_bit_of_a_sealed_segment() {
    every_bit_is_proposed(&sealed(4, 20, true));
}

#[test]
fn every_bit_of_a_tenant_segment() {
    every_bit_is_proposed(&tenant(2, 5, 20));
}

#[test]
fn every_bit_of_a_chunked_segment() {
    every_bit_is_proposed(&chunked(3, 20));
}
