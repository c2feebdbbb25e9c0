//! Loads, stores and sums for the AVX2 versions, with the `unsafe` of the pointer kept in here.
//!
//! All take arrays of the exact width, so no length can be wrong; callers cut slices with `as_chunks`.

use std::arch::x86_64::*;

use crate::Tally;

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn load(src: &[f32; 8]) -> __m256 {
    // SAFETY: the array has the 32 bytes that are read; `loadu` needs no alignment.
    unsafe { _mm256_loadu_ps(src.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn store(dst: &mut [f32; 8], v: __m256) {
    // SAFETY: the array has the 32 bytes that are written; `storeu` needs no alignment.
    unsafe { _mm256_storeu_ps(dst.as_mut_ptr(), v) }
}

/// Any plain numbers that fill one 128-bit register.
pub(crate) trait Block16 {}
impl Block16 for [u8; 16] {}
impl Block16 for [i16; 8] {}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn load128<B: Block16>(src: &B) -> __m128i {
    debug_assert_eq!(size_of::<B>(), 16);
    // SAFETY: every `Block16` is 16 bytes of plain numbers; `loadu` needs no alignment.
    unsafe { _mm_loadu_si128(std::ptr::from_ref(src).cast()) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn store128<B: Block16>(dst: &mut B, v: __m128i) {
    debug_assert_eq!(size_of::<B>(), 16);
    // SAFETY: every `Block16` is 16 bytes of plain numbers, and every bit pattern is one; no alignment needed.
    unsafe { _mm_storeu_si128(std::ptr::from_mut(dst).cast(), v) }
}

/// Any plain numbers that fill one 256-bit register.
pub(crate) trait Block32 {}
impl Block32 for [u8; 32] {}
impl Block32 for [i8; 32] {}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn load256<B: Block32>(src: &B) -> __m256i {
    debug_assert_eq!(size_of::<B>(), 32);
    // SAFETY: every `Block32` is 32 bytes of plain numbers; `loadu` needs no alignment.
    unsafe { _mm256_loadu_si256(std::ptr::from_ref(src).cast()) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn store256<B: Block32>(dst: &mut B, v: __m256i) {
    debug_assert_eq!(size_of::<B>(), 32);
    // SAFETY: every `Block32` is 32 bytes of plain numbers, and every bit pattern is one; no alignment needed.
    unsafe { _mm256_storeu_si256(std::ptr::from_mut(dst).cast(), v) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn load64(src: &[u8; 8]) -> __m128i {
    _mm_cvtsi64_si128(i64::from_le_bytes(*src))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn store64(dst: &mut [u8; 8], v: __m128i) {
    *dst = _mm_cvtsi128_si64(v).to_le_bytes();
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn load_i32(src: &[i32; 8]) -> __m256i {
    // SAFETY: the array has the 32 bytes that are read; `loadu` needs no alignment.
    unsafe { _mm256_loadu_si256(src.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn store_i32(dst: &mut [i32; 8], v: __m256i) {
    // SAFETY: the array has the 32 bytes that are written; `storeu` needs no alignment.
    unsafe { _mm256_storeu_si256(dst.as_mut_ptr().cast(), v) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn load_f64(src: &[f64; 4]) -> __m256d {
    // SAFETY: the array has the 32 bytes that are read; `loadu` needs no alignment.
    unsafe { _mm256_loadu_pd(src.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn abs(v: __m256) -> __m256 {
    _mm256_andnot_ps(_mm256_set1_ps(-0.0), v)
}

/// Sum of the four lanes, low to high in pairs.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn sum_f64(v: __m256d) -> f64 {
    let pair = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd::<1>(v));
    _mm_cvtsd_f64(_mm_add_sd(pair, _mm_unpackhi_pd(pair, pair)))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn lanes(v: __m256) -> [f32; 8] {
    let mut out = [0.0; 8];
    store(&mut out, v);
    out
}

/// `[0, 1, ... 7] + base`, as floats.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn index8(base: usize) -> __m256 {
    let lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_set1_epi32(base as i32), lane))
}

/// Counts repaired samples per lane; a mask lane is all ones where a sample was repaired.
pub(crate) struct Count {
    nan: __m256i,
    clipped: __m256i,
}

impl Count {
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(crate) fn new() -> Self {
        Self { nan: _mm256_setzero_si256(), clipped: _mm256_setzero_si256() }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(crate) fn nan(&mut self, mask: __m256) {
        self.nan = _mm256_sub_epi32(self.nan, _mm256_castps_si256(mask));
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(crate) fn clipped(&mut self, mask: __m256) {
        self.clipped = _mm256_sub_epi32(self.clipped, _mm256_castps_si256(mask));
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(crate) fn tally(self) -> Tally {
        let sum = |v| {
            let mut out = [0i32; 8];
            store_i32(&mut out, v);
            out.iter().map(|&n| n as u32 as usize).sum()
        };
        Tally { nan: sum(self.nan), clipped: sum(self.clipped) }
    }
}

/// Scales, rounds half to even, turns not-a-number into 0, saturates to `[-limit - 1, limit]`.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn quantize8(x: __m256, limit: f32, count: &mut Count) -> __m256i {
    let nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x);
    count.nan(nan);
    let scaled = _mm256_andnot_ps(nan, _mm256_mul_ps(x, _mm256_set1_ps(limit + 1.0)));
    let rounded = _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(scaled);
    let (low, high) = (_mm256_set1_ps(-limit - 1.0), _mm256_set1_ps(limit));
    count.clipped(_mm256_or_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(rounded, high), _mm256_cmp_ps::<_CMP_LT_OQ>(rounded, low)));
    _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(rounded, low), high))
}

/// Turns not-a-number into 0 and saturates to `[-1, 1]`.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn full_scale8(x: __m256, count: &mut Count) -> __m256 {
    let nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x);
    count.nan(nan);
    let x = _mm256_andnot_ps(nan, x);
    let one = _mm256_set1_ps(1.0);
    count.clipped(_mm256_cmp_ps::<_CMP_GT_OQ>(abs(x), one));
    _mm256_min_ps(_mm256_max_ps(x, _mm256_set1_ps(-1.0)), one)
}
