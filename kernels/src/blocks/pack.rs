//! Weights rounded to blocks, for types that have no kernel.

use super::format::{BLOCK, Format, Q8_0};
use super::half::{below, from_half};

/// Rounds a row to blocks of [`Format::Q8_0`]; `row` has [`Format::row_bytes`]`(x.len())` bytes.
///
/// Error of a weight: at most half the scale of its block, which is the smallest 16-bit float not below a 127th of the
/// block's largest magnitude; so at most 1/253 of that magnitude plus 2^-25. A block with a value
/// that is not finite or beyond 8.3 million gets a scale that is not finite: whatever it is multiplied with is lost,
/// visibly.
///
/// # Panics
/// If `x.len()` is no multiple of [`BLOCK`] or `row` has another length than that asks for.
pub fn pack_row(x: &[f32], row: &mut [u8]) {
    assert_eq!(row.len(), Format::Q8_0.row_bytes(x.len()), "the blocks of every weight and no more");
    for (x, block) in x.as_chunks::<BLOCK>().0.iter().zip(row.as_chunks_mut::<Q8_0>().0) {
        let (scale, quants) = pack(x);
        block[..2].copy_from_slice(&scale.to_le_bytes());
        block[2..].iter_mut().zip(quants).for_each(|(b, q)| *b = q as u8);
    }
}

fn pack(x: &[f32; BLOCK]) -> (u16, [i8; BLOCK]) {
    if x.iter().any(|v| !v.is_finite()) {
        return (0x7e00, [0; BLOCK]);
    }
    let largest = x.iter().fold(0.0f32, |a, v| a.max(v.abs()));
    let mut scale = below(largest / 127.0);
    if from_half(scale) * 127.0 < largest {
        scale += 1;
    }
    if scale == 0 {
        return (0, [0; BLOCK]);
    }
    // Never beyond 127 in magnitude, by the choice of the scale; 0 if that is infinite.
    let inverse = 1.0 / from_half(scale);
    (scale, x.map(|v| (v * inverse).round_ties_even() as i8))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::dequantize_row;
    use super::*;

    fn round_trip(x: &[f32]) -> Vec<f32> {
        let mut row = vec![0; Format::Q8_0.row_bytes(x.len())];
        pack_row(x, &mut row);
        let mut out = vec![0.0; x.len()];
        dequantize_row(Format::Q8_0, &row, &mut out);
        out
    }

    proptest! {
        #[test]
        fn keeps_the_stated_error(x in prop::collection::vec(-1f32..1.0, 32), power in -40i32..22) {
            let x: Vec<f32> = x.iter().map(|v| v * 2f32.powi(power)).collect();
            let largest = x.iter().fold(0.0f32, |a, v| a.max(v.abs()));
            let bound = f64::from(largest) / 253.0 + 2f64.powi(-25);
            for (a, b) in x.iter().zip(round_trip(&x)) {
                prop_assert!(f64::from(a - b).abs() <= bound, "{a} {b}");
            }
        }
    }

    #[test]
    fn zeros_stay_zeros_and_what_cannot_be_kept_is_not_hidden() {
        assert!(round_trip(&[0.0; 32]).iter().all(|v| *v == 0.0));
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e9, f32::MAX] {
            let mut x = [0.25; 64];
            x[40] = bad;
            let out = round_trip(&x);
            assert!(out[..32].iter().all(|v| (v - 0.25).abs() < 1e-3) && out[32..].iter().all(|v| !v.is_finite()));
        }
        assert!(round_trip(&[]).is_empty());
    }

    #[test]
    fn whole_numbers_up_to_127_are_kept() {
        let mut x: Vec<f32> = (0..32).map(|i| (i * 8 - 121) as f32).collect();
        x[0] = -127.0;
        assert_eq!(round_trip(&x), x);
    }
}
