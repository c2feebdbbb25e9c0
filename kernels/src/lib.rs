//! Numeric kernels of omni-flow: sample conversion, mixing, levels, filters, channel layout, convolutions ([`conv`]), and
//! products of matrices stored in [`blocks`].
//!
//! Each kernel is a scalar reference and a SIMD version of the same formula. The version is chosen once, at run time,
//! by [`Tier::current`]; the environment variable `OMNI_FLOW_KERNELS` (`plain` or `avx2`) forces one. Every kernel
//! exists as a free function, which uses the current tier, and as a method of [`Tier`], which uses that one.
//!
//! Promises: the error of each SIMD version against its reference is stated in its documentation ("exact" means bit for
//! bit); no value of a sample causes a panic; not-a-number becomes 0 and is counted in [`Tally`]; what goes beyond full
//! scale saturates and is counted. Not promised: any knowledge of time, streams or formats, which is `media`'s part.
//! A slice of the wrong length is a mistake of the caller and panics, as slicing does.
#![warn(missing_docs)]

#[macro_use]
mod tier;

pub mod blocks;
pub mod conv;
mod convert;
mod fade;
mod fir;
mod gain;
mod layout;
mod level;
mod mix;
#[cfg(test)]
mod sweep;
mod tally;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use convert::{
    f32_to_f64, f32_to_i16, f32_to_i24, f32_to_i32, f32_to_u8, f64_to_f32, i16_to_f32, i24_to_f32, i32_to_f32,
    u8_to_f32,
};
pub use fade::{Fade, crossfade};
pub use fir::{Fir, dot, fir};
pub use gain::{gain, gain_ramp};
pub use layout::{deinterleave, downmix, interleave, spread};
pub use level::{Level, level};
pub use mix::{mix, saturate};
pub use tally::Tally;
pub use tier::Tier;
