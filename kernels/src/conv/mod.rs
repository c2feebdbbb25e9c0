//! One-dimensional convolutions over rows of channels, plain, dilated and transposed.
//!
//! A signal is rows of channels ("channels last"), so the inputs of one tap are adjacent, a dilation is only an offset
//! between rows, and a convolution is a product of matrices whose left side is read where it lies. Weights are packed
//! once, in panels of 16 output columns. A transposed convolution is a plain one that makes all samples of a stride at
//! once, as columns of one row.
//!
//! Promises: an output depends on its own inputs alone and is summed in one order, so any part of a signal comes out
//! bit for bit as in the whole, on every tier; what is no number passes through. Not here: threads, groups, and strides
//! of plain convolutions.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod layer;
mod plain;
mod run;
#[cfg(test)]
mod tests;

pub use layer::{Conv, ConvSize};
pub use run::{ConvInput, ConvOutput};
