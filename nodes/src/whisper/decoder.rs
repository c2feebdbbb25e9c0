//! The text decoder with its two caches: keys and values of the tokens so far, and of the audio.
//!
//! The audio's keys and values are computed once per utterance; those of the silence behind it once per model.

use super::config::Sizes;
use super::error::WhisperError;
use super::layers::{Ffn, Linear, Norm, attend, columns, split_heads};
use super::weights::{Outer, Part, Side, Weights};
use candle_core::{Device, Result, Tensor};

struct Layer {
    self_norm: Norm,
    qkv: Linear,
    self_out: Linear,
    cross_norm: Norm,
    cross_q: Linear,
    cross_kv: Linear,
    cross_out: Linear,
    ffn: Ffn,
}

pub(crate) struct Decoder {
    embeddings: Tensor,
    positions: Tensor,
    layers: Vec<Layer>,
    norm: Norm,
    heads: usize,
    d: usize,
}

/// Keys and values [heads, rows, size] of each layer.
#[derive(Clone, Default)]
pub(crate) struct KeyValues(Vec<(Tensor, Tensor)>);

impl KeyValues {
    /// The rows of `head` followed by those of `tail` from the same position on.
    pub fn spliced(head: &Self, tail: &Self) -> Result<Self> {
        let join = |a: &Tensor, b: &Tensor| {
            let (n, rows) = (a.dim(1)?, b.dim(1)?);
            Tensor::cat(&[a, &b.narrow(1, n, rows - n)?], 1)
        };
        let pairs = head.0.iter().zip(&tail.0);
        Ok(Self(pairs.map(|(a, b)| Ok((join(&a.0, &b.0)?, join(&a.1, &b.1)?))).collect::<Result<_>>()?))
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> usize {
        let each = |t: &Tensor| t.elem_count() * t.dtype().size_in_bytes();
        self.0.iter().map(|(k, v)| each(k) + each(v)).sum()
    }

    fn rows(&self) -> Result<usize> {
        self.0.first().map_or(Ok(0), |(k, _)| k.dim(1))
    }
}

const SIDE: Side = Side::Decoder;

impl Decoder {
    pub fn load(w: &Weights<'_>, sizes: &Sizes) -> std::result::Result<Self, WhisperError> {
        let d = sizes.width;
        let mut layers = Vec::new();
        for l in 0..sizes.decoder_layers {
            layers.push(Layer {
                self_norm: Norm::load(w, SIDE, l, Part::SelfNorm, d)?,
                qkv: Linear::load(w, SIDE, l, Part::SelfQkv, 3 * d, d)?,
                self_out: Linear::load(w, SIDE, l, Part::SelfOut, d, d)?,
                cross_norm: Norm::load(w, SIDE, l, Part::CrossNorm, d)?,
                cross_q: Linear::load(w, SIDE, l, Part::CrossQ, d, d)?,
                cross_kv: Linear::load(w, SIDE, l, Part::CrossKv, 2 * d, d)?,
                cross_out: Linear::load(w, SIDE, l, Part::CrossOut, d, d)?,
                ffn: Ffn::load(w, SIDE, l, d)?,
            });
        }
        let norm = Norm {
            weight: w.outer(Outer::Norm(SIDE, "weight"), &[d])?,
            bias: w.outer(Outer::Norm(SIDE, "bias"), &[d])?,
        };
        Ok(Self {
            embeddings: w.outer(Outer::Embeddings, &[sizes.vocabulary, d])?,
            positions: w.outer(Outer::Positions(SIDE), &[sizes.text_rows, d])?,
            layers,
            norm,
            heads: sizes.heads,
            d,
        })
    }

    /// Keys and values of encoder rows [n, width], for every layer.
    pub fn audio(&self, rows: &Tensor) -> Result<KeyValues> {
        let one = |layer: &Layer| {
            let kv = layer.cross_kv.forward(rows)?;
            let part = |i| split_heads(&columns(&kv, i, self.d)?, self.heads);
            Ok((part(0)?, part(1)?))
        };
        Ok(KeyValues(self.layers.iter().map(one).collect::<Result<_>>()?))
    }

    /// Feeds `tokens` after those already in `cache`; logits [tokens, vocabulary].
    pub fn forward(&self, tokens: &[u32], cache: &mut KeyValues, audio: &KeyValues) -> Result<Tensor> {
        let (n, before) = (tokens.len(), cache.rows()?);
        let ids = Tensor::new(tokens, &Device::Cpu)?;
        let mut x = (self.embeddings.index_select(&ids, 0)? + self.positions.narrow(0, before, n)?)?;
        let mask = if n > 1 { Some(causal(n, before)?) } else { None };
        for (i, layer) in self.layers.iter().enumerate() {
            let qkv = layer.qkv.forward(&layer.self_norm.forward(&x)?)?;
            let part = |i| split_heads(&columns(&qkv, i, self.d)?, self.heads);
            let (q, mut k, mut v) = (part(0)?, part(1)?, part(2)?);
            match cache.0.get_mut(i) {
                Some((old_k, old_v)) => {
                    k = Tensor::cat(&[&*old_k, &k], 1)?;
                    v = Tensor::cat(&[&*old_v, &v], 1)?;
                    (*old_k, *old_v) = (k.clone(), v.clone());
                }
                None => cache.0.push((k.clone(), v.clone())),
            }
            x = (x + layer.self_out.forward(&attend(&q, &k, &v, mask.as_ref())?)?)?;
            let q = split_heads(&layer.cross_q.forward(&layer.cross_norm.forward(&x)?)?, self.heads)?;
            let (k, v) = &audio.0[i];
            x = (x + layer.cross_out.forward(&attend(&q, k, v, None)?)?)?;
            x = (&x + layer.ffn.forward(&x)?)?;
        }
        self.norm.forward(&x)?.matmul(&self.embeddings.t()?)
    }
}

/// [n, before + n]: 0 where a token may look, minus infinity at later ones.
fn causal(n: usize, before: usize) -> Result<Tensor> {
    let total = before + n;
    let values = (0..n * total).map(|i| if i % total > before + i / total { f32::NEG_INFINITY } else { 0. });
    Tensor::from_vec(values.collect::<Vec<f32>>(), (n, total), &Device::Cpu)
}
