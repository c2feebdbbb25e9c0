use proptest::prelude::*;

use super::*;
use crate::Tier;
use crate::sweep::{assert_bits, tame};

const ULP: f64 = 1.0 / (1u64 << 24) as f64;

/// A plain signal that begins at `first`.
fn signal(rows: &[f32], first: i64) -> ConvInput<'_> {
    ConvInput { rows, first, scale: 1.0, slope: 1.0 }
}

fn output(rows: &mut [f32], first: i64) -> ConvOutput<'_> {
    ConvOutput { rows, first, bias: None, adds: [None; 2] }
}

fn size(inputs: usize, outputs: usize, taps: usize) -> ConvSize {
    ConvSize { inputs, outputs, taps }
}

/// Sum and sum of magnitudes.
#[derive(Clone, Copy, Default)]
struct Exact(f64, f64);

impl Exact {
    fn add(&mut self, v: f64) {
        self.0 += v;
        self.1 += v.abs();
    }
    #[track_caller]
    fn check(self, got: f32, terms: usize, what: &str) {
        let bound = (terms + 5) as f64 * ULP * self.1;
        assert!((f64::from(got) - self.0).abs() <= bound, "{what}: {got} for {} ± {bound}", self.0);
    }
}

fn active(x: f32, scale: f32, slope: f32) -> f64 {
    let v = f64::from(x) * f64::from(scale);
    if v > 0.0 { v } else { v * f64::from(slope) }
}

/// The formula of [`Conv`], in f64, from the weights as they were given.
struct Reference<'a> {
    size: ConvSize,
    dilation: usize,
    weights: &'a [f32],
    bias: &'a [f32],
}

impl Reference<'_> {
    fn at(&self, x: &ConvInput<'_>, t: i64, o: usize) -> Exact {
        let ConvSize { inputs, taps, .. } = self.size;
        let mut sum = Exact::default();
        sum.add(self.bias[o].into());
        for j in 0..taps {
            let row = t + (j * self.dilation) as i64 - x.first;
            if row < 0 || row >= (x.rows.len() / inputs) as i64 {
                continue;
            }
            for i in 0..inputs {
                let w = f64::from(self.weights[(o * inputs + i) * taps + j]);
                sum.add(w * active(x.rows[row as usize * inputs + i], x.scale, x.slope));
            }
        }
        sum
    }
}

fn check(size: ConvSize, dilation: usize, rows: usize, asked: usize, pad: i64) {
    let (weights, bias) = (tame(size.weights(), 1), tame(size.outputs, 2));
    let conv = Conv::new(size, dilation, &weights, Some(&bias));
    let x = tame(rows * size.inputs, 3);
    let x = ConvInput { rows: &x, first: pad, scale: 0.75, slope: 0.125 };
    let adds = [tame(asked * size.outputs, 4), tame(asked * size.outputs, 5)];
    let reference = Reference { size, dilation, weights: &weights, bias: &bias };
    for &tier in Tier::available() {
        for n in 0..3 {
            let mut y = vec![9.0; asked * size.outputs];
            let given = [0, 1].map(|i| (i < n).then_some(&adds[i][..]));
            let out = ConvOutput { rows: &mut y, first: -1, bias: None, adds: given };
            conv.run_on(tier, x, out, &mut vec![f32::NAN; 7]);
            for (i, got) in y.iter().enumerate() {
                let (t, o) = (i / size.outputs, i % size.outputs);
                let mut sum = reference.at(&x, t as i64 - 1, o);
                for add in given.iter().flatten() {
                    sum.add(add[i].into());
                }
                let what =
                    format!("{tier} {size:?} dilation {dilation}, {rows} rows, row {t}, column {o}, {n} addends");
                sum.check(*got, size.taps * size.inputs, &what);
            }
        }
    }
}

#[test]
fn every_tier_keeps_the_stated_error_for_odd_sizes() {
    for outputs in [1, 2, 4, 5, 8, 15, 16, 17, 31, 32, 48, 50] {
        for inputs in [1, 3, 8, 17, 32] {
            check(size(inputs, outputs, 3), 1, 9, 11, 1);
        }
    }
    for taps in 1..=11 {
        for dilation in [1, 2, 3, 12] {
            for outputs in [1, 3, 20] {
                check(size(5, outputs, taps), dilation, 13, 10, (dilation * (taps / 2)) as i64);
            }
        }
    }
}

#[test]
fn every_number_of_rows_is_made() {
    for rows in [0, 1, 2, 3, 5, 6, 7, 11, 12, 13, 25] {
        for asked in (0..=14).chain([30]) {
            check(size(4, 18, 3), 2, rows, asked, 2);
            check(size(9, 1, 7), 1, rows, asked, 3);
        }
    }
}

#[test]
fn blocks_of_rows_meet_without_a_seam() {
    // More rows than a block has, with many channels and with few.
    check(size(512, 20, 2), 3, 110, 113, 1);
    check(size(2, 7, 5), 12, 1000, 1003, 24);
    check(size(32, 1, 7), 1, 997, 997, 3);
}

