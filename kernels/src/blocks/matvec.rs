//! The product of a matrix of blocks with a few vectors.

use super::format::{BLOCK, Format, Q4_0, Q4_1, Q8_0, bytes, half_at, nibbles, spread};
use super::half::from_half;
use super::rows::{Block, GROUP, Rows};
use crate::Tier;

/// `out[r * n + i] = sum over c of w[i, c] * x[r, c]`: each vector of `x` with each of the `n` rows of `w`, which lie
/// one after the other. What a vector gives does not depend on the other vectors.
///
/// Error, against an exact sum over the rounded vectors ([`Rows`] states what the rounding costs):
/// `(columns / 32 + 3) * 2^-24` on the plain tier, `(columns / 64 + 12) * 2^-24` with AVX2, times the sum over all
/// blocks of `|scale of w * scale of x|` times the magnitudes of the integer products, added up in fours; for `Q4_1`
/// plus `|offset * sum of the block of x|`. Within a block the integers are exact. What overflows f32 becomes infinite,
/// as in any sum.
///
/// # Panics
/// If `out.len()` is no multiple of the number of vectors, or `w` has not the bytes of that many rows.
pub fn matvec(format: Format, w: &[u8], x: &Rows, out: &mut [f32]) {
    Tier::current().matvec(format, w, x, out)
}

impl Tier {
    /// [`matvec`](crate::blocks::matvec()) on this tier.
    pub fn matvec(self, format: Format, w: &[u8], x: &Rows, out: &mut [f32]) {
        let n = out.len().checked_div(x.rows()).unwrap_or(0);
        assert_eq!(out.len(), n * x.rows(), "a whole number of outputs for each vector");
        assert_eq!(w.len(), n * format.row_bytes(x.columns()), "the rows of every output and no more");
        if w.is_empty() {
            return out.fill(0.0);
        }
        match format {
            Format::Q4_0 => dispatch!(self, plain: plain::<Q4_0>(w, x, n, out, q4_0), avx2: avx2::q4_0(w, x, n, out)),
            Format::Q4_1 => dispatch!(self, plain: plain::<Q4_1>(w, x, n, out, q4_1), avx2: avx2::q4_1(w, x, n, out)),
            Format::Q8_0 => dispatch!(self, plain: plain::<Q8_0>(w, x, n, out, q8_0), avx2: avx2::q8_0(w, x, n, out)),
        }
    }
}

#[cfg(target_arch = "x86_64")]
use super::avx2;

fn plain<const N: usize>(w: &[u8], x: &Rows, n: usize, out: &mut [f32], product: fn(&[u8; N], &Block) -> f32) {
    let (w, per_row) = (w.as_chunks::<N>().0, x.columns() / BLOCK);
    for (group, out) in x.blocks.chunks(GROUP * per_row).zip(out.chunks_mut(GROUP * n)) {
        let wide = group.len() / per_row;
        for (i, row) in w.chunks_exact(per_row).enumerate() {
            for r in 0..wide {
                let x = group[r..].iter().step_by(wide);
                out[r * n + i] = row.iter().zip(x).fold(0.0, |sum, (w, x)| sum + product(w, x));
            }
        }
    }
}

fn q4_0(w: &[u8; Q4_0], x: &Block) -> f32 {
    let sum = integers(spread(nibbles(w)).map(|q| q as i8 - 8), x);
    from_half(half_at::<0, _>(w)) * x.scale[0] * sum as f32
}

fn q4_1(w: &[u8; Q4_1], x: &Block) -> f32 {
    let sum = integers(spread(nibbles(w)).map(|q| q as i8), x);
    from_half(half_at::<0, _>(w)) * x.scale[0] * sum as f32 + from_half(half_at::<2, _>(w)) * x.scale[1]
}

fn q8_0(w: &[u8; Q8_0], x: &Block) -> f32 {
    let sum = integers(bytes(w).map(|q| q as i8), x);
    from_half(half_at::<0, _>(w)) * x.scale[0] * sum as f32
}

/// At most 32 * 128 * 127 in magnitude, which an f32 holds exactly.
fn integers(w: [i8; BLOCK], x: &Block) -> i32 {
    w.iter().zip(&x.quants).map(|(&w, &x)| i32::from(w) * i32::from(x)).sum()
}

#[cfg(test)]
#[path = "matvec_tests.rs"]
mod tests;
