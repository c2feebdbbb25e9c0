//! The numbers of a decoder-only network, read from a GGUF file and expanded to f32.
//!
//! Every tensor is checked against the shape the hyperparameters ask for before it is read. All stored types are
//! expanded at load: on one thread the library's kernels for stored types are slower than an f32 product for short
//! rows, and they run on a process-wide pool that spins. One copy serves all sessions; tied embeddings are not doubled.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
};

use candle_core::{Device, quantized::ggml_file::qtensor_from_ggml};

use super::{
    error::{ChatError, SUPPORTED_ARCHITECTURES},
    gguf::{Gguf, Value},
};

/// What is computed: sizes and variants of a decoder-only network.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// Layers.
    pub layers: usize,
    /// Width of the residual stream.
    pub width: usize,
    /// Width inside the feed-forward block.
    pub hidden: usize,
    /// Query heads.
    pub heads: usize,
    /// Key/value heads; divides `heads`.
    pub kv_heads: usize,
    /// Width of one head.
    pub head: usize,
    /// How many of a head's values are rotated.
    pub rotated: usize,
    /// Tokens in the vocabulary.
    pub vocab: usize,
    /// Longest context the model was made for, in tokens.
    pub context: usize,
    /// Epsilon of the norms.
    pub epsilon: f32,
    /// Base of the rotation, and its base in layers with a window.
    pub rope_base: (f32, f32),
    /// Positions are divided by this in layers without a window.
    pub rope_divisor: f32,
    /// Rotates (i, i + n/2) instead of (2i, 2i + 1).
    pub neox: bool,
    /// Scales embeddings by the root of the width and gates with GELU instead of SiLU.
    pub gemma: bool,
    /// Tokens a windowed layer sees, and every how many layers one is without a window.
    pub window: Option<(usize, usize)>,
}

/// One layer's tensors, matrices as `[out, in]` rows.
#[derive(Debug, Default)]
pub struct Layer {
    pub(super) attn_norm: Vec<f32>,
    pub(super) q: Vec<f32>,
    pub(super) k: Vec<f32>,
    pub(super) v: Vec<f32>,
    pub(super) o: Vec<f32>,
    pub(super) q_bias: Option<Vec<f32>>,
    pub(super) k_bias: Option<Vec<f32>>,
    pub(super) v_bias: Option<Vec<f32>>,
    pub(super) q_norm: Option<Vec<f32>>,
    pub(super) k_norm: Option<Vec<f32>>,
    pub(super) post_attn_norm: Option<Vec<f32>>,
    pub(super) ffn_norm: Vec<f32>,
    pub(super) gate: Vec<f32>,
    pub(super) up: Vec<f32>,
    pub(super) down: Vec<f32>,
    pub(super) post_ffn_norm: Option<Vec<f32>>,
}

/// All tensors.
#[derive(Debug)]
pub struct Weights {
    /// Sizes and variants.
    pub shape: Shape,
    pub(super) embedding: Vec<f32>,
    pub(super) layers: Vec<Layer>,
    pub(super) norm: Vec<f32>,
    /// `None`: the embedding serves as output projection.
    pub(super) output: Option<Vec<f32>>,
    /// Divisors of the rotation's frequencies.
    pub(super) rope_factors: Option<Vec<f32>>,
}

