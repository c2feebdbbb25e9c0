//! Matrix products in f32 on the calling thread, over strided views.
//!
//! The one place of the chat runtime that calls unsafe code (the `gemm` crate); it checks every view against its slice
//! first. Runs without threads whatever `RAYON_NUM_THREADS` says.

/// A matrix inside a slice: element (r, c) is `data[r * row + c * col]`.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The memory.
    pub data: &'a [f32],
    /// Rows and columns.
    pub shape: (usize, usize),
    /// Strides of a row and of a column, in elements.
    pub strides: (usize, usize),
}

impl<'a> View<'a> {
    /// A row-major matrix whose rows are `stride` apart.
    pub fn rows(data: &'a [f32], rows: usize, cols: usize, stride: usize) -> Self {
        Self { data, shape: (rows, cols), strides: (stride, 1) }
    }

    /// The same memory, transposed.
    pub fn t(self) -> Self {
        Self { data: self.data, shape: (self.shape.1, self.shape.0), strides: (self.strides.1, self.strides.0) }
    }

    fn fits(&self) -> bool {
        last(self.shape, self.strides).is_none_or(|i| i < self.data.len())
    }
}

/// `out[r * stride + c] = scale * (a · b)[r, c]` for all rows of `a` and columns of `b`.
///
/// # Panics
/// If shapes disagree or a view leaves its slice: a mistake of the caller, never of input data.
pub fn matmul(a: View<'_>, b: View<'_>, scale: f32, out: &mut [f32], stride: usize) {
    let ((m, k), (k2, n)) = (a.shape, b.shape);
    assert!(k == k2 && a.fits() && b.fits() && stride >= n, "matmul: shapes disagree");
    let Some(end) = last((m, n), (stride, 1)) else { return };
    assert!(end < out.len(), "matmul: the output is too small");
    // SAFETY: the largest index of each of the three matrices was checked against its slice just above; `out` is
    // borrowed exclusively, so it aliases neither input.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            stride as isize,
            false,
            a.data.as_ptr(),
            a.strides.1 as isize,
            a.strides.0 as isize,
            b.data.as_ptr(),
            b.strides.1 as isize,
            b.strides.0 as isize,
            0.0,
            scale,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

fn last((r, c): (usize, usize), (rs, cs): (usize, usize)) -> Option<usize> {
    if r == 0 || c == 0 {
        return None;
    }
    Some((r - 1).saturating_mul(rs).saturating_add((c - 1).saturating_mul(cs)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_plain_loops_on_odd_sizes() {
        for (m, k, n) in [(1, 1, 1), (1, 7, 5), (3, 64, 9), (5, 33, 17), (64, 48, 3)] {
            let a: Vec<f32> = (0..m * k).map(|i| ((i * 37 % 19) as f32 - 9.0) / 7.0).collect();
            let w: Vec<f32> = (0..n * k).map(|i| ((i * 53 % 23) as f32 - 11.0) / 5.0).collect();
            let stride = n + 2;
            let mut out = vec![7.0; m * stride];
            matmul(View::rows(&a, m, k, k), View::rows(&w, n, k, k).t(), 0.5, &mut out, stride);
            for r in 0..m {
                for c in 0..stride {
                    let want = match c < n {
                        true => 0.5 * (0..k).map(|i| a[r * k + i] * w[c * k + i]).sum::<f32>(),
                        false => 7.0,
                    };
                    assert!((out[r * stride + c] - want).abs() < 1e-3, "{m}x{k}x{n} at {r},{c}");
                }
            }
        }
    }
}
