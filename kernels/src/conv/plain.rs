//! The reference: the same sums in the same order, multiplied and added in two steps.

use super::layer::{Columns, PANEL};
use super::run::Block;

/// Rows that share the loads of a panel.
const TILE: usize = 2;

pub(super) fn panels(block: &Block<'_>, weights: &[Columns], out: &mut [f32]) {
    for (panel, w) in weights.chunks_exact(block.taps * block.inputs).enumerate() {
        let first = panel * PANEL;
        let mut row = 0;
        while row + TILE <= block.rows {
            tile::<TILE>(block, w, row, first, out);
            row += TILE;
        }
        if row < block.rows {
            tile::<1>(block, w, row, first, out);
        }
    }
}

fn tile<const M: usize>(block: &Block<'_>, w: &[Columns], row: usize, first: usize, out: &mut [f32]) {
    let width = PANEL.min(block.columns - first);
    let mut sums = [[0.0; PANEL]; M];
    for sum in &mut sums {
        sum[..width].copy_from_slice(&block.bias[first..first + width]);
    }
    for (tap, w) in w.chunks_exact(block.inputs).enumerate() {
        let x: [&[f32]; M] = std::array::from_fn(|i| {
            let at = (row + i) * block.inputs + tap * block.step;
            &block.x[at..at + block.inputs]
        });
        for (c, Columns(w)) in w.iter().enumerate() {
            for (sum, x) in sums.iter_mut().zip(&x) {
                for (sum, w) in sum.iter_mut().zip(w) {
                    *sum += x[c] * w;
                }
            }
        }
    }
    for (i, sum) in sums.iter().enumerate() {
        finish(block, (row + i) * block.columns + first, &sum[..width], out);
    }
}

/// Each column is summed alone.
pub(super) fn dots(block: &Block<'_>, weights: &[f32], out: &mut [f32]) {
    for (column, w) in weights.chunks_exact(block.taps * block.inputs).enumerate() {
        for row in 0..block.rows {
            let mut sum = block.bias[column];
            for (tap, w) in w.chunks_exact(block.inputs).enumerate() {
                let at = row * block.inputs + tap * block.step;
                for (x, w) in block.x[at..at + block.inputs].iter().zip(w) {
                    sum += x * w;
                }
            }
            finish(block, row * block.columns + column, &[sum], out);
        }
    }
}

/// Adds what is to be added and writes.
pub(super) fn finish(block: &Block<'_>, at: usize, sums: &[f32], out: &mut [f32]) {
    let out = &mut out[at..at + sums.len()];
    out.copy_from_slice(sums);
    for add in block.adds.iter().flatten() {
        for (out, add) in out.iter_mut().zip(&add[at..]) {
            *out += add;
        }
    }
}
