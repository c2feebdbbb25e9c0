//! Matrices stored as blocks of 32 small integers with a scale, and their product with a few vectors.
//!
//! The formats are those of GGUF files, byte for byte, so a matrix is used as it was read. A product never expands it:
//! the vectors are rounded to blocks of 8-bit integers ([`Rows`]), multiplied in integers, and scaled per block. A
//! matrix is read once per product, whatever the number of vectors.
//!
//! Promises: integer parts are exact and equal on every tier; what the scaling adds is stated at [`matvec()`]. A value
//! that is no number, or infinite, makes every sum that it enters not-a-number, on every tier: it cannot pass
//! unnoticed. Not here: products of many vectors at once on expanded matrices, threads.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod dequantize;
mod format;
mod half;
mod matrix;
mod matvec;
mod pack;
mod rows;

pub use dequantize::dequantize_row;
pub use format::{BLOCK, Format};
pub use matrix::Matrix;
pub use matvec::matvec;
pub use pack::pack_row;
pub use rows::Rows;
