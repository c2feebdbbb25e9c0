//! A matrix of blocks in memory that starts on a cache line.

use std::ops::Range;

use super::format::Format;
use super::rows::Rows;
use crate::Tier;

/// Bytes of a cache line.
const LINE: usize = 64;

/// `rows * columns` weights in one format, row after row. Its memory is what the blocks need and at most one line more.
pub struct Matrix {
    format: Format,
    rows: usize,
    columns: usize,
    /// The blocks, and what is skipped before them.
    memory: Vec<u8>,
    start: usize,
}

impl Matrix {
    /// A matrix of zeros, to be written through [`Matrix::bytes_mut`].
    ///
    /// # Panics
    /// If `columns` is no multiple of [`BLOCK`](super::BLOCK), or the size overflows.
    pub fn zeros(format: Format, rows: usize, columns: usize) -> Self {
        // A size that overflows is more than there can be, which `vec!` refuses.
        let bytes = rows.saturating_mul(format.row_bytes(columns)).saturating_add(LINE - 1);
        let memory = vec![0u8; bytes];
        let start = memory.as_ptr().align_offset(LINE).min(LINE - 1);
        Self { format, rows, columns, memory, start }
    }

    /// How its blocks are stored.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Rows: outputs of a product.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns: values of a vector that it is multiplied with.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The blocks, row after row.
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..][..self.len()]
    }

    /// The blocks, to be written. Any bytes are a valid matrix.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let len = self.len();
        &mut self.memory[self.start..][..len]
    }

    /// Expands the rows of this range into `out`, one after the other; exact, see
    /// [`dequantize_row`](super::dequantize_row).
    ///
    /// # Panics
    /// If there are no such rows or `out` has another length than they need.
    pub fn dequantize(&self, rows: Range<usize>, out: &mut [f32]) {
        let each = self.format.row_bytes(self.columns);
        Tier::current().dequantize_row(self.format, &self.bytes()[rows.start * each..rows.end * each], out);
    }

    /// `out[r, i] = row i · vector r`, see [`matvec`](super::matvec()).
    ///
    /// # Panics
    /// If `x` has vectors of another length or `out` is not one value per vector and row.
    pub fn matvec(&self, x: &Rows, out: &mut [f32]) {
        assert_eq!(x.columns(), self.columns, "vectors as long as a row");
        assert_eq!(out.len(), x.rows() * self.rows, "one output per vector and row");
        Tier::current().matvec(self.format, self.bytes(), x, out);
    }

    fn len(&self) -> usize {
        self.rows * self.format.row_bytes(self.columns)
    }
}

impl std::fmt::Debug for Matrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Matrix({:?}, {} x {})", self.format, self.rows, self.columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_where_they_were_written() {
        let mut m = Matrix::zeros(Format::Q8_0, 3, 64);
        assert_eq!(m.bytes().len(), 3 * 68);
        assert_eq!(m.bytes().as_ptr().align_offset(LINE), 0);
        m.bytes_mut()[68..70].copy_from_slice(&[0x00, 0x3c]);
        m.bytes_mut()[70..102].fill(5);
        let mut out = [1.0; 128];
        m.dequantize(0..2, &mut out);
        assert!(out[..64].iter().all(|v| *v == 0.0));
        assert!(out[64..96].iter().all(|v| *v == 5.0) && out[96..].iter().all(|v| *v == 0.0));
        let mut x = Rows::new();
        x.fill(&[1.0; 128], 64);
        let mut out = [9.0; 6];
        m.matvec(&x, &mut out);
        assert!((out[1] - 160.0).abs() < 1e-3 && out[1] == out[4] && out[0] == 0.0 && out[5] == 0.0);
    }

    #[test]
    fn a_matrix_may_be_empty() {
        let m = Matrix::zeros(Format::Q4_0, 0, 32);
        let mut x = Rows::new();
        x.fill(&[1.0; 32], 32);
        m.matvec(&x, &mut []);
        m.dequantize(0..0, &mut []);
    }
}
