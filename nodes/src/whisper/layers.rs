//! The transformer pieces that encoder and decoder share, on [rows, width] matrices.

use super::error::WhisperError;
use super::weights::{Part, Side, Weights};
use candle_core::{D, Result, Tensor};

const EPS: f32 = 1e-5;

pub(crate) struct Linear {
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    pub fn load(
        w: &Weights<'_>,
        side: Side,
        layer: usize,
        part: Part,
        out: usize,
        input: usize,
    ) -> std::result::Result<Self, WhisperError> {
        Ok(Self { weight: w.matrix(side, layer, part, out, input)?, bias: w.vector(side, layer, part, "bias", out)? })
    }

    pub fn new(weight: Tensor, bias: Tensor) -> Self {
        Self { weight, bias }
    }

    /// [n, in] → [n, out].
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.matmul(&self.weight.t()?)?.broadcast_add(&self.bias)
    }
}

pub(crate) struct Norm {
    pub weight: Tensor,
    pub bias: Tensor,
}

impl Norm {
    pub fn load(
        w: &Weights<'_>,
        side: Side,
        layer: usize,
        part: Part,
        width: usize,
    ) -> std::result::Result<Self, WhisperError> {
        Ok(Self {
            weight: w.vector(side, layer, part, "weight", width)?,
            bias: w.vector(side, layer, part, "bias", width)?,
        })
    }

    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        candle_nn::ops::layer_norm(x, &self.weight, &self.bias, EPS)
    }
}

/// Norm, two projections with a GELU between.
pub(crate) struct Ffn {
    norm: Norm,
    fc1: Linear,
    fc2: Linear,
}

impl Ffn {
    pub fn load(w: &Weights<'_>, side: Side, layer: usize, d: usize) -> std::result::Result<Self, WhisperError> {
        Ok(Self {
            norm: Norm::load(w, side, layer, Part::FfnNorm, d)?,
            fc1: Linear::load(w, side, layer, Part::Fc1, 4 * d, d)?,
            fc2: Linear::load(w, side, layer, Part::Fc2, d, 4 * d)?,
        })
    }

    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.fc2.forward(&self.fc1.forward(&self.norm.forward(x)?)?.gelu_erf()?)
    }
}

/// [n, heads · size] → [heads, n, size], contiguous.
pub(crate) fn split_heads(x: &Tensor, heads: usize) -> Result<Tensor> {
    let (n, d) = x.dims2()?;
    x.reshape((n, heads, d / heads))?.transpose(0, 1)?.contiguous()
}

/// Attention of `q` [heads, n, size] over `k`, `v` [heads, t, size]; the sum of `mask` [n, t], if any, is added
/// to the scores. Gives [n, heads · size].
pub(crate) fn attend(q: &Tensor, k: &Tensor, v: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
    let (heads, n, size) = q.dims3()?;
    let scores = (q.matmul(&k.transpose(1, 2)?)? * (size as f64).powf(-0.5))?;
    let scores = match mask {
        Some(mask) => scores.broadcast_add(mask)?,
        None => scores,
    };
    let weights = candle_nn::ops::softmax_last_dim(&scores)?;
    weights.matmul(v)?.transpose(0, 1)?.contiguous()?.reshape((n, heads * size))
}

/// The `i`-th of equal column blocks of a [n, blocks · width] matrix.
pub(crate) fn columns(x: &Tensor, i: usize, width: usize) -> Result<Tensor> {
    x.narrow(D::Minus1, i * width, width)?.contiguous()
}
