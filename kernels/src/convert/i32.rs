//! 32-bit samples: full scale 2147483648.

use crate::{Tally, Tier};

const SCALE: f32 = 1.0 / 2_147_483_648.0;

/// `dst[i] = src[i] / 2^31`, rounded once to the nearest `f32`. Exact against the reference.
///
/// # Panics
/// If the lengths differ.
pub fn i32_to_f32(src: &[i32], dst: &mut [f32]) {
    Tier::current().i32_to_f32(src, dst)
}

/// `dst[i] = round(src[i] * 2^31)`, saturated. Exact.
///
/// # Panics
/// If the lengths differ.
pub fn f32_to_i32(src: &[f32], dst: &mut [i32]) -> Tally {
    Tier::current().f32_to_i32(src, dst)
}

impl Tier {
    /// [`i32_to_f32`](crate::i32_to_f32()) on this tier.
    pub fn i32_to_f32(self, src: &[i32], dst: &mut [f32]) {
        assert_eq!(src.len(), dst.len(), "one output sample for each input sample");
        dispatch!(self, plain: decode(src, dst), avx2: avx2::decode(src, dst))
    }

    /// [`f32_to_i32`](crate::f32_to_i32()) on this tier.
    pub fn f32_to_i32(self, src: &[f32], dst: &mut [i32]) -> Tally {
        assert_eq!(src.len(), dst.len(), "one output sample for each input sample");
        dispatch!(self, plain: encode(src, dst), avx2: avx2::encode(src, dst))
    }
}

fn decode(src: &[i32], dst: &mut [f32]) {
    for (d, &s) in dst.iter_mut().zip(src) {
        *d = s as f32 * SCALE;
    }
}

fn encode(src: &[f32], dst: &mut [i32]) -> Tally {
    let mut tally = Tally::default();
    for (d, &x) in dst.iter_mut().zip(src) {
        let rounded = (x * 2_147_483_648.0).round_ties_even();
        if rounded.is_nan() {
            tally.nan += 1;
        } else if !(-2_147_483_648.0..2_147_483_648.0).contains(&rounded) {
            tally.clipped += 1;
        }
        // A cast from `f32` saturates and makes 0 of what is not a number.
        *d = rounded as i32;
    }
    tally
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{SCALE, Tally};
    use crate::x86::{Count, load, load_i32, store, store_i32};

    #[target_feature(enable = "avx2,fma")]
    pub fn decode(src: &[i32], dst: &mut [f32]) {
        debug_assert_eq!(src.len(), dst.len());
        let (body, tail) = src.as_chunks::<8>();
        let (out, out_tail) = dst.as_chunks_mut::<8>();
        let scale = _mm256_set1_ps(SCALE);
        for (d, s) in out.iter_mut().zip(body) {
            store(d, _mm256_mul_ps(_mm256_cvtepi32_ps(load_i32(s)), scale));
        }
        super::decode(tail, out_tail);
    }

    /// The conversion instruction gives `i32::MIN` for everything out of range; only the upper end must be put right.
    #[target_feature(enable = "avx2,fma")]
    pub fn encode(src: &[f32], dst: &mut [i32]) -> Tally {
        debug_assert_eq!(src.len(), dst.len());
        let (body, tail) = src.as_chunks::<8>();
        let (out, out_tail) = dst.as_chunks_mut::<8>();
        let (full, max) = (_mm256_set1_ps(2_147_483_648.0), _mm256_set1_epi32(i32::MAX));
        let mut count = Count::new();
        for (d, s) in out.iter_mut().zip(body) {
            let x = load(s);
            let nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x);
            let scaled = _mm256_andnot_ps(nan, _mm256_mul_ps(x, full));
            let above = _mm256_cmp_ps::<_CMP_GE_OQ>(scaled, full);
            let below = _mm256_cmp_ps::<_CMP_LT_OQ>(scaled, _mm256_set1_ps(-2_147_483_648.0));
            count.nan(nan);
            count.clipped(_mm256_or_ps(above, below));
            store_i32(d, _mm256_blendv_epi8(_mm256_cvtps_epi32(scaled), max, _mm256_castps_si256(above)));
        }
        count.tally() + super::encode(tail, out_tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::{Noise, assert_bits, sizes, wild};

    #[test]
    fn values_that_an_f32_holds_survive_and_the_ends_saturate() {
        let codes = [i32::MIN, -1, 0, 1, 1 << 30, 0x7FFF_FF80, -0x7FFF_FF80, 256, 5];
        for &tier in Tier::available() {
            let mut floats = [0.0; 9];
            tier.i32_to_f32(&codes, &mut floats);
            let mut back = [0; 9];
            assert!(tier.f32_to_i32(&floats, &mut back).is_clean());
            assert_eq!(back, codes, "{tier}");
            let src = [1.0, -1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.1, -1.1, -0.0, 0.25];
            assert_eq!(tier.f32_to_i32(&src, &mut back), Tally { nan: 1, clipped: 5 });
            assert_eq!(back, [i32::MAX, i32::MIN, 0, i32::MAX, i32::MIN, i32::MAX, i32::MIN, 0, 1 << 29]);
        }
    }

    #[test]
    fn all_tiers_agree_on_wild_input_of_every_size() {
        for n in sizes() {
            let src = wild(n, n as u64 + 3000);
            let mut want = vec![0; n];
            let tally = Tier::PLAIN.f32_to_i32(&src, &mut want);
            let mut noise = Noise::new(n as u64);
            let codes: Vec<i32> = (0..n).map(|_| noise.bits() as i32).collect();
            let mut floats = vec![0.0; n];
            Tier::PLAIN.i32_to_f32(&codes, &mut floats);
            for &tier in Tier::available() {
                let mut got = vec![0; n];
                assert_eq!(tier.f32_to_i32(&src, &mut got), tally, "{tier} {n}");
                assert_eq!(got, want, "{tier} {n}");
                let mut b = vec![0.0; n];
                tier.i32_to_f32(&codes, &mut b);
                assert_bits(&b, &floats, tier.name());
            }
        }
    }
}
