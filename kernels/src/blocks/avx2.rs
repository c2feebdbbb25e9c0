//! Products of blocks with AVX2: bytes are multiplied and added in pairs, then in fours, then scaled per block.
//!
//! No step can saturate: a pair of products is at most 2 * 128 * 127 in magnitude, below 2^15. All memory is reached
//! through arrays of the exact width.

use std::arch::x86_64::*;

use super::format::{BLOCK, Q4_0, Q4_1, Q8_0, bytes, half_at, nibbles};
use super::rows::{Block, GROUP, Rows};
use crate::x86::{lanes, load128, load256};

/// Rows of the matrix that stay in the first cache while all vectors pass.
const TILE: usize = 16;

/// `d` in the lowest lane; zeros above.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn half<const N: usize>(block: &[u8; N]) -> __m128 {
    _mm_cvtph_ps(_mm_cvtsi32_si128(half_at::<0, N>(block).into()))
}

/// `d` and `m` in the lowest lanes; zeros above.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn pair(block: &[u8; Q4_1]) -> __m128 {
    let both = u32::from(half_at::<2, Q4_1>(block)) << 16 | u32::from(half_at::<0, Q4_1>(block));
    _mm_cvtph_ps(_mm_cvtsi32_si128(both as i32))
}

/// Integers from 0 to 15.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn unsigned4<const N: usize>(block: &[u8; N]) -> __m256i {
    let low = load128(nibbles(block));
    let both = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), _mm_srli_epi16::<4>(low));
    _mm256_and_si256(both, _mm256_set1_epi8(15))
}

/// Integers from -8 to 7.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn signed4(block: &[u8; Q4_0]) -> __m256i {
    _mm256_sub_epi8(unsigned4(block), _mm256_set1_epi8(8))
}

/// Integers from -128 to 127.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn signed8(block: &[u8; Q8_0]) -> __m256i {
    load256(bytes(block))
}

/// The first factors of byte products: magnitudes, and the signs to give to the second factors.
struct Factors {
    magnitude: __m256i,
    sign: __m256i,
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn signed(w: __m256i) -> Factors {
    Factors { magnitude: _mm256_abs_epi8(w), sign: w }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn with_signed(w: &Factors, x: &Block) -> __m256i {
    // The second factors are never -128, so their signs can be turned.
    _mm256_maddubs_epi16(w.magnitude, _mm256_sign_epi8(load256(&x.quants), w.sign))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn with_unsigned(w: &__m256i, x: &Block) -> __m256i {
    _mm256_maddubs_epi16(*w, load256(&x.quants))
}

/// `scale`, `scale * sum` and zeros.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn scales(x: &Block) -> __m128 {
    _mm_setr_ps(x.scale[0], x.scale[1], 0.0, 0.0)
}

/// The products of all rows of a matrix of blocks with all vectors.
macro_rules! product {
    ($name:ident, $bytes:ident, $factors:expr, $scale:ident, $multiply:ident, offset: $offset:literal) => {
        #[target_feature(enable = "avx2,fma,f16c")]
        pub(super) fn $name(w: &[u8], x: &Rows, n: usize, out: &mut [f32]) {
            let per_row = x.columns() / BLOCK;
            let w = w.as_chunks::<$bytes>().0;
            debug_assert!(per_row > 0 && w.len() == n * per_row && out.len() == n * x.rows());
            for (tile, w) in w.chunks(TILE * per_row).enumerate() {
                for (group, out) in x.blocks.chunks(GROUP * per_row).zip(out.chunks_mut(GROUP * n)) {
                    let first = tile * TILE;
                    match group.len() / per_row {
                        1 => rows::<1>(w, group, per_row, n, first, out),
                        2 => rows::<2>(w, group, per_row, n, first, out),
                        3 => rows::<3>(w, group, per_row, n, first, out),
                        _ => rows::<4>(w, group, per_row, n, first, out),
                    }
                }
            }

            /// `M` vectors with a tile of rows, the outputs from `first` on.
            #[target_feature(enable = "avx2,fma,f16c")]
            fn rows<const M: usize>(
                w: &[[u8; $bytes]],
                x: &[Block],
                per_row: usize,
                n: usize,
                first: usize,
                out: &mut [f32],
            ) {
                let x = x.as_chunks::<M>().0;
                debug_assert!(x.len() == per_row && out.len() == M * n);
                for (i, row) in w.chunks_exact(per_row).enumerate() {
                    let sums = one::<M>(row, x);
                    for (r, sum) in sums.into_iter().enumerate() {
                        out[r * n + first + i] = sum;
                    }
                }
            }

            /// `M` vectors with one row. Two sums side by side per vector hide the latency of adding.
            #[inline]
            #[target_feature(enable = "avx2,fma,f16c")]
            fn one<const M: usize>(w: &[[u8; $bytes]], x: &[[Block; M]]) -> [f32; M] {
                let mut even = [_mm256_setzero_ps(); M];
                let mut odd = [_mm256_setzero_ps(); M];
                let mut offset = [_mm_setzero_ps(); M];
                let (w, w_last) = w.as_chunks::<2>();
                let (x, x_last) = x.as_chunks::<2>();
                for (w, x) in w.iter().zip(x) {
                    block(&w[0], &x[0], &mut even, &mut offset);
                    block(&w[1], &x[1], &mut odd, &mut offset);
                }
                if let ([w], [x]) = (w_last, x_last) {
                    block(w, x, &mut even, &mut offset);
                }
                let mut out = [0.0; M];
                for (r, out) in out.iter_mut().enumerate() {
                    let [a, b, c, d, e, f, g, h] = lanes(_mm256_add_ps(even[r], odd[r]));
                    *out = ((a + e) + (b + f)) + ((c + g) + (d + h));
                    if $offset {
                        *out += _mm_cvtss_f32(_mm_movehdup_ps(offset[r]));
                    }
                }
                out
            }

            /// One block of a row with a block of each vector; the second lane of `offset` sums `m * (scale * sum)`.
            #[inline]
            #[target_feature(enable = "avx2,fma,f16c")]
            fn block<const M: usize>(
                w: &[u8; $bytes],
                x: &[Block; M],
                sum: &mut [__m256; M],
                offset: &mut [__m128; M],
            ) {
                let factors = $factors(w);
                let scale = $scale(w);
                for (r, x) in x.iter().enumerate() {
                    let fours = _mm256_madd_epi16($multiply(&factors, x), _mm256_set1_epi16(1));
                    let scale = _mm_mul_ps(scale, scales(x));
                    sum[r] = _mm256_fmadd_ps(_mm256_broadcastss_ps(scale), _mm256_cvtepi32_ps(fours), sum[r]);
                    if $offset {
                        offset[r] = _mm_add_ps(offset[r], scale);
                    }
                }
            }
        }
    };
}

product!(q4_0, Q4_0, |w| signed(signed4(w)), half, with_signed, offset: false);
product!(q4_1, Q4_1, unsigned4, pair, with_unsigned, offset: true);
product!(q8_0, Q8_0, |w| signed(signed8(w)), half, with_signed, offset: false);
