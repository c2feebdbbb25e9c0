//! 64-bit float samples. Floats have no full scale: only what an `f32` cannot hold is saturated.

use crate::{Tally, Tier};

/// `dst[i] = src[i]`. Exact.
///
/// # Panics
/// If the lengths differ.
pub fn f32_to_f64(src: &[f32], dst: &mut [f64]) {
    assert_eq!(src.len(), dst.len(), "one output sample for each input sample");
    for (d, &x) in dst.iter_mut().zip(src) {
        *d = f64::from(x);
    }
}

/// `dst[i]` is the `f32` nearest to `src[i]`; beyond `f32::MAX` (infinities too) it is `±f32::MAX`, counted as clipped;
/// not a number gives 0, counted. Exact against the reference.
///
/// # Panics
/// If the lengths differ.
pub fn f64_to_f32(src: &[f64], dst: &mut [f32]) -> Tally {
    Tier::current().f64_to_f32(src, dst)
}

impl Tier {
    /// [`f64_to_f32`](crate::f64_to_f32()) on this tier.
    pub fn f64_to_f32(self, src: &[f64], dst: &mut [f32]) -> Tally {
        assert_eq!(src.len(), dst.len(), "one output sample for each input sample");
        dispatch!(self, plain: narrow(src, dst), avx2: avx2::narrow(src, dst))
    }
}

fn narrow(src: &[f64], dst: &mut [f32]) -> Tally {
    let mut tally = Tally::default();
    for (d, &x) in dst.iter_mut().zip(src) {
        let y = x as f32;
        *d = if y.is_nan() {
            tally.nan += 1;
            0.0
        } else if y.is_infinite() {
            tally.clipped += 1;
            f32::MAX.copysign(y)
        } else {
            y
        };
    }
    tally
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::Tally;
    use crate::x86::{Count, abs, load_f64, store};

    #[target_feature(enable = "avx2,fma")]
    pub fn narrow(src: &[f64], dst: &mut [f32]) -> Tally {
        debug_assert_eq!(src.len(), dst.len());
        let (body, tail) = src.as_chunks::<8>();
        let (out, out_tail) = dst.as_chunks_mut::<8>();
        let max = _mm256_set1_ps(f32::MAX);
        let mut count = Count::new();
        for (d, s) in out.iter_mut().zip(body) {
            let (Some(a), Some(b)) = (s.first_chunk::<4>(), s.last_chunk::<4>()) else { break };
            let y = _mm256_set_m128(_mm256_cvtpd_ps(load_f64(b)), _mm256_cvtpd_ps(load_f64(a)));
            let nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(y, y);
            let y = _mm256_andnot_ps(nan, y);
            count.nan(nan);
            count.clipped(_mm256_cmp_ps::<_CMP_GT_OQ>(abs(y), max));
            store(d, _mm256_min_ps(_mm256_max_ps(y, _mm256_set1_ps(-f32::MAX)), max));
        }
        count.tally() + super::narrow(tail, out_tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::{assert_bits, sizes, wild};

    #[test]
    fn what_an_f32_holds_survives_and_the_rest_is_repaired() {
        for &tier in Tier::available() {
            let src = [0.1f32, -3.5, f32::MAX, -0.0, 1e-45, -1.0, 2.0, 0.3, 7.0];
            let mut wide = [0.0; 9];
            f32_to_f64(&src, &mut wide);
            let mut back = [1.0; 9];
            assert!(tier.f64_to_f32(&wide, &mut back).is_clean());
            assert_bits(&back, &src, tier.name());
            let bad = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300, f64::MAX, 0.5, -f64::NAN, f64::NAN];
            assert_eq!(tier.f64_to_f32(&bad, &mut back), Tally { nan: 3, clipped: 5 });
            let m = f32::MAX;
            assert_bits(&back, &[0.0, m, -m, m, -m, m, 0.5, 0.0, 0.0], tier.name());
        }
    }

    #[test]
    fn all_tiers_agree_on_wild_input_of_every_size() {
        for n in sizes() {
            let src: Vec<f64> =
                wild(n, n as u64).iter().zip(wild(n, 77)).map(|(&a, b)| f64::from(a) * f64::from(b)).collect();
            let mut want = vec![0.0; n];
            let tally = Tier::PLAIN.f64_to_f32(&src, &mut want);
            for &tier in Tier::available() {
                let mut got = vec![0.0; n];
                assert_eq!(tier.f64_to_f32(&src, &mut got), tally, "{tier} {n}");
                assert_bits(&got, &want, tier.name());
            }
        }
    }
}
