//! Whisper weights by role, from either layout: CTranslate2 `model.bin` or safetensors with the usual names.
//!
//! Promises: every tensor comes out as f32 in the asked shape, or an error names the file and the tensor. Projections
//! that are computed together are handed out stacked (q, k, v of self-attention; k, v of cross-attention).

use super::ct2::{Ct2, Dtype};
use super::error::WhisperError;
use candle_core::{Device, Tensor};
use safetensors::SafeTensors;
use std::path::{Path, PathBuf};

/// Encoder or decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Encoder,
    Decoder,
}

/// A part of one transformer layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    SelfNorm,
    SelfQkv,
    SelfOut,
    CrossNorm,
    CrossQ,
    CrossKv,
    CrossOut,
    FfnNorm,
    Fc1,
    Fc2,
}

/// A tensor outside the layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outer {
    Conv1Weight,
    Conv1Bias,
    Conv2Weight,
    Conv2Bias,
    Positions(Side),
    Norm(Side, &'static str),
    Embeddings,
}

/// An open weights file.
pub(crate) struct Weights<'a> {
    pub file: PathBuf,
    pub layout: Layout<'a>,
}

pub(crate) enum Layout<'a> {
    Ct2(Ct2<'a>),
    Hf(SafeTensors<'a>),
}

/// A tensor's stored form: shape, type if it is a float type, bytes.
type Raw<'a> = (Vec<usize>, Option<Dtype>, &'a [u8]);

impl<'a> Weights<'a> {
    /// Number of layers of a side: consecutive from 0.
    pub fn layers(&self, side: Side) -> usize {
        (0..1000).take_while(|&l| self.raw(&self.layer_names(side, l, Part::Fc1, "weight")[0]).is_some()).count()
    }

    /// Shape of an outer tensor.
    pub fn outer_dims(&self, which: Outer) -> Result<Vec<usize>, WhisperError> {
        let name = self.outer_name(which);
        self.raw(&name).map(|(dims, ..)| dims).ok_or_else(|| self.missing(&name))
    }

    /// An outer tensor in the given shape.
    pub fn outer(&self, which: Outer, dims: &[usize]) -> Result<Tensor, WhisperError> {
        self.tensor(&self.outer_name(which), dims)
    }

    /// The weight matrix [out, in] of a part, parts that belong together stacked along `out`.
    pub fn matrix(
        &self,
        side: Side,
        layer: usize,
        part: Part,
        out: usize,
        input: usize,
    ) -> Result<Tensor, WhisperError> {
        let names = self.layer_names(side, layer, part, "weight");
        let each = out / names.len();
        let parts: Vec<Tensor> = names.iter().map(|n| self.tensor(n, &[each, input])).collect::<Result<_, _>>()?;
        self.stack(parts)
    }

    /// A vector [out] of a part (`bias`, or a norm's `weight`), stacked as in [`Self::matrix`]. The key projection
    /// has no bias in the safetensors layout; zeros stand for it.
    pub fn vector(
        &self,
        side: Side,
        layer: usize,
        part: Part,
        kind: &'static str,
        out: usize,
    ) -> Result<Tensor, WhisperError> {
        let names = self.layer_names(side, layer, part, kind);
        let each = out / names.len();
        let mut parts = Vec::new();
        for name in &names {
            if name.ends_with("k_proj.bias") && self.raw(name).is_none() {
                parts.push(Tensor::zeros(each, candle_core::DType::F32, &Device::Cpu).map_err(|e| self.run(e))?);
            } else {
                parts.push(self.tensor(name, &[each])?);
            }
        }
        self.stack(parts)
    }

    /// A scalar integer variable of the CTranslate2 layout.
    pub fn ct2_integer(&self, name: &str) -> Option<i32> {
        let Layout::Ct2(file) = &self.layout else { return None };
        let variable = file.variables.get(name)?;
        match (variable.dtype, variable.data) {
            (Dtype::I8, [a]) => Some(i32::from(*a as i8)),
            (Dtype::I16, [a, b]) => Some(i32::from(i16::from_le_bytes([*a, *b]))),
            (Dtype::I32, [a, b, c, d]) => Some(i32::from_le_bytes([*a, *b, *c, *d])),
            _ => None,
        }
    }

    pub fn run(&self, source: candle_core::Error) -> WhisperError {
        WhisperError::Run { file: self.file.clone(), source }
    }

    fn stack(&self, mut parts: Vec<Tensor>) -> Result<Tensor, WhisperError> {
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        Tensor::cat(&parts, 0).map_err(|e| self.run(e))
    }

    fn missing(&self, name: &str) -> WhisperError {
        WhisperError::Missing { file: self.file.clone(), tensor: name.to_owned() }
    }

    fn tensor(&self, name: &str, expected: &[usize]) -> Result<Tensor, WhisperError> {
        let (got, dtype, data) = self.raw(name).ok_or_else(|| self.missing(name))?;
        if got != expected {
            let (file, tensor) = (self.file.clone(), name.to_owned());
            return Err(WhisperError::Shape { file, tensor, expected: expected.to_vec(), got });
        }
        let values = dtype.and_then(|t| to_f32(t, data)).ok_or_else(|| WhisperError::Unsupported {
            file: self.file.clone(),
            what: format!("tensor `{name}` is quantised or not of a float type; use a float16 or float32 conversion"),
        })?;
        Tensor::from_vec(values, expected, &Device::Cpu).map_err(|e| self.run(e))
    }

