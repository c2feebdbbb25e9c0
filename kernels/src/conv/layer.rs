//! The weights of a convolution, packed for the kernels.

/// Output columns that a panel holds side by side.
pub(super) const PANEL: usize = 16;

/// Up to this many columns, a panel would be mostly padding: each column is a scalar product instead.
const NARROW: usize = 4;

/// The weights of one input for the columns of a panel. Aligned so that no load crosses a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Columns(pub [f32; PANEL]);

/// Sizes of a convolution, each at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvSize {
    /// Channels of an input row.
    pub inputs: usize,
    /// Channels of an output row.
    pub outputs: usize,
    /// Length of the kernel.
    pub taps: usize,
}

impl ConvSize {
    /// Weights that such a convolution has.
    pub fn weights(&self) -> usize {
        self.inputs * self.outputs * self.taps
    }

    fn check(&self, weights: &[f32], bias: Option<&[f32]>) {
        assert!(self.inputs > 0 && self.outputs > 0 && self.taps > 0, "a convolution has inputs, outputs and taps");
        assert_eq!(weights.len(), self.weights(), "one weight for each input, output and tap");
        assert!(bias.is_none_or(|b| b.len() == self.outputs), "one bias for each output");
    }
}

/// A convolution: `y[t][o] = bias[o] + sum over taps j and inputs i of w[o][i][j] * x[t + j * dilation][i]`.
#[derive(Clone, Debug)]
pub struct Conv {
    pub(super) inputs: usize,
    pub(super) taps: usize,
    pub(super) dilation: usize,
    pub(super) columns: usize,
    pub(super) weights: Packed,
    pub(super) bias: Vec<f32>,
}

#[derive(Clone, Debug)]
pub(super) enum Packed {
    /// By panel, tap and input; columns beyond the last are zeros.
    Panels(Vec<Columns>),
    /// By column, tap and input.
    Rows(Vec<f32>),
}

impl Conv {
    /// A convolution with `weights` by output, input and tap, as frameworks store them. No bias is a bias of zeros.
    ///
    /// # Panics
    /// If a size is 0 or a slice does not have the length that `size` asks for.
    pub fn new(size: ConvSize, dilation: usize, weights: &[f32], bias: Option<&[f32]>) -> Self {
        size.check(weights, bias);
        assert!(dilation > 0, "taps are at least one row apart");
        let ConvSize { inputs, outputs, taps } = size;
        let bias = bias.map_or_else(|| vec![0.0; outputs], <[f32]>::to_vec);
        let at = |column: usize, tap: usize, input: usize| weights[(column * inputs + input) * taps + tap];
        Self { inputs, taps, dilation, columns: outputs, weights: pack(inputs, taps, outputs, at), bias }
    }

    /// A transposed convolution with `weights` by input, output and tap, as frameworks store them: input row `i` adds
    /// `w[i][o][j]` times its value to sample `i * stride + j`.
    ///
    /// As a convolution it has `stride * outputs` columns, so row `q` of its output is the samples `q * stride ..` one
    /// after the other, and [`taps`](Self::taps) is `size.taps / stride`, rounded up. Row `q` is made of the rows
    /// `q + 1 - taps ..= q` of the input: give the input as beginning at `taps - 1`, and ask for `taps - 1` rows more than it
    /// has.
    ///
    /// # Panics
    /// As [`new`](Self::new), or if `stride` is 0.
    pub fn transposed(size: ConvSize, stride: usize, weights: &[f32], bias: Option<&[f32]>) -> Self {
        size.check(weights, bias);
        assert!(stride > 0, "a transposed convolution advances");
        let ConvSize { inputs, outputs, .. } = size;
        let (taps, columns) = (size.taps.div_ceil(stride), stride * outputs);
        let at = |column: usize, tap: usize, input: usize| {
            let j = (taps - 1 - tap) * stride + column / outputs;
            if j < size.taps { weights[(input * outputs + column % outputs) * size.taps + j] } else { 0.0 }
        };
        let bias = (0..columns).map(|c| bias.map_or(0.0, |b| b[c % outputs])).collect();
        Self { inputs, taps, dilation: 1, columns, weights: pack(inputs, taps, columns, at), bias }
    }

    /// One value per column, added to every row.
    pub fn bias(&self) -> &[f32] {
        &self.bias
    }

    /// Channels of an input row.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Values of an output row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Rows that an output row is made of, [`dilation`](Self::dilation) apart.
    pub fn taps(&self) -> usize {
        self.taps
    }

    /// Distance between the rows that an output row is made of.
    pub fn dilation(&self) -> usize {
        self.dilation
    }

    /// Memory of the packed weights.
    pub fn bytes(&self) -> usize {
        let weights = match &self.weights {
            Packed::Panels(w) => size_of_val(&w[..]),
            Packed::Rows(w) => size_of_val(&w[..]),
        };
        weights + size_of_val(&self.bias[..])
    }
}

fn pack(inputs: usize, taps: usize, columns: usize, at: impl Fn(usize, usize, usize) -> f32) -> Packed {
    if columns <= NARROW {
        let mut rows = Vec::with_capacity(columns * taps * inputs);
        for column in 0..columns {
            for tap in 0..taps {
                rows.extend((0..inputs).map(|input| at(column, tap, input)));
            }
        }
        return Packed::Rows(rows);
    }
    let mut panels = Vec::with_capacity(columns.div_ceil(PANEL) * taps * inputs);
    for first in (0..columns).step_by(PANEL) {
        for tap in 0..taps {
            for input in 0..inputs {
                let value = |i| if first + i < columns { at(first + i, tap, input) } else { 0.0 };
                panels.push(Columns(std::array::from_fn(value)));
            }
        }
    }
    Packed::Panels(panels)
}
