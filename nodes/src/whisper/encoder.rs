//! The audio encoder: log-mel frames to one row per 20 ms.
//!
//! It encodes any even number of frames, not only the 30 s window: positions count from the window's start.

use super::config::Sizes;
use super::error::WhisperError;
use super::layers::{Ffn, Linear, Norm, attend, columns, split_heads};
use super::weights::{Outer, Part, Side, Weights};
use candle_core::{Result, Tensor};

struct Layer {
    norm: Norm,
    qkv: Linear,
    out: Linear,
    ffn: Ffn,
}

pub(crate) struct Encoder {
    conv1: Linear,
    conv2: Linear,
    positions: Tensor,
    layers: Vec<Layer>,
    norm: Norm,
    heads: usize,
    d: usize,
}

const SIDE: Side = Side::Encoder;

impl Encoder {
    pub fn load(w: &Weights<'_>, sizes: &Sizes) -> std::result::Result<Self, WhisperError> {
        let (d, mels) = (sizes.width, sizes.mels);
        let flat = |t: Tensor, n: usize| t.reshape((d, n)).map_err(|e| w.run(e));
        let conv1 =
            Linear::new(flat(w.outer(Outer::Conv1Weight, &[d, mels, 3])?, 3 * mels)?, w.outer(Outer::Conv1Bias, &[d])?);
        let conv2 =
            Linear::new(flat(w.outer(Outer::Conv2Weight, &[d, d, 3])?, 3 * d)?, w.outer(Outer::Conv2Bias, &[d])?);
        let mut layers = Vec::new();
        for l in 0..sizes.encoder_layers {
            layers.push(Layer {
                norm: Norm::load(w, SIDE, l, Part::SelfNorm, d)?,
                qkv: Linear::load(w, SIDE, l, Part::SelfQkv, 3 * d, d)?,
                out: Linear::load(w, SIDE, l, Part::SelfOut, d, d)?,
                ffn: Ffn::load(w, SIDE, l, d)?,
            });
        }
        let norm = Norm {
            weight: w.outer(Outer::Norm(SIDE, "weight"), &[d])?,
            bias: w.outer(Outer::Norm(SIDE, "bias"), &[d])?,
        };
        let positions = w.outer(Outer::Positions(SIDE), &[sizes.audio_rows, d])?;
        Ok(Self { conv1, conv2, positions, layers, norm, heads: sizes.heads, d })
    }

    /// `mel` [frames, mels], an even number of frames, at most two per position → [frames / 2, width].
    pub fn forward(&self, mel: &Tensor) -> Result<Tensor> {
        let x = self.conv1.forward(&windows(mel, 1)?)?.gelu_erf()?;
        let x = self.conv2.forward(&windows(&x, 2)?)?.gelu_erf()?;
        let mut x = (&x + self.positions.narrow(0, 0, x.dim(0)?)?)?;
        for layer in &self.layers {
            let qkv = layer.qkv.forward(&layer.norm.forward(&x)?)?;
            let part = |i| split_heads(&columns(&qkv, i, self.d)?, self.heads);
            let attended = attend(&part(0)?, &part(1)?, &part(2)?, None)?;
            x = (x + layer.out.forward(&attended)?)?;
            x = (&x + layer.ffn.forward(&x)?)?;
        }
        self.norm.forward(&x)
    }
}

/// The three taps of a padded convolution of width 3, side by side: [n, c] → [n / stride, c · 3], channel-major,
/// as a kernel [out, c, 3] flattened expects them.
fn windows(x: &Tensor, stride: usize) -> Result<Tensor> {
    let (n, c) = x.dims2()?;
    let padded = x.pad_with_zeros(0, 1, 1)?;
    let tap = |k: usize| -> Result<Tensor> {
        if stride == 1 {
            return padded.narrow(0, k, n);
        }
        let even = k - k % 2;
        padded.narrow(0, even, n)?.reshape((n / 2, 2, c))?.narrow(1, k % 2, 1)?.squeeze(1)
    };
    Tensor::stack(&[tap(0)?, tap(1)?, tap(2)?], 2)?.reshape((n / stride, 3 * c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::Device;

    #[test]
    fn windows_match_a_convolution() {
        let (n, c, out) = (10, 4, 3);
        for stride in [1, 2] {
            let x = Tensor::randn(0f32, 1., (n, c), &Device::Cpu).unwrap();
            let kernel = Tensor::randn(0f32, 1., (out, c, 3), &Device::Cpu).unwrap();
            let ours =
                windows(&x, stride).unwrap().matmul(&kernel.reshape((out, 3 * c)).unwrap().t().unwrap()).unwrap();
            let theirs = x.t().unwrap().unsqueeze(0).unwrap().conv1d(&kernel, 1, stride, 1, 1).unwrap();
            let diff = (ours.t().unwrap() - theirs.squeeze(0).unwrap()).unwrap().abs().unwrap();
            assert!(diff.max_all().unwrap().to_scalar::<f32>().unwrap() < 1e-5, "stride {stride}");
        }
    }
}
