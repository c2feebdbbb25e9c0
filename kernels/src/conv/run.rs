//! Running a convolution over a part of a signal: block by block, each block's inputs made ready in a small buffer.

use super::layer::{Conv, Packed};
use super::plain;
use crate::Tier;

/// A signal that a convolution reads.
#[derive(Clone, Copy, Debug)]
pub struct ConvInput<'a> {
    /// Whole rows of [`Conv::inputs`] channels.
    pub rows: &'a [f32],
    /// Number of the first of them; all rows before and after are zeros. A padding of `p` is a signal that begins at `p`.
    pub first: i64,
    /// Factor of every value.
    pub scale: f32,
    /// Factor of what is negative after that (leaky ReLU); 1 for none.
    pub slope: f32,
}

/// What a convolution makes.
#[derive(Debug)]
pub struct ConvOutput<'a> {
    /// Whole rows of [`Conv::columns`] values; every value is overwritten.
    pub rows: &'a mut [f32],
    /// Number of the first of them.
    pub first: i64,
    /// One value per column instead of the convolution's own bias.
    pub bias: Option<&'a [f32]>,
    /// Of the same shape as `rows`; added in order.
    pub adds: [Option<&'a [f32]>; 2],
}

/// One block of rows, ready to be multiplied.
pub(super) struct Block<'a> {
    /// Row `t` of the block is made of the rows `t`, `t + dilation` ... of these.
    pub x: &'a [f32],
    pub rows: usize,
    pub inputs: usize,
    pub taps: usize,
    /// Values from one tap's row to the next tap's.
    pub step: usize,
    pub columns: usize,
    pub bias: &'a [f32],
    pub adds: [Option<&'a [f32]>; 2],
}

impl Block<'_> {
    /// Values that the sums of one output row are made of, last to first.
    pub fn reach(&self) -> usize {
        (self.taps - 1) * self.step + self.inputs
    }
}

/// Floats of a block's inputs, its surroundings not counted: they stay in the second cache beside a panel.
const BLOCK: usize = 16 * 1024;

impl Conv {
    /// Makes the rows that `out` has room for. `scratch` is a buffer for any number of calls.
    ///
    /// Error against an exact sum: at most `(taps * inputs + 5) * 2^-24` times the sum of the magnitudes of bias,
    /// products and addends, on every tier (the AVX2 version fuses multiply and add). Bit for bit the same wherever
    /// the rows asked for begin and end, on one tier.
    ///
    /// # Panics
    /// If a slice is no whole number of rows, or bias or addends have another shape than the output.
    pub fn run(&self, x: ConvInput<'_>, out: ConvOutput<'_>, scratch: &mut Vec<f32>) {
        self.run_on(Tier::current(), x, out, scratch)
    }

    /// [`run`](Self::run) on a tier of the caller's choice.
    pub fn run_on(&self, tier: Tier, x: ConvInput<'_>, out: ConvOutput<'_>, scratch: &mut Vec<f32>) {
        let ConvOutput { rows: y, first, bias, adds } = out;
        assert!(x.rows.len().is_multiple_of(self.inputs), "an input of whole rows");
        assert!(y.len().is_multiple_of(self.columns), "an output of whole rows");
        let bias = bias.unwrap_or(&self.bias);
        assert_eq!(bias.len(), self.columns, "one bias for each column");
        assert!(adds.iter().flatten().all(|a| a.len() == y.len()), "addends as large as the output");

        let around = (self.taps - 1) * self.dilation;
        let most = (BLOCK / self.inputs).clamp(48, 480).next_multiple_of(6);
        for (i, y) in y.chunks_mut(most * self.columns).enumerate() {
            let (start, rows) = (i * most, y.len() / self.columns);
            let len = (rows + around) * self.inputs;
            if scratch.len() < len {
                scratch.resize(len, 0.0);
            }
            let from = first.saturating_add(start as i64);
            prepare(tier, &x, self.inputs, from, &mut scratch[..len]);
            let span = start * self.columns..start * self.columns + y.len();
            let block = Block {
                x: &scratch[..len],
                rows,
                inputs: self.inputs,
                taps: self.taps,
                step: self.dilation * self.inputs,
                columns: self.columns,
                bias,
                adds: adds.map(|a| a.map(|a| &a[span.clone()])),
            };
            match &self.weights {
                Packed::Panels(w) => {
                    dispatch!(tier, plain: plain::panels(&block, w, y), avx2: super::avx2::panels(&block, w, y))
                }
                Packed::Rows(w) => {
                    dispatch!(tier, plain: plain::dots(&block, w, y), avx2: super::avx2::dots(&block, w, y))
                }
            }
        }
    }
}

/// Writes the rows of `x` from `from` on, activated, with zeros where it has none.
fn prepare(tier: Tier, x: &ConvInput<'_>, inputs: usize, from: i64, out: &mut [f32]) {
    let (count, have) = ((out.len() / inputs) as i64, (x.rows.len() / inputs) as i64);
    // In rows of `out`.
    let begin = x.first.saturating_sub(from);
    let low = begin.clamp(0, count);
    let high = begin.saturating_add(have).clamp(low, count);
    let (low_at, high_at) = (low as usize * inputs, high as usize * inputs);
    out[..low_at].fill(0.0);
    out[high_at..].fill(0.0);
    if low < high {
        let skip = (low - begin) as usize * inputs;
        let source = &x.rows[skip..skip + high_at - low_at];
        let out = &mut out[low_at..high_at];
        if x.scale == 1.0 && x.slope == 1.0 {
            out.copy_from_slice(source);
        } else {
            let (scale, slope) = (x.scale, x.slope);
            dispatch!(tier, plain: activate(source, out, scale, slope), avx2: wide::activate(source, out, scale, slope))
        }
    }
}

#[inline(always)]
fn activate(x: &[f32], y: &mut [f32], scale: f32, slope: f32) {
    debug_assert_eq!(x.len(), y.len());
    for (x, y) in x.iter().zip(y) {
        let v = x * scale;
        *y = if v > 0.0 { v } else { v * slope };
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    /// The same code, compiled for wider registers: equal bit for bit.
    #[target_feature(enable = "avx2,fma")]
    pub fn activate(x: &[f32], y: &mut [f32], scale: f32, slope: f32) {
        super::activate(x, y, scale, slope)
    }
}
