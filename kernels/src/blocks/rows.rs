//! Vectors rounded to blocks of 8-bit integers: the right side of a product.
//!
//! Up to four vectors that are multiplied at once lie interleaved, block by block, so that a kernel walks one array.

use super::format::BLOCK;
use crate::Tier;

/// Vectors that one pass of a kernel multiplies.
pub(super) const GROUP: usize = 4;

/// A block of 32 values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Block {
    /// What a step of the integers is worth, and that times the sum of the integers.
    pub scale: [f32; 2],
    /// From -127 to 127.
    pub quants: [i8; BLOCK],
}

/// Magnitudes of a whole block below this become 0, so that neither the scale nor its inverse leaves the range of f32.
const TINY: f32 = 1.504_632_8e-36; // 2^-119

/// Vectors of one length, each block rounded to steps of a 127th of its largest magnitude. A buffer: filled again and
/// again without allocating once it is large enough.
///
/// Error of a value: at most half such a step (1/254 of the block's largest magnitude); 2^-119 in blocks where all are
/// below that. A block that holds a value that is not finite has the scale NaN and zeros: every product with it is NaN.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    pub(super) blocks: Vec<Block>,
    rows: usize,
    columns: usize,
}

impl Rows {
    /// No vectors yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the vectors of `x`, which lie one after the other, `columns` values each.
    ///
    /// # Panics
    /// If `columns` is no multiple of [`BLOCK`], or `x` is not a whole number of vectors.
    pub fn fill(&mut self, x: &[f32], columns: usize) {
        self.fill_on(Tier::current(), x, columns)
    }

    /// As [`Rows::fill`], on a tier of the caller's choice; the result is the same, bit for bit.
    pub fn fill_on(&mut self, tier: Tier, x: &[f32], columns: usize) {
        assert!(columns.is_multiple_of(BLOCK), "a vector is made of whole blocks");
        self.rows = x.len().checked_div(columns).unwrap_or(0);
        self.columns = columns;
        assert_eq!(x.len(), self.rows * columns, "whole vectors");
        self.blocks.clear();
        self.blocks.resize(x.len() / BLOCK, Block::default());
        let per_row = columns / BLOCK;
        if per_row == 0 {
            return;
        }
        let groups = self.blocks.chunks_mut(GROUP * per_row);
        for (group, x) in groups.zip(x.chunks(GROUP * columns)) {
            let n = x.len() / columns;
            for (r, x) in x.chunks_exact(columns).enumerate() {
                let out = group[r..].iter_mut().step_by(n);
                dispatch!(tier, plain: plain(x, out), avx2: avx2::quantize(x, out))
            }
        }
    }

    /// Number of vectors.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Values of each.
    pub fn columns(&self) -> usize {
        self.columns
    }
}

fn plain<'a>(x: &[f32], out: impl Iterator<Item = &'a mut Block>) {
    for (x, out) in x.as_chunks::<BLOCK>().0.iter().zip(out) {
        let largest = x.iter().fold(0.0f32, |a, v| if a.is_nan() || v.is_nan() { f32::NAN } else { a.max(v.abs()) });
        *out = match scale(largest) {
            Ok((step, inverse)) => {
                let quants = x.map(|v| (v * inverse).round_ties_even() as i8);
                let sum: i32 = quants.iter().map(|&q| i32::from(q)).sum();
                Block { scale: [step, step * sum as f32], quants }
            }
            Err(block) => block,
        };
    }
}

