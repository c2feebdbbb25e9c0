//! Products on every tier against sums in f64 and in integers.

use super::*;
use crate::sweep::{Noise, tame, wild};

const ULP: f64 = 1.0 / (1u64 << 24) as f64;

/// Rows of blocks with random integers and the scales (and offsets) that `half` gives.
fn matrix(format: Format, rows: usize, columns: usize, seed: u64, mut half: impl FnMut(&mut Noise) -> u16) -> Vec<u8> {
    let mut noise = Noise::new(seed);
    let mut out: Vec<u8> = (0..rows * format.row_bytes(columns)).map(|_| (noise.bits() >> 50) as u8).collect();
    for block in out.chunks_exact_mut(format.block_bytes()) {
        block[..2].copy_from_slice(&half(&mut noise).to_le_bytes());
        if format == Format::Q4_1 {
            block[2..4].copy_from_slice(&half(&mut noise).to_le_bytes());
        }
    }
    out
}

/// Positive and negative scales from 2^-6 to 2^2.
fn usual(noise: &mut Noise) -> u16 {
    let bits = noise.bits() >> 40;
    ((bits as u16) & 0x83ff) | (9 + (bits >> 16 & 7) as u16) << 10
}

fn rounded(x: &[f32], columns: usize) -> Rows {
    let mut rows = Rows::new();
    rows.fill(x, columns);
    rows
}

fn product(tier: Tier, format: Format, w: &[u8], x: &Rows, n: usize) -> Vec<f32> {
    let mut out = vec![9.0; n * x.rows()];
    tier.matvec(format, w, x, &mut out);
    out
}

/// The sum of one row with vector `r` in f64, and what the error is measured by.
fn exact(format: Format, row: &[u8], x: &[f32], columns: usize) -> (f64, f64) {
    let alone = rounded(x, columns);
    let mut sums = (0.0, 0.0);
    for (w, x) in row.chunks_exact(format.block_bytes()).zip(&alone.blocks) {
        let mut unit = w.to_vec();
        unit[..2].copy_from_slice(&[0x00, 0x3c]);
        if format == Format::Q4_1 {
            unit[2..4].fill(0);
        }
        let mut q = [0.0; BLOCK];
        Tier::PLAIN.dequantize_row(format, &unit, &mut q);
        let d = f64::from(from_half(u16::from_le_bytes([w[0], w[1]])));
        let step = f64::from(x.scale[0]);
        // Rounding the partial sums is measured by the magnitudes of four products added.
        let fours = |i: usize| (0..4).map(|j| f64::from(q[4 * i + j]) * f64::from(x.quants[4 * i + j])).sum::<f64>();
        let total: f64 = (0..8).map(fours).sum();
        let size: f64 = (0..8).map(|i| fours(i).abs()).sum();
        let offset = match format {
            Format::Q4_1 => f64::from(from_half(u16::from_le_bytes([w[2], w[3]]))) * f64::from(x.scale[1]),
            _ => 0.0,
        };
        sums = (sums.0 + d * step * total + offset, sums.1 + (d * step).abs() * size + offset.abs());
    }
    sums
}

#[test]
fn keeps_the_stated_error_for_odd_numbers_of_rows_and_vectors() {
    for format in Format::ALL {
        for (columns, n, vectors) in [(32, 1, 1), (32, 17, 5), (64, 3, 2), (96, 5, 3), (576, 19, 7), (1536, 7, 4)] {
            let w = matrix(format, n, columns, 5, usual);
            let x = tame(vectors * columns, 6);
            let rows = rounded(&x, columns);
            for &tier in Tier::available() {
                let got = product(tier, format, &w, &rows, n);
                let terms = match tier == Tier::PLAIN {
                    true => columns as f64 / 32.0 + 3.0,
                    false => columns as f64 / 64.0 + 12.0,
                };
                for r in 0..vectors {
                    for (i, row) in w.chunks_exact(format.row_bytes(columns)).enumerate() {
                        let (sum, size) = exact(format, row, &x[r * columns..][..columns], columns);
                        let error = (f64::from(got[r * n + i]) - sum).abs();
                        assert!(error <= terms * ULP * size, "{tier} {format:?} {columns} {n}: {error} of {size}");
                    }
                }
            }
        }
    }
}