impl Weights {
    /// Reads all tensors of `file`, whose header is `gguf`.
    ///
    /// # Errors
    /// [`ChatError`] naming `path`: unsupported architecture or feature, missing or misshapen tensor, too large, I/O.
    pub fn load(path: &Path, file: &mut File, gguf: &Gguf, max_bytes: u64) -> Result<Self, ChatError> {
        let shape = Shape::read(path, gguf)?;
        let mut loader = Loader { path, file, gguf };
        loader.check_total(max_bytes)?;
        let s = &shape;
        let (q, kv) = (s.heads * s.head, s.kv_heads * s.head);
        let mut layers = Vec::new();
        for i in 0..s.layers {
            let mut need = |name: &str, dims: &[usize]| loader.need(&format!("blk.{i}.{name}.weight"), dims);
            let mut layer = Layer {
                attn_norm: need("attn_norm", &[s.width])?,
                q: need("attn_q", &[q, s.width])?,
                k: need("attn_k", &[kv, s.width])?,
                v: need("attn_v", &[kv, s.width])?,
                o: need("attn_output", &[s.width, q])?,
                ffn_norm: need("ffn_norm", &[s.width])?,
                gate: need("ffn_gate", &[s.hidden, s.width])?,
                up: need("ffn_up", &[s.hidden, s.width])?,
                down: need("ffn_down", &[s.width, s.hidden])?,
                ..Layer::default()
            };
            let mut may = |name: &str, dims: &[usize]| loader.may(&format!("blk.{i}.{name}"), dims);
            layer.q_bias = may("attn_q.bias", &[q])?;
            layer.k_bias = may("attn_k.bias", &[kv])?;
            layer.v_bias = may("attn_v.bias", &[kv])?;
            layer.q_norm = may("attn_q_norm.weight", &[s.head])?;
            layer.k_norm = may("attn_k_norm.weight", &[s.head])?;
            layer.post_attn_norm = may("post_attention_norm.weight", &[s.width])?;
            layer.post_ffn_norm = may("post_ffw_norm.weight", &[s.width])?;
            layers.push(layer);
        }
        let norm = loader.need("output_norm.weight", &[s.width])?;
        let embedding = loader.need("token_embd.weight", &[s.vocab, s.width])?;
        let output = loader.may("output.weight", &[s.vocab, s.width])?;
        let rope_factors = loader.may("rope_freqs.weight", &[s.rotated / 2])?;
        if rope_factors.iter().flatten().any(|f| !f.is_finite() || *f <= 0.0) {
            return Err(malformed(path, "`rope_freqs.weight` holds a value that is not positive"));
        }
        Ok(Self { shape, embedding, layers, norm, output, rope_factors })
    }

    /// Bytes of all numbers.
    pub fn bytes(&self) -> usize {
        let s = &self.shape;
        let layer = s.width * (2 * s.heads + 2 * s.kv_heads) * s.head + 3 * s.width * s.hidden + 4 * s.width;
        let copies = 1 + usize::from(self.output.is_some());
        4 * (s.layers * layer + copies * s.vocab * s.width)
    }
}