    fn raw(&self, name: &str) -> Option<Raw<'_>> {
        match &self.layout {
            Layout::Ct2(file) => file.variables.get(name).map(|v| (v.dims.clone(), Some(v.dtype), v.data)),
            Layout::Hf(file) => {
                let view = file.tensor(name).or_else(|_| file.tensor(name.strip_prefix("model.").unwrap_or(name)));
                view.ok().map(|v| {
                    let dtype = match v.dtype() {
                        safetensors::Dtype::F32 => Some(Dtype::F32),
                        safetensors::Dtype::F16 => Some(Dtype::F16),
                        safetensors::Dtype::BF16 => Some(Dtype::Bf16),
                        _ => None,
                    };
                    (v.shape().to_vec(), dtype, v.data())
                })
            }
        }
    }

    fn layer_names(&self, side: Side, layer: usize, part: Part, kind: &str) -> Vec<String> {
        let side = if side == Side::Encoder { "encoder" } else { "decoder" };
        match &self.layout {
            Layout::Ct2(_) => {
                let (at, norm) = match part {
                    Part::SelfNorm => ("self_attention/layer_norm", true),
                    Part::SelfQkv => ("self_attention/linear_0", false),
                    Part::SelfOut => ("self_attention/linear_1", false),
                    Part::CrossNorm => ("attention/layer_norm", true),
                    Part::CrossQ => ("attention/linear_0", false),
                    Part::CrossKv => ("attention/linear_1", false),
                    Part::CrossOut => ("attention/linear_2", false),
                    Part::FfnNorm => ("ffn/layer_norm", true),
                    Part::Fc1 => ("ffn/linear_0", false),
                    Part::Fc2 => ("ffn/linear_1", false),
                };
                let kind = if norm { norm_kind(kind) } else { kind };
                vec![format!("{side}/layer_{layer}/{at}/{kind}")]
            }
            Layout::Hf(_) => {
                let at: &[&str] = match part {
                    Part::SelfNorm => &["self_attn_layer_norm"],
                    Part::SelfQkv => &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
                    Part::SelfOut => &["self_attn.out_proj"],
                    Part::CrossNorm => &["encoder_attn_layer_norm"],
                    Part::CrossQ => &["encoder_attn.q_proj"],
                    Part::CrossKv => &["encoder_attn.k_proj", "encoder_attn.v_proj"],
                    Part::CrossOut => &["encoder_attn.out_proj"],
                    Part::FfnNorm => &["final_layer_norm"],
                    Part::Fc1 => &["fc1"],
                    Part::Fc2 => &["fc2"],
                };
                at.iter().map(|a| format!("model.{side}.layers.{layer}.{a}.{kind}")).collect()
            }
        }
    }

    fn outer_name(&self, which: Outer) -> String {
        let ct2 = matches!(self.layout, Layout::Ct2(_));
        let name = |side| if side == Side::Encoder { "encoder" } else { "decoder" };
        match (which, ct2) {
            (Outer::Conv1Weight, true) => "encoder/conv1/weight".into(),
            (Outer::Conv1Bias, true) => "encoder/conv1/bias".into(),
            (Outer::Conv2Weight, true) => "encoder/conv2/weight".into(),
            (Outer::Conv2Bias, true) => "encoder/conv2/bias".into(),
            (Outer::Positions(side), true) => format!("{}/position_encodings/encodings", name(side)),
            (Outer::Norm(side, kind), true) => format!("{}/layer_norm/{}", name(side), norm_kind(kind)),
            (Outer::Embeddings, true) => "decoder/embeddings/weight".into(),
            (Outer::Conv1Weight, false) => "model.encoder.conv1.weight".into(),
            (Outer::Conv1Bias, false) => "model.encoder.conv1.bias".into(),
            (Outer::Conv2Weight, false) => "model.encoder.conv2.weight".into(),
            (Outer::Conv2Bias, false) => "model.encoder.conv2.bias".into(),
            (Outer::Positions(side), false) => format!("model.{}.embed_positions.weight", name(side)),
            (Outer::Norm(side, kind), false) => format!("model.{}.layer_norm.{kind}", name(side)),
            (Outer::Embeddings, false) => "model.decoder.embed_tokens.weight".into(),
        }
    }
}

/// The bytes of a file.
pub(crate) fn read(file: &Path) -> Result<Vec<u8>, WhisperError> {
    std::fs::read(file).map_err(|source| WhisperError::Read { file: file.to_owned(), source })
}

fn norm_kind(kind: &str) -> &str {
    if kind == "weight" { "gamma" } else { "beta" }
}

fn to_f32(dtype: Dtype, data: &[u8]) -> Option<Vec<f32>> {
    let pairs = data.chunks_exact(2).map(|b| [b[0], b[1]]);
    Some(match dtype {
        Dtype::F32 => data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
        Dtype::F16 => pairs.map(|b| half::f16::from_le_bytes(b).to_f32()).collect(),
        Dtype::Bf16 => pairs.map(|b| half::bf16::from_le_bytes(b).to_f32()).collect(),
        Dtype::I8 | Dtype::I16 | Dtype::I32 => return None,
    })
}
