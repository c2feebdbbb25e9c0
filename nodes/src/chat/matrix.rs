//! A matrix of a network, as f32 or in the blocks of its file, and its product with the tokens of a pass.
//!
//! Blocks are never expanded for good. Up to 32 tokens are rounded to blocks of 8 bits and multiplied in integers. For
//! longer passes a panel at a time is expanded, exactly, into a buffer that stays in the cache, and multiplied in f32.
//! Either way the calling thread alone works.

use omni_flow_kernels::blocks::{self, Rows};

use super::matmul::{View, matmul};

/// Up to this many tokens are multiplied in integers. Expanding never became cheaper where it was measured: a token of
/// a pass of 64 expanded costs twice one of 32 in integers (`benches/README.md`). It keeps longer passes, which no
/// default asks for, exact.
const FEW: usize = 32;
/// Values of an expanded panel: 4 MiB, which stays in the last-level cache; smaller ones were slower.
const PANEL: usize = 1 << 20;

/// `[rows, columns]`, row-major.
#[derive(Debug)]
pub enum Matrix {
    /// Plain numbers, and how many columns.
    F32(Vec<f32>, usize),
    /// Blocks as the file has them, or rounded to `Q8_0` at load.
    Blocks(blocks::Matrix),
}

/// Buffers of products, reused from one to the next.
#[derive(Debug, Default)]
pub struct Workspace {
    rounded: Rows,
    panel: Vec<f32>,
}

impl Matrix {
    /// Bytes of the numbers.
    pub fn bytes(&self) -> usize {
        match self {
            Matrix::F32(data, _) => size_of_val(data.as_slice()),
            Matrix::Blocks(m) => m.bytes().len(),
        }
    }

    /// Copies one row out, as f32.
    pub fn row(&self, i: usize, out: &mut [f32]) {
        match self {
            Matrix::F32(data, columns) => out.copy_from_slice(&data[i * columns..][..*columns]),
            Matrix::Blocks(m) => m.dequantize(i..i + 1, out),
        }
    }

    /// `out[m, rows] = x[m, columns] · selfᵀ`.
    ///
    /// Exact up to the rounding of f32, but for blocks and at most 32 tokens: there each value of `x` is off by up to
    /// 1/254 of the largest in its block of 32.
    pub fn project(&self, x: &[f32], m: usize, out: &mut [f32], space: &mut Workspace) {
        let (columns, rows) = (x.len() / m, out.len() / m);
        let tokens = View::rows(x, m, columns, columns);
        match self {
            Matrix::F32(data, _) => matmul(tokens, View::rows(data, rows, columns, columns).t(), 1.0, out, rows),
            Matrix::Blocks(w) if m <= FEW => {
                space.rounded.fill(x, columns);
                w.matvec(&space.rounded, out);
            }
            Matrix::Blocks(w) => {
                let tall = (PANEL / columns).clamp(1, rows);
                space.panel.resize(space.panel.len().max(tall * columns), 0.0);
                for first in (0..rows).step_by(tall) {
                    let n = tall.min(rows - first);
                    let panel = &mut space.panel[..n * columns];
                    w.dequantize(first..first + n, panel);
                    matmul(tokens, View::rows(panel, n, columns, columns).t(), 1.0, &mut out[first..], rows);
                }
            }
        }
    }

    /// The same numbers as f32.
    pub fn expanded(self) -> Self {
        match self {
            Matrix::Blocks(m) => {
                let mut data = vec![0.0; m.rows() * m.columns()];
                m.dequantize(0..m.rows(), &mut data);
                Matrix::F32(data, m.columns())
            }
            plain => plain,
        }
    }
}
