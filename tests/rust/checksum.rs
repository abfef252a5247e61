//! HighwayHash-64: known answers, and every way of computing it against every other.

use highway::{HighwayHash, PortableHash};
use proptest::prelude::*;
use seglake::checksum::{Incremental, Key, hash, hash_many};

/// The answers of the reference implementation for the key 00, 01, ... 1f and the messages of 0 to 64 bytes 00, 01, ....
const KNOWN: [u64; 65] = [
    0x907a_56de_22c2_6e53,
    0x7eab_43aa_c7cd_dd78,
    0xb8d0_569a_b0b5_3d62,
    0x5c6b_efab_8a46_3d80,
    0xf205_a468_9300_7eda,
    0x2b8a_1668_e4a9_4541,
    0xbd4c_cc32_5bef_ca6f,
    0x4d02_ae17_38f5_9482,
    0xe120_5108_e55f_3171,
    0x32d2_644e_c77a_1584,
    0xf6e1_0acd_b103_a90b,
    0xc3bb_f461_5b41_5c15,
    0x243c_c204_0063_fa9c,
    0xa89a_58ce_65e6_41ff,
    0x24b0_31a3_4845_5a23,
    0x4079_3f86_a449_f33b,
    0xcfab_3489_f97e_b832,
    0x19fe_67d2_c8c5_c0e2,
    0x04dd_90a6_9c56_5cc2,
    0x75d9_518e_2371_c504,
    0x38ad_9b11_41d3_dd16,
    0x0264_432c_cd8a_70e0,
    0xa9db_5a62_8868_3390,
    0xd7b0_5492_003f_028c,
    0x205f_615a_ea59_e51e,
    0xeee0_c896_2105_2884,
    0x1bfc_1a93_a728_4f4f,
    0x5121_75b5_b70d_a91d,
    0xf71f_8976_a0a2_c639,
    0xae09_3fef_1f84_e3e7,
    0x22ca_92b0_1161_860f,
    0x9fc7_007c_cf03_5a68,
    0xa0c9_64d9_ecd5_80fc,
    0x2c90_f73c_a031_81fc,
    0x185c_f84e_5691_eb9e,
    0x4fc1_f5ef_2752_aa9b,
    0xf5b7_391a_5e0a_33eb,
    0xb9b8_4b83_b4e9_6c9c,
    0x5e42_fe71_2a5c_d9b4,
    0xa150_f2f9_0c3f_97dc,
    0x7fa5_22d7_5e2d_637d,
    0x181a_d0cc_0dff_d32b,
    0x3889_ed98_1e85_4028,
    0xfb42_97e8_c586_ee2d,
    0x6d06_4a45_bb28_059c,
    0x9056_3609_b3ec_860c,
    0x7aa4_fce9_4097_c666,
    0x1326_bac0_6b91_1e08,
    0xb926_168d_2b15_4f34,
    0x9919_8489_45b1_948d,
    0xa2a9_8fc5_3482_5ebe,
    0xe980_9095_213e_f0b6,
    0x582e_5483_707b_c0e9,
    0x086e_9414_a88a_6af5,
    0xee86_b98d_20f6_743d,
    0xf89b_7ff6_09b1_c0a7,
    0x4c7d_9cc1_9e22_c3e8,
    0x9a97_0050_2456_2a6f,
    0x5dd4_1cf4_23e6_ebef,
    0xdf13_609c_0468_e227,
    0x6e0d_a4f6_4188_155a,
    0xb755_ba4b_50d7_d4a1,
    0x887a_3484_6474_79bd,
    0xab8e_ebe9_bf21_39a0,
    0x7554_2c5d_4cd2_a6ff,
];

fn counting(len: usize) -> Vec<u8> {
    (0..len).map(|byte| u8::try_from(byte).unwrap()).collect()
}

#[test]
fn known_answers() {
    let key = Key::new(&counting(32).try_into().unwrap());
    for (len, known) in KNOWN.iter().enumerate() {
        assert_eq!(hash(&key, &counting(len)), *known, "of {len} bytes");
    }
}

#[test]
fn keys_parse_raw_and_hexadecimal() {
    let key = Key::new(&counting(32).try_into().unwrap());
    let text = hex::encode(counting(32));
    assert_eq!(Key::parse(&counting(32)).unwrap(), key);
    assert_eq!(Key::parse(format!(" {text}\n").as_bytes()).unwrap(), key);
    assert_eq!(Key::parse(text.to_uppercase().as_bytes()).unwrap(), key);
    for bad in [
        "",
        "00",
        &text[1..],
        &text.replace('1', "g"),
        &format!("{text}00"),
    ] {
        let error = Key::parse(bad.as_bytes()).unwrap_err().to_string();
        assert!(
            bad.is_empty() || !error.contains(bad),
            "the message shows what might be a key: {error}"
        );
    }
    assert!(!format!("{key:?}").contains("1f"), "Debug shows the key");
}

#[test]
fn a_hasher_that_has_hashed_nothing_is_its_key_and_is_not_shown() {
    let shown = |first: u8| {
        let mut key = [7; 32];
        key[0] = first;
        format!("{:?}", Incremental::new(&Key::new(&key)))
    };
    assert_eq!(shown(0), shown(1));
}

proptest! {
    #[test]
    fn all_ways_agree(key: [u8; 32], bytes in proptest::collection::vec(any::<u8>(), 0..2000), cut: prop::sample::Index) {
        let words = key.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let words: [u64; 4] = words.collect::<Vec<_>>().try_into().unwrap();
        let portable = PortableHash::new(highway::Key(words)).hash64(&bytes);
        #[cfg(target_arch = "x86_64")]
        {
            let sse = highway::SseHash::new(highway::Key(words)).map(|hasher| hasher.hash64(&bytes));
            let avx = highway::AvxHash::new(highway::Key(words)).map(|hasher| hasher.hash64(&bytes));
            prop_assert!(sse.is_none_or(|hash| hash == portable));
            prop_assert!(avx.is_none_or(|hash| hash == portable));
        }
        let key = Key::new(&key);
        prop_assert_eq!(hash(&key, &bytes), portable);

        let (left, right) = bytes.split_at(cut.index(bytes.len() + 1));
        let mut incremental = Incremental::new(&key);
        incremental.update(left);
        incremental.update(right);
        prop_assert_eq!(incremental.finish(), portable);

        let mut hashes = vec![7];
        hash_many(&key, &bytes, &[(0, bytes.len()), (left.len(), right.len()), (0, 0)], &mut hashes);
        prop_assert_eq!(hashes, vec![portable, hash(&key, right), hash(&key, b"")]);
    }
}