/// The step and its inverse for a block of this largest magnitude, or the block itself where it is a special one.
#[inline]
fn scale(largest: f32) -> Result<(f32, f32), Block> {
    if !largest.is_finite() {
        Err(Block { scale: [f32::NAN; 2], quants: [0; BLOCK] })
    } else if largest < TINY {
        Err(Block::default())
    } else {
        Ok((largest / 127.0, 127.0 / largest))
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{BLOCK, Block, scale};
    use crate::x86::{abs, lanes, load, store256};

    #[target_feature(enable = "avx2,fma,f16c")]
    pub fn quantize<'a>(x: &[f32], out: impl Iterator<Item = &'a mut Block>) {
        for (x, out) in x.as_chunks::<BLOCK>().0.iter().zip(out) {
            let x: [__m256; 4] = std::array::from_fn(|i| load(&x.as_chunks::<8>().0[i]));
            let max = |a, b| _mm256_max_ps(a, b);
            let largest = lanes(max(max(abs(x[0]), abs(x[1])), max(abs(x[2]), abs(x[3]))));
            let largest = largest.iter().fold(0.0f32, |a, v| a.max(*v));
            // A maximum may drop what is no number; x - x is 0 for numbers and nothing else.
            let odd = x.map(|x| _mm256_sub_ps(x, x));
            let odd = _mm256_or_ps(_mm256_or_ps(odd[0], odd[1]), _mm256_or_ps(odd[2], odd[3]));
            let numbers = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_UNORD_Q>(odd, odd)) == 0;
            *out = match scale(if numbers { largest } else { f32::NAN }) {
                Ok((step, inverse)) => {
                    let (quants, sum) = round(x, inverse);
                    Block { scale: [step, step * sum as f32], quants }
                }
                Err(block) => block,
            };
        }
    }

    /// The rounded integers and their sum.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    fn round(x: [__m256; 4], inverse: f32) -> ([i8; BLOCK], i32) {
        // The conversion rounds half to even, as the control register says by default.
        let q = x.map(|x| _mm256_cvtps_epi32(_mm256_mul_ps(x, _mm256_set1_ps(inverse))));
        let sum = _mm256_add_epi32(_mm256_add_epi32(q[0], q[1]), _mm256_add_epi32(q[2], q[3]));
        let sum = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
        let sum = _mm_add_epi32(sum, _mm_unpackhi_epi64(sum, sum));
        let sum = _mm_cvtsi128_si32(sum).wrapping_add(_mm_extract_epi32::<1>(sum));
        // Packing works within halves of 128 bits; the permutation puts the groups of four back in order.
        let bytes = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
        let bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        let mut out = [0i8; BLOCK];
        store256(&mut out, bytes);
        (out, sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::{Noise, tame, wild};

    fn filled(tier: Tier, x: &[f32], columns: usize) -> Rows {
        let mut rows = Rows::new();
        rows.fill_on(tier, x, columns);
        rows
    }

    #[test]
    fn tiers_are_equal_bit_for_bit() {
        for columns in [32, 64, 576] {
            for n in 0..9 {
                for seed in 0..4 {
                    let x = if seed == 0 { wild(n * columns, 7) } else { tame(n * columns, seed) };
                    let want = filled(Tier::PLAIN, &x, columns);
                    for &tier in Tier::available() {
                        let got = filled(tier, &x, columns);
                        assert_eq!((got.rows(), got.columns()), (n, columns));
                        for (a, b) in got.blocks.iter().zip(&want.blocks) {
                            assert_eq!(a.quants, b.quants, "{tier}");
                            let same = |a: f32, b: f32| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
                            assert!(same(a.scale[0], b.scale[0]) && same(a.scale[1], b.scale[1]), "{tier}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn keeps_the_stated_error_and_its_place() {
        let mut noise = Noise::new(1);
        for power in [-130, -110, -30, 0, 30, 126] {
            let (columns, n) = (96, 7);
            let x: Vec<f32> = (0..n * columns).map(|_| noise.sample() * 2f32.powi(power)).collect();
            for &tier in Tier::available() {
                let rows = filled(tier, &x, columns);
                for (i, x) in x.as_chunks::<BLOCK>().0.iter().enumerate() {
                    let (row, block) = (i / 3, i % 3);
                    let (first, wide) = (row / GROUP * GROUP, GROUP.min(n - row / GROUP * GROUP));
                    let got = &rows.blocks[first * 3 + block * wide + row % GROUP];
                    let largest = x.iter().fold(0.0f32, |a, v| a.max(v.abs()));
                    let bound = (f64::from(largest) / 254.0 * 1.000_01).max(2f64.powi(-119));
                    for (v, q) in x.iter().zip(got.quants) {
                        let back = f64::from(got.scale[0]) * f64::from(q);
                        assert!((f64::from(*v) - back).abs() <= bound, "{tier} 2^{power}: {v} {back}");
                        assert!(q >= -127);
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_not_finite_spoils_its_block_and_no_other() {
        for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for at in 32..64 {
                let mut x = [0.5f32; 96];
                x[at] = bad;
                for &tier in Tier::available() {
                    let rows = filled(tier, &x, 96);
                    assert!(rows.blocks[1].scale.iter().all(|s| s.is_nan()), "{tier} {bad} {at}");
                    assert_eq!(rows.blocks[0].quants, [127; 32]);
                    assert_eq!(rows.blocks[2].scale[1], rows.blocks[2].scale[0] * 127.0 * 32.0);
                }
            }
        }
    }
}