impl Shape {
    fn read(path: &Path, gguf: &Gguf) -> Result<Self, ChatError> {
        let arch = gguf.metadata.get("general.architecture").and_then(Value::as_str).unwrap_or("");
        if !SUPPORTED_ARCHITECTURES.contains(&arch) {
            return Err(ChatError::UnsupportedArchitecture { path: path.into(), architecture: arch.into() });
        }
        let get = |key: &str| gguf.metadata.get(&format!("{arch}.{key}"));
        let size = |key: &str, max: usize| match get(key).map(Value::as_u64) {
            None => Ok(None),
            Some(Some(n)) if n >= 1 && n <= max as u64 => Ok(Some(n as usize)),
            Some(_) => Err(malformed(path, format!("`{arch}.{key}` is not a number from 1 to {max}"))),
        };
        let need = |key: &str, max: usize| {
            size(key, max)?.ok_or_else(|| malformed(path, format!("`{arch}.{key}` is missing")))
        };
        let float = |key: &str, default: f64| match get(key).map(Value::as_f64) {
            None => Ok(default as f32),
            Some(Some(f)) if f.is_finite() && f > 0.0 => Ok(f as f32),
            Some(_) => Err(malformed(path, format!("`{arch}.{key}` is not a positive number"))),
        };
        let unsupported = |what: String, supported: &str| ChatError::UnsupportedFeature {
            path: path.into(),
            what,
            supported: supported.into(),
        };
        if get("expert_count").and_then(Value::as_u64).unwrap_or(0) > 0 {
            return Err(unsupported(format!("a mixture of experts (`{arch}.expert_count`)"), "dense models"));
        }
        let scaling = get("rope.scaling.type").and_then(Value::as_str).unwrap_or("none");
        let rope_divisor = match scaling {
            "none" => 1.0,
            "linear" => float("rope.scaling.factor", 1.0)?,
            other => return Err(unsupported(format!("`{arch}.rope.scaling.type` = {other}"), "none, linear")),
        };
        let (heads, width) = (need("attention.head_count", 4096)?, need("embedding_length", 1 << 20)?);
        let kv_heads = size("attention.head_count_kv", heads)?.unwrap_or(heads);
        let head = match size("attention.key_length", 4096)? {
            Some(head) => head,
            None if width % heads == 0 => width / heads,
            None => return Err(malformed(path, "the width is no multiple of the number of heads")),
        };
        let rotated = size("rope.dimension_count", head)?.unwrap_or(head);
        if heads % kv_heads != 0 || rotated % 2 != 0 {
            return Err(malformed(path, "head counts do not divide, or an odd number of values is rotated"));
        }
        let gemma = arch == "gemma3";
        let vocab = match gguf.tensors.get("token_embd.weight").map(|t| t.dims.as_slice()) {
            Some(&[vocab, _]) if u32::try_from(vocab).is_ok() => vocab,
            _ => return Err(malformed(path, "`token_embd.weight` is missing or no matrix")),
        };
        Ok(Self {
            layers: need("block_count", 1024)?,
            width,
            hidden: need("feed_forward_length", 1 << 22)?,
            heads,
            kv_heads,
            head,
            rotated,
            vocab,
            context: need("context_length", 1 << 30)?,
            epsilon: float("attention.layer_norm_rms_epsilon", 1e-5)?,
            rope_base: (
                float("rope.freq_base", if gemma { 1_000_000.0 } else { 10_000.0 })?,
                float("rope.local_freq_base", 10_000.0)?,
            ),
            rope_divisor,
            neox: arch != "llama",
            gemma,
            // Gemma 3: five windowed layers, then one that sees all.
            window: if gemma { size("attention.sliding_window", 1 << 30)?.map(|w| (w, 6)) } else { None },
        })
    }
}

struct Loader<'a> {
    path: &'a Path,
    file: &'a mut File,
    gguf: &'a Gguf,
}

impl Loader<'_> {
    fn check_total(&self, limit: u64) -> Result<(), ChatError> {
        let mut needed = 0u64;
        for name in self.gguf.tensors.keys() {
            let (_, _, elements) = self.gguf.locate(name).map_err(|e| malformed(self.path, e))?;
            needed = needed.saturating_add((elements as u64).saturating_mul(4));
        }
        match needed > limit {
            true => Err(ChatError::TooLarge { path: self.path.into(), needed, limit }),
            false => Ok(()),
        }
    }

    fn may(&mut self, name: &str, dims: &[usize]) -> Result<Option<Vec<f32>>, ChatError> {
        match self.gguf.tensors.contains_key(name) {
            true => self.need(name, dims).map(Some),
            false => Ok(None),
        }
    }

    fn need(&mut self, name: &str, dims: &[usize]) -> Result<Vec<f32>, ChatError> {
        let (range, dtype, elements) = self.gguf.locate(name).map_err(|e| malformed(self.path, e))?;
        let found = &self.gguf.tensors[name].dims;
        if found != dims {
            return Err(malformed(self.path, format!("tensor `{name}` is {found:?} where {dims:?} is needed")));
        }
        let io = |source| ChatError::Io { path: self.path.into(), source };
        // The range was checked against the file's length, so this reserves no more than the file has.
        let mut raw = vec![0; (range.end - range.start) as usize];
        self.file.seek(SeekFrom::Start(range.start)).map_err(io)?;
        self.file.read_exact(&mut raw).map_err(io)?;
        let values = qtensor_from_ggml(dtype, &raw, vec![elements], &Device::Cpu)
            .and_then(|t| t.dequantize(&Device::Cpu))
            .and_then(|t| t.to_vec1::<f32>())
            .map_err(|e| malformed(self.path, format!("tensor `{name}`: {e}")))?;
        Ok(values)
    }
}

/// [`ChatError::Malformed`] for `path`.
pub(super) fn malformed(path: &Path, why: impl Into<String>) -> ChatError {
    ChatError::Malformed { path: path.into(), why: why.into() }
}
