//! Sums of six rows by sixteen columns in twelve registers: two loads of weights and six broadcast inputs feed twelve
//! fused multiply-adds.

use std::arch::x86_64::*;

use super::layer::{Columns, PANEL};
use super::plain::finish;
use super::run::Block;
use crate::x86::{lanes, load, store};

/// Rows of a full tile.
const TILE: usize = 6;
/// Rows whose scalar products run side by side, to hide the latency of adding.
const SIDE: usize = 4;

#[target_feature(enable = "avx2,fma")]
pub(super) fn panels(block: &Block<'_>, weights: &[Columns], out: &mut [f32]) {
    let k = block.taps * block.inputs;
    assert!(block.rows > 0 && block.x.len() >= (block.rows - 1) * block.inputs + block.reach(), "inputs for all rows");
    assert!(out.len() == block.rows * block.columns && weights.len() == block.columns.div_ceil(PANEL) * k);
    for (panel, w) in weights.chunks_exact(k).enumerate() {
        let first = panel * PANEL;
        let width = PANEL.min(block.columns - first);
        let mut bias = [0.0; PANEL];
        bias[..width].copy_from_slice(&block.bias[first..first + width]);
        let mut row = 0;
        while row + TILE <= block.rows {
            tile::<TILE>(block, w, &bias, row, first, out);
            row += TILE;
        }
        match block.rows - row {
            1 => tile::<1>(block, w, &bias, row, first, out),
            2 => tile::<2>(block, w, &bias, row, first, out),
            3 => tile::<3>(block, w, &bias, row, first, out),
            4 => tile::<4>(block, w, &bias, row, first, out),
            5 => tile::<5>(block, w, &bias, row, first, out),
            _ => {}
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn tile<const M: usize>(
    block: &Block<'_>,
    w: &[Columns],
    bias: &[f32; PANEL],
    row: usize,
    first: usize,
    out: &mut [f32],
) {
    debug_assert!(row + M <= block.rows && w.len() == block.taps * block.inputs);
    debug_assert!(block.x.len() >= (row + M - 1) * block.inputs + block.reach());
    // SAFETY: `panels` has checked that `x` holds the inputs of all rows of the block, `row + M` is at most their
    // number, and `w` is one panel: `taps * inputs` elements.
    let sums = unsafe { sums::<M>(block, w, bias, row) };
    for (i, [low, high]) in sums.into_iter().enumerate() {
        let at = (row + i) * block.columns + first;
        let (mut low, mut high) = (low, high);
        let Some(out) = out.get_mut(at..).and_then(|o| o.first_chunk_mut::<PANEL>()).filter(|_| wide(block, first))
        else {
            let mut sum = [0.0; PANEL];
            let ([a, b], _) = sum.as_chunks_mut::<8>() else { return };
            store(a, low);
            store(b, high);
            finish(block, at, &sum[..PANEL.min(block.columns - first)], out);
            continue;
        };
        for add in block.adds.iter().flatten() {
            let ([a, b, ..], _) = add[at..at + PANEL].as_chunks::<8>() else { return };
            low = _mm256_add_ps(low, load(a));
            high = _mm256_add_ps(high, load(b));
        }
        let ([a, b], _) = out.as_chunks_mut::<8>() else { return };
        store(a, low);
        store(b, high);
    }
}

/// Whether all columns of the panel that begins at `first` exist.
#[inline]
fn wide(block: &Block<'_>, first: usize) -> bool {
    first + PANEL <= block.columns
}

/// The sums of `M` rows from `row` on.
///
/// # Safety
/// `block.x` holds `(row + M - 1) * inputs + reach()` values at least, `w` exactly `taps * inputs` elements.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn sums<const M: usize>(block: &Block<'_>, w: &[Columns], bias: &[f32; PANEL], row: usize) -> [[__m256; 2]; M] {
    let bias = bias.as_chunks::<8>().0;
    let mut sums = [[load(&bias[0]), load(&bias[1])]; M];
    let (inputs, step) = (block.inputs, block.step);
    let mut w = w.as_ptr().cast::<f32>();
    // SAFETY: the last value read of `x` is at `(row + M - 1) * inputs + (taps - 1) * step + inputs - 1`, within what
    // the caller promises; `w` advances by one element of `Columns` for each tap and input, and those are aligned to 64.
    unsafe {
        let x = block.x.as_ptr().add(row * inputs);
        for tap in 0..block.taps {
            let x: [*const f32; M] = std::array::from_fn(|i| x.add(tap * step + i * inputs));
            for c in 0..inputs {
                let (low, high) = (_mm256_load_ps(w), _mm256_load_ps(w.add(8)));
                for (sum, x) in sums.iter_mut().zip(x) {
                    let v = _mm256_broadcast_ss(&*x.add(c));
                    sum[0] = _mm256_fmadd_ps(v, low, sum[0]);
                    sum[1] = _mm256_fmadd_ps(v, high, sum[1]);
                }
                w = w.add(PANEL);
            }
        }
    }
    sums
}

/// Each column is a scalar product of a row with its surroundings.
#[target_feature(enable = "avx2,fma")]
pub(super) fn dots(block: &Block<'_>, weights: &[f32], out: &mut [f32]) {
    debug_assert!(block.rows > 0 && block.x.len() >= (block.rows - 1) * block.inputs + block.reach());
    // Without a dilation the inputs of all taps are adjacent.
    let run = if block.step == block.inputs { block.taps * block.inputs } else { block.inputs };
    for (column, w) in weights.chunks_exact(block.taps * block.inputs).enumerate() {
        let mut row = 0;
        while row < block.rows {
            let n = if row + SIDE <= block.rows { SIDE } else { 1 };
            if n == SIDE {
                put::<SIDE>(block, products(block, w, run, row), row, column, out);
            } else {
                put::<1>(block, products(block, w, run, row), row, column, out);
            }
            row += n;
        }
    }
}

/// The scalar products of `M` rows, without bias.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn products<const M: usize>(block: &Block<'_>, w: &[f32], run: usize, row: usize) -> [f32; M] {
    let mut sums = [_mm256_setzero_ps(); M];
    let mut tails = [0.0f32; M];
    for (tap, w) in w.chunks_exact(run).enumerate() {
        let (w, w_tail) = w.as_chunks::<8>();
        for i in 0..M {
            let at = (row + i) * block.inputs + tap * block.step;
            let (x, x_tail) = block.x[at..at + run].as_chunks::<8>();
            for (w, x) in w.iter().zip(x) {
                sums[i] = _mm256_fmadd_ps(load(w), load(x), sums[i]);
            }
            tails[i] = w_tail.iter().zip(x_tail).fold(tails[i], |sum, (w, x)| w.mul_add(*x, sum));
        }
    }
    std::array::from_fn(|i| {
        let [a, b, c, d, e, f, g, h] = lanes(sums[i]);
        (((a + e) + (b + f)) + ((c + g) + (d + h))) + tails[i]
    })
}

#[inline]
fn put<const M: usize>(block: &Block<'_>, sums: [f32; M], row: usize, column: usize, out: &mut [f32]) {
    for (i, sum) in sums.into_iter().enumerate() {
        finish(block, (row + i) * block.columns + column, &[sum + block.bias[column]], out);
    }
}
