//! Conversion of 16-bit floats (IEEE 754 binary16), in plain integers.
//!
//! Exact; not fast, which only the plain tier and the packing of weights see.

/// The value of a 16-bit float.
pub(super) fn from_half(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let (exponent, mantissa) = (u32::from(half >> 10 & 31), u32::from(half & 0x3ff));
    match exponent {
        // A multiple of 2^-24, which an f32 holds exactly.
        0 => f32::from_bits(sign | (mantissa as f32 / (1 << 24) as f32).to_bits()),
        31 => f32::from_bits(sign | 0x7f80_0000 | mantissa << 13),
        e => f32::from_bits(sign | (e + 112) << 23 | mantissa << 13),
    }
}

/// The largest 16-bit float that is not above a positive number; infinity from 2^16 on.
pub(super) fn below(x: f32) -> u16 {
    debug_assert!(x >= 0.0);
    let (exponent, mantissa) = ((x.to_bits() >> 23) as i32 - 127, x.to_bits() & 0x7f_ffff);
    match exponent {
        16.. => 0x7c00,
        -14..16 => ((exponent + 15) as u16) << 10 | (mantissa >> 13) as u16,
        -24..-14 => ((mantissa | 0x80_0000) >> (-1 - exponent)) as u16,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let known = [
            (0x0000, 0.0),
            (0x0001, 2f32.powi(-24)),
            (0x03ff, 1023.0 / 2f32.powi(24)),
            (0x0400, 2f32.powi(-14)),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x7bff, 65504.0),
            (0x7c00, f32::INFINITY),
            (0xfc00, f32::NEG_INFINITY),
        ];
        for (half, value) in known {
            assert_eq!(from_half(half), value, "{half:#x}");
        }
        assert!(from_half(0x7e00).is_nan() && from_half(0xfc01).is_nan());
        assert!(from_half(0x8000).is_sign_negative());
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn every_half_is_what_the_processor_says() {
        use std::arch::x86_64::*;
        #[target_feature(enable = "f16c")]
        fn hardware(half: u16) -> f32 {
            _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half.into())))
        }
        if !is_x86_feature_detected!("f16c") {
            println!("skipped: this processor has no F16C");
            return;
        }
        for half in 0..=u16::MAX {
            // SAFETY: the feature was just found.
            let want = unsafe { hardware(half) };
            let got = from_half(half);
            assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(), "{half:#x}");
        }
    }

    #[test]
    fn below_is_the_next_lower_or_equal_one() {
        for half in 0..0x7c00u16 {
            let value = from_half(half);
            assert_eq!(below(value), half);
            let next = from_half(half + 1);
            if next.is_finite() {
                assert_eq!(below((value + next) / 2.0), half);
                assert_eq!(below(f32::from_bits(next.to_bits() - 1)), half);
            }
        }
        assert_eq!(below(65535.0), 0x7bff);
        assert_eq!(below(65536.0), 0x7c00);
        assert_eq!(below(f32::INFINITY), 0x7c00);
    }
}