#[test]
fn integers_are_exact_and_equal_on_every_tier() {
    // Scales of 1 and vectors of whole numbers that reach 127: every partial sum is a whole number below 2^24.
    let one = |_: &mut Noise| 0x3c00;
    for format in Format::ALL {
        for columns in [32, 64, 160, 576, 1536] {
            for vectors in 1..=9 {
                let n = 13;
                let w = matrix(format, n, columns, 7, one);
                let mut noise = Noise::new(8);
                let x: Vec<f32> = (0..vectors * columns)
                    .map(|i| if i % 32 == 0 { 127.0 } else { (noise.bits() >> 40) as f32 % 255.0 - 127.0 })
                    .map(f32::trunc)
                    .collect();
                let rows = rounded(&x, columns);
                let want = product(Tier::PLAIN, format, &w, &rows, n);
                let mut values = vec![0.0; columns];
                for (i, row) in w.chunks_exact(format.row_bytes(columns)).enumerate() {
                    Tier::PLAIN.dequantize_row(format, row, &mut values);
                    for r in 0..vectors {
                        let terms = values.iter().zip(&x[r * columns..]).map(|(a, b)| *a as i64 * *b as i64);
                        assert_eq!(f64::from(want[r * n + i]), terms.sum::<i64>() as f64, "{format:?} {columns}");
                    }
                }
                for &tier in Tier::available() {
                    assert_eq!(product(tier, format, &w, &rows, n), want, "{tier} {format:?} {columns} {vectors}");
                }
            }
        }
    }
}

#[test]
fn the_largest_integers_do_not_saturate() {
    for (format, fill) in [(Format::Q8_0, 0x80), (Format::Q8_0, 0x7f), (Format::Q4_0, 0x00), (Format::Q4_1, 0xff)] {
        let mut w = vec![fill; format.row_bytes(1536)];
        for block in w.chunks_exact_mut(format.block_bytes()) {
            block[..2].copy_from_slice(&[0x00, 0x3c]);
            if format == Format::Q4_1 {
                block[2..4].fill(0);
            }
        }
        for sign in [1.0, -1.0] {
            let x = rounded(&[sign * 127.0; 1536], 1536);
            let weight = match format {
                Format::Q8_0 => f32::from(fill as i8),
                Format::Q4_0 => -8.0,
                Format::Q4_1 => 15.0,
            };
            for &tier in Tier::available() {
                assert_eq!(product(tier, format, &w, &x, 1), [weight * sign * 127.0 * 1536.0], "{tier} {format:?}");
            }
        }
    }
}

#[test]
fn a_vector_does_not_depend_on_the_others() {
    for format in Format::ALL {
        let (columns, n) = (160, 21);
        let w = matrix(format, n, columns, 9, usual);
        let x = tame(11 * columns, 2);
        for &tier in Tier::available() {
            let together = product(tier, format, &w, &rounded(&x, columns), n);
            for (r, x) in x.chunks_exact(columns).enumerate() {
                let alone = product(tier, format, &w, &rounded(x, columns), n);
                crate::sweep::assert_bits(&alone, &together[r * n..][..n], tier.name());
            }
        }
    }
}

#[test]
fn what_is_not_finite_spoils_its_vector_and_no_other() {
    for format in Format::ALL {
        let (columns, n) = (96, 5);
        let w = matrix(format, n, columns, 3, usual);
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for vectors in 1..=6 {
                let mut x = tame(vectors * columns, 4);
                let r = vectors / 2;
                x[r * columns + 40] = bad;
                for &tier in Tier::available() {
                    let out = product(tier, format, &w, &rounded(&x, columns), n);
                    for (i, row) in out.chunks_exact(n).enumerate() {
                        assert!(row.iter().all(|v| v.is_nan() == (i == r)), "{tier} {format:?} {vectors}");
                    }
                }
            }
        }
    }
}

#[test]
fn any_bytes_and_any_vector_give_a_result() {
    for format in Format::ALL {
        let w = matrix(format, 9, 128, 1, |noise| (noise.bits() >> 30) as u16);
        let x = rounded(&wild(5 * 128, 2), 128);
        for &tier in Tier::available() {
            product(tier, format, &w, &x, 9);
        }
    }
}

#[test]
fn nothing_in_nothing_out() {
    for &tier in Tier::available() {
        for format in Format::ALL {
            tier.matvec(format, &[], &Rows::new(), &mut []);
            tier.matvec(format, &[], &rounded(&[1.0; 64], 32), &mut []);
        }
    }
}

#[test]
#[should_panic(expected = "the rows of every output")]
fn a_matrix_that_is_too_short_is_refused() {
    matvec(Format::Q4_1, &[0; 20], &rounded(&[1.0; 32], 32), &mut [0.0; 2]);
}
