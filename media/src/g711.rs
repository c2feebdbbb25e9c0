//! ITU-T G.711: mu-law and A-law, eight bits for one 16-bit sample.
//!
//! Values are on the 16-bit scale (mu-law has 14 bits, A-law 13, shifted up). Both encoders truncate the magnitude within
//! a step and both decoders give its middle, so decode(encode(x)) never falls as x rises. Error: at most 512 for A-law,
//! at most 516 for mu-law where |x| <= 32124. Every input is defined, -32768 too.

/// The mu-law code of silence (+0).
pub const MULAW_SILENCE: u8 = 0xFF;
/// The A-law code of silence (+8: A-law has no zero).
pub const ALAW_SILENCE: u8 = 0xD5;

/// Mu-law magnitudes carry this offset, so that every segment starts at a power of two.
const BIAS: u16 = 132;
/// Largest magnitude whose biased form has 15 bits.
const MULAW_CLIP: u16 = 32_635;

/// One mu-law code to its 16-bit value, -32124 to 32124.
pub const fn mulaw_decode(code: u8) -> i16 {
    let code = !code;
    let segment = (code >> 4) & 7;
    let step = (code & 0x0F) as u16;
    // (16 + step) * 8 is the lower edge of the step, 4 the way to its middle; both grow with the segment.
    let magnitude = ((((16 + step) * 8 + 4) << segment) - BIAS) as i16;
    if code & 0x80 != 0 { -magnitude } else { magnitude }
}

/// One 16-bit value to its mu-law code. Zero gives 0xFF.
pub const fn mulaw_encode(value: i16) -> u8 {
    let clipped = if value.unsigned_abs() < MULAW_CLIP { value.unsigned_abs() } else { MULAW_CLIP };
    let biased = clipped + BIAS;
    // `biased` is 132..=32767: its highest bit is 7..=14.
    let segment = (8 - biased.leading_zeros()) as u8;
    let step = ((biased >> (segment + 3)) & 0x0F) as u8;
    let sign = if value < 0 { 0x80 } else { 0 };
    !(sign | segment << 4 | step)
}

/// One A-law code to its 16-bit value, -32256 to 32256.
pub const fn alaw_decode(code: u8) -> i16 {
    let code = code ^ 0x55;
    let segment = (code >> 4) & 7;
    let step = (code & 0x0F) as u16;
    let magnitude = if segment == 0 { step * 16 + 8 } else { ((16 + step) * 16 + 8) << (segment - 1) } as i16;
    if code & 0x80 != 0 { magnitude } else { -magnitude }
}

/// One 16-bit value to its A-law code. Zero gives 0xD5.
pub const fn alaw_encode(value: i16) -> u8 {
    let magnitude = if value == i16::MIN { i16::MAX as u16 } else { value.unsigned_abs() };
    // Two linear segments below 512, then one for each power of two.
    let (segment, step) = if magnitude < 256 {
        (0, (magnitude >> 4) as u8)
    } else {
        let segment = (8 - magnitude.leading_zeros()) as u8;
        (segment, ((magnitude >> (segment + 3)) & 0x0F) as u8)
    };
    let sign = if value < 0 { 0 } else { 0x80 };
    (sign | segment << 4 | step) ^ 0x55
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_its_own_round_trip_except_negative_zero() {
        for code in 0..=255u8 {
            let want = if code == 0x7F { 0xFF } else { code };
            assert_eq!(mulaw_encode(mulaw_decode(code)), want, "mu-law {code:02X}");
            assert_eq!(alaw_encode(alaw_decode(code)), code, "A-law {code:02X}");
        }
    }

    #[test]
    fn the_sweep_of_all_values_rises_and_keeps_the_stated_error() {
        type Law = (fn(i16) -> u8, fn(u8) -> i16, i32, i32);
        let laws: [Law; 2] =
            [(mulaw_encode, mulaw_decode, 516, 32_124), (alaw_encode, alaw_decode, 512, i32::from(i16::MAX) + 1)];
        for (encode, decode, error, range) in laws {
            let mut last = i16::MIN;
            for x in i16::MIN..=i16::MAX {
                let y = decode(encode(x));
                assert!(y >= last, "falls at {x}: {last} then {y}");
                last = y;
                if i32::from(x).abs() <= range {
                    assert!((i32::from(x) - i32::from(y)).abs() <= error, "{x} gives {y}");
                }
            }
        }
    }

    #[test]
    fn the_ends_and_silence_are_as_the_standard_says() {
        assert_eq!([0x00, 0x80, 0x7F, 0xFF].map(mulaw_decode), [-32_124, 32_124, 0, 0]);
        assert_eq!([0xD5, 0x55, 0xAA, 0x2A].map(alaw_decode), [8, -8, 32_256, -32_256]);
        assert_eq!((mulaw_encode(0), alaw_encode(0)), (MULAW_SILENCE, ALAW_SILENCE));
        assert_eq!((mulaw_encode(i16::MIN), alaw_encode(i16::MIN)), (0x00, 0x2A));
    }
}
