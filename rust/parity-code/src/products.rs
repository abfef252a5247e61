//! The products that kernels look up, which multiply each half of a byte by itself.

use crate::field::slow_product;

/// The products of a factor: with each low half of a byte, then with each high half.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct Products(pub(crate) [[u8; 16]; 2]);

/// The products of every factor.
pub(crate) static PRODUCTS: [Products; 256] = products();

#[allow(clippy::indexing_slicing, clippy::cast_possible_truncation)] // evaluated by the compiler, which would complain
const fn products() -> [Products; 256] {
    let mut all = [Products([[0; 16]; 2]); 256];
    let mut factor = 0;
    while factor < 256 {
        let mut half = 0;
        while half < 16 {
            all[factor].0[0][half] = slow_product(factor as u8, half as u8);
            all[factor].0[1][half] = slow_product(factor as u8, (half << 4) as u8);
            half += 1;
        }
        factor += 1;
    }
    all
}