#[test]
fn a_transposed_convolution_keeps_the_stated_error() {
    for (taps, stride) in [(1, 1), (2, 1), (3, 2), (4, 2), (8, 4), (16, 8), (5, 3), (3, 5), (11, 4)] {
        for (inputs, outputs) in [(1, 1), (3, 2), (4, 5), (9, 16)] {
            let size = size(inputs, outputs, taps);
            let (weights, bias) = (tame(size.weights(), 1), tame(outputs, 2));
            let conv = Conv::transposed(size, stride, &weights, Some(&bias));
            assert_eq!((conv.taps(), conv.columns()), (taps.div_ceil(stride), stride * outputs));
            for rows in [0usize, 1, 2, 9] {
                let x = tame(rows * inputs, 3);
                let more = conv.taps() - 1;
                let samples = (rows + more) * stride;
                let mut exact = vec![Exact::default(); samples * outputs];
                exact.iter_mut().enumerate().for_each(|(i, e)| e.add(bias[i % outputs].into()));
                for r in 0..rows {
                    for i in 0..inputs {
                        for o in 0..outputs {
                            for j in 0..taps {
                                let w = f64::from(weights[(i * outputs + o) * taps + j]);
                                exact[(r * stride + j) * outputs + o].add(w * f64::from(x[r * inputs + i]));
                            }
                        }
                    }
                }
                for &tier in Tier::available() {
                    let mut y = vec![9.0; samples * outputs];
                    conv.run_on(tier, signal(&x, more as i64), output(&mut y, 0), &mut Vec::new());
                    for (got, exact) in y.iter().zip(&exact) {
                        exact.check(
                            *got,
                            conv.taps() * inputs,
                            &format!("{tier} {size:?} stride {stride} rows {rows}"),
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_no_number_passes_through_and_stays_where_it_belongs() {
    for outputs in [1, 5, 32] {
        let conv = Conv::new(size(3, outputs, 3), 2, &tame(9 * outputs, 1), None);
        for bad in [f32::NAN, f32::INFINITY] {
            let mut x = tame(3 * 20, 2);
            x[3 * 10 + 1] = bad;
            for &tier in Tier::available() {
                let mut y = vec![0.0; 20 * outputs];
                conv.run_on(tier, ConvInput { slope: 0.1, ..signal(&x, 2) }, output(&mut y, 0), &mut Vec::new());
                for (t, row) in y.chunks(outputs).enumerate() {
                    let seen = [8, 10, 12].contains(&t);
                    assert!(row.iter().all(|v| v.is_finite() != seen), "{tier} row {t}");
                }
            }
        }
    }
}

#[test]
fn a_signal_out_of_reach_is_silence() {
    let bias = tame(17, 1);
    let conv = Conv::new(size(3, 17, 3), 2, &tame(9 * 17, 2), Some(&bias));
    let x = [f32::NAN; 30];
    for &tier in Tier::available() {
        for first in [i64::MIN, -1000, 1000, i64::MAX] {
            let mut y = vec![9.0; 4 * 17];
            conv.run_on(tier, signal(&x, first), output(&mut y, 0), &mut Vec::new());
            assert_bits(&y, &bias.repeat(4), tier.name());
        }
        for first in [i64::MIN, i64::MAX] {
            conv.run_on(tier, signal(&x, 0), output(&mut [0.0; 17], first), &mut Vec::new());
        }
        let mut y = vec![9.0; 4 * 17];
        let other = tame(17, 8);
        let out = ConvOutput { bias: Some(&other), ..output(&mut y, 100) };
        conv.run_on(tier, signal(&x, 0), out, &mut Vec::new());
        assert_bits(&y, &other.repeat(4), tier.name());
    }
}

proptest! {
    #[test]
    fn a_part_is_what_it_is_in_the_whole(
        (inputs, outputs, taps, dilation) in (1usize..40, 1usize..40, 1usize..12, 1usize..13),
        rows in 0usize..200, from in 0usize..200, len in 0usize..200, transposed: bool, seed in 1u64..1000,
    ) {
        let size = size(inputs, outputs, taps);
        let (weights, x) = (tame(size.weights(), seed), tame(rows * inputs, seed + 1));
        let conv = match transposed {
            true => Conv::transposed(size, dilation, &weights, None),
            false => Conv::new(size, dilation, &weights, None),
        };
        let around = (conv.taps() - 1) * conv.dilation();
        let x = ConvInput { slope: 0.1, ..signal(&x, around as i64) };
        let whole_rows = rows + around;
        let (from, len) = (from.min(whole_rows), len.min(whole_rows.saturating_sub(from)));
        let columns = conv.columns();
        for &tier in Tier::available() {
            let mut scratch = Vec::new();
            let add = tame(whole_rows * columns, seed + 2);
            let mut whole = vec![0.0; whole_rows * columns];
            let out = ConvOutput { adds: [Some(&add), None], ..output(&mut whole, 0) };
            conv.run_on(tier, x, out, &mut scratch);
            let span = from * columns..(from + len) * columns;
            let mut part = vec![0.0; len * columns];
            // The part is given only the rows that it sees.
            let low = from.saturating_sub(around).min(rows);
            let seen = &x.rows[low * inputs..(from + len).clamp(low, rows) * inputs];
            let x = ConvInput { rows: seen, first: (low + around) as i64, ..x };
            let out = ConvOutput { adds: [Some(&add[span.clone()]), None], ..output(&mut part, from as i64) };
            conv.run_on(tier, x, out, &mut scratch);
            assert_bits(&part, &whole[span], tier.name());
        }
    }
}
