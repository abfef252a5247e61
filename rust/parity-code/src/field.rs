//! Arithmetic in GF(2^8): bytes as polynomials over GF(2), modulo x^8 + x^4 + x^3 + x^2 + 1.
#![allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "tables have an item for each byte; those evaluated by the compiler would not compile otherwise"
)]

/// The polynomial of the field, with the bit of x^8.
const POLYNOMIAL: u16 = 0x11d;

/// The nonzero elements: powers of x, which generates all of them.
pub(crate) const ORDER: usize = 255;

/// The powers of x, by exponent.
static POWERS: [u8; ORDER] = powers();

/// The exponent of each nonzero element. Zero has none.
static LOGARITHMS: [u8; 256] = logarithms();

/// `a` times x.
pub(crate) const fn times_x(a: u8) -> u8 {
    let shifted = (a as u16) << 1;
    (if shifted > 0xff {
        shifted ^ POLYNOMIAL
    } else {
        shifted
    }) as u8
}

/// The product, bit by bit. It makes the tables.
pub(crate) const fn slow_product(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 != 0 {
            product ^= a;
        }
        a = times_x(a);
        b >>= 1;
    }
    product
}

/// The exponent of a nonzero element; 0 for zero.
pub(crate) fn logarithm(a: u8) -> usize {
    usize::from(LOGARITHMS[usize::from(a)])
}

/// x to the power of `exponent`.
pub(crate) fn power(exponent: usize) -> u8 {
    POWERS[exponent % ORDER]
}

const fn powers() -> [u8; ORDER] {
    let mut powers = [1; ORDER];
    let mut exponent = 1;
    while exponent < ORDER {
        powers[exponent] = times_x(powers[exponent - 1]);
        exponent += 1;
    }
    powers
}

const fn logarithms() -> [u8; 256] {
    let (mut logarithms, powers) = ([0; 256], powers());
    let mut exponent = 0;
    while exponent < ORDER {
        logarithms[powers[exponent] as usize] = exponent as u8;
        exponent += 1;
    }
    logarithms
}
