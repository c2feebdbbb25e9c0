//! A row of blocks as f32.

use super::format::{BLOCK, Format, Q4_0, Q4_1, Q8_0, bytes, half_at, nibbles, spread};
use super::half::from_half;
use crate::Tier;

/// Expands one row; `row` holds the blocks of `out.len()` weights. Exact on every tier: the product of a scale and a
/// small integer fits an f32, so only the addition of `Q4_1` rounds, once.
///
/// # Panics
/// If `out.len()` is no multiple of [`BLOCK`] or `row` has another length than that asks for.
pub fn dequantize_row(format: Format, row: &[u8], out: &mut [f32]) {
    Tier::current().dequantize_row(format, row, out)
}

impl Tier {
    /// [`dequantize_row`] on this tier. Any number of whole rows that follow each other may be given as one.
    pub fn dequantize_row(self, format: Format, row: &[u8], out: &mut [f32]) {
        assert_eq!(row.len(), format.row_bytes(out.len()), "the blocks of every output and no more");
        dispatch!(self, plain: plain(format, row, out), avx2: avx2::dequantize(format, row, out))
    }
}

fn plain(format: Format, row: &[u8], out: &mut [f32]) {
    let out = out.as_chunks_mut::<BLOCK>().0.iter_mut();
    match format {
        Format::Q4_0 => row.as_chunks::<Q4_0>().0.iter().zip(out).for_each(|(b, out)| {
            let d = from_half(half_at::<0, _>(b));
            *out = spread(nibbles(b)).map(|q| d * (f32::from(q) - 8.0));
        }),
        Format::Q4_1 => row.as_chunks::<Q4_1>().0.iter().zip(out).for_each(|(b, out)| {
            let (d, m) = (from_half(half_at::<0, _>(b)), from_half(half_at::<2, _>(b)));
            *out = spread(nibbles(b)).map(|q| d * f32::from(q) + m);
        }),
        Format::Q8_0 => row.as_chunks::<Q8_0>().0.iter().zip(out).for_each(|(b, out)| {
            let d = from_half(half_at::<0, _>(b));
            *out = bytes(b).map(|q| d * f32::from(q as i8));
        }),
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{
        super::avx2::{half, pair, signed4, signed8, unsigned4},
        BLOCK, Format, Q4_0, Q4_1, Q8_0,
    };
    use crate::x86::store;

    #[target_feature(enable = "avx2,fma,f16c")]
    pub fn dequantize(format: Format, row: &[u8], out: &mut [f32]) {
        debug_assert_eq!(row.len(), format.row_bytes(out.len()));
        let out = out.as_chunks_mut::<BLOCK>().0.iter_mut();
        match format {
            Format::Q4_0 => {
                for (block, out) in row.as_chunks::<Q4_0>().0.iter().zip(out) {
                    expand(signed4(block), _mm256_broadcastss_ps(half(block)), _mm256_set1_ps(-0.0), out);
                }
            }
            Format::Q4_1 => {
                for (block, out) in row.as_chunks::<Q4_1>().0.iter().zip(out) {
                    let dm = pair(block);
                    let (d, m) = (_mm256_broadcastss_ps(dm), _mm256_broadcastss_ps(_mm_movehdup_ps(dm)));
                    expand(unsigned4(block), d, m, out);
                }
            }
            Format::Q8_0 => {
                for (block, out) in row.as_chunks::<Q8_0>().0.iter().zip(out) {
                    expand(signed8(block), _mm256_broadcastss_ps(half(block)), _mm256_set1_ps(-0.0), out);
                }
            }
        }
    }

    /// `d * q + m` of 32 signed bytes; an `m` of -0 changes nothing.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    fn expand(q: __m256i, d: __m256, m: __m256, out: &mut [f32; BLOCK]) {
        let (low, high) = (_mm256_castsi256_si128(q), _mm256_extracti128_si256::<1>(q));
        let eights = [low, _mm_unpackhi_epi64(low, low), high, _mm_unpackhi_epi64(high, high)];
        for (out, q) in out.as_chunks_mut::<8>().0.iter_mut().zip(eights) {
            store(out, _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q)), d), m));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::{Noise, assert_bits};

    #[test]
    fn blocks_written_by_hand() {
        let mut q4_0 = vec![0x00, 0x38]; // 0.5
        q4_0.extend((0..16).map(|i| i | (15 - i) << 4));
        let mut q4_1 = vec![0x00, 0x38, 0x00, 0xc0]; // 0.5, -2
        q4_1.extend((0..16).map(|i| i | (15 - i) << 4));
        let mut q8_0 = vec![0x00, 0x38];
        q8_0.extend((0..32).map(|i| (i * 8 - 128) as i8 as u8));
        for &tier in Tier::available() {
            let mut out = [0.0; 32];
            tier.dequantize_row(Format::Q4_0, &q4_0, &mut out);
            assert_eq!((out[0], out[15], out[16], out[31]), (-4.0, 3.5, 3.5, -4.0), "{tier}");
            tier.dequantize_row(Format::Q4_1, &q4_1, &mut out);
            assert_eq!((out[0], out[15], out[16], out[31]), (-2.0, 5.5, 5.5, -2.0), "{tier}");
            tier.dequantize_row(Format::Q8_0, &q8_0, &mut out);
            assert_eq!((out[0], out[1], out[16], out[31]), (-64.0, -60.0, 0.0, 60.0), "{tier}");
        }
    }

    #[test]
    fn tiers_are_equal_bit_for_bit_on_any_bytes() {
        let mut noise = Noise::new(3);
        for format in Format::ALL {
            for blocks in [0, 1, 2, 3, 18, 48] {
                let row: Vec<u8> = (0..blocks * format.block_bytes()).map(|_| (noise.bits() >> 50) as u8).collect();
                let mut want = vec![0.0; blocks * BLOCK];
                Tier::PLAIN.dequantize_row(format, &row, &mut want);
                for &tier in Tier::available() {
                    let mut got = vec![9.0; blocks * BLOCK];
                    tier.dequantize_row(format, &row, &mut got);
                    // Which not-a-number it is does not matter.
                    let calm = |v: &[f32]| v.iter().map(|x| if x.is_nan() { f32::NAN } else { *x }).collect::<Vec<_>>();
                    assert_bits(&calm(&got), &calm(&want), tier.name());
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "the blocks of every output")]
    fn a_row_that_is_too_short_is_refused() {
        dequantize_row(Format::Q8_0, &[0; 34], &mut [0.0; 64]);
    }
}
