//! Sample formats to and from `f32`, one documented scale both ways.
//!
//! An integer sample of `b` bits is the number `s / 2^(b-1)`, so full scale is [-1, 1 - 2^-(b-1)]; `u8` is the same
//! around 128. Back, `x * 2^(b-1)` is rounded half to even and saturated, so +1.0 gives the largest value and counts as
//! clipped. Integer to `f32` and back is the identity for 8, 16 and 24 bits (32 bits keep the 24 that an `f32` holds).
//! Not a number gives 0 and is counted. Every SIMD version is exact: equal to the reference in value and in [`Tally`].

mod f64;
mod i16;
mod i24;
mod i32;
mod u8;

pub use self::f64::{f32_to_f64, f64_to_f32};
pub use self::i16::{f32_to_i16, i16_to_f32};
pub use self::i24::{f32_to_i24, i24_to_f32};
pub use self::i32::{f32_to_i32, i32_to_f32};
pub use self::u8::{f32_to_u8, u8_to_f32};

use crate::Tally;

/// The reference of every conversion to an integer with at most 24 bits; `limit` is its largest value.
#[inline]
fn quantize(x: f32, limit: f32, tally: &mut Tally) -> core::primitive::i32 {
    if x.is_nan() {
        tally.nan += 1;
        return 0;
    }
    let rounded = (x * (limit + 1.0)).round_ties_even();
    if rounded > limit || rounded < -limit - 1.0 {
        tally.clipped += 1;
    }
    rounded.clamp(-limit - 1.0, limit) as core::primitive::i32
}
