//! The numbers of a decoder-only network, read from a GGUF file.
//!
//! Every tensor is checked against the shape the hyperparameters ask for before it is read. Matrices stay in the blocks
//! of the file where there is a kernel for them (`Q4_0`, `Q4_1`, `Q8_0`); other block types are rounded to `Q8_0`, and
//! f16, bf16 and f32 are kept as f32, as are norms and biases. One copy serves all sessions; tied embeddings are not
//! doubled.

use std::{fs::File, path::Path};

use super::{
    error::{ChatError, SUPPORTED_ARCHITECTURES},
    gguf::{Gguf, Value},
    matrix::Matrix,
    tensors::{Tensors, malformed},
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
#[derive(Debug)]
pub struct Layer {
    pub(super) attn_norm: Vec<f32>,
    pub(super) q: Matrix,
    pub(super) k: Matrix,
    pub(super) v: Matrix,
    pub(super) o: Matrix,
    pub(super) q_bias: Option<Vec<f32>>,
    pub(super) k_bias: Option<Vec<f32>>,
    pub(super) v_bias: Option<Vec<f32>>,
    pub(super) q_norm: Option<Vec<f32>>,
    pub(super) k_norm: Option<Vec<f32>>,
    pub(super) post_attn_norm: Option<Vec<f32>>,
    pub(super) ffn_norm: Vec<f32>,
    pub(super) gate: Matrix,
    pub(super) up: Matrix,
    pub(super) down: Matrix,
    pub(super) post_ffn_norm: Option<Vec<f32>>,
}

/// All tensors.
#[derive(Debug)]
pub struct Weights {
    /// Sizes and variants.
    pub shape: Shape,
    pub(super) embedding: Matrix,
    pub(super) layers: Vec<Layer>,
    pub(super) norm: Vec<f32>,
    /// `None`: the embedding serves as output projection.
    pub(super) output: Option<Matrix>,
    /// Divisors of the rotation's frequencies.
    pub(super) rope_factors: Option<Vec<f32>>,
}

impl Weights {
    /// Reads all tensors of `file`, whose header is `gguf`, if no more than `max_bytes` are to be kept.
    ///
    /// # Errors
    /// [`ChatError`] naming `path`: unsupported architecture or feature, missing or misshapen tensor, too large, I/O.
    pub fn load(path: &Path, file: &mut File, gguf: &Gguf, max_bytes: u64) -> Result<Self, ChatError> {
        let shape = Shape::read(path, gguf)?;
        let mut tensors = Tensors { path, file, gguf };
        tensors.check_total(max_bytes)?;
        let s = &shape;
        let mut layers = Vec::new();
        for i in 0..s.layers {
            layers.push(Layer::load(&mut tensors, s, i)?);
        }
        let norm = tensors.vector("output_norm.weight", s.width)?;
        let embedding = tensors.matrix("token_embd.weight", s.vocab, s.width)?;
        let output = tensors.matrix_if("output.weight", s.vocab, s.width)?;
        let rope_factors = tensors.vector_if("rope_freqs.weight", s.rotated / 2)?;
        if rope_factors.iter().flatten().any(|f| !f.is_finite() || *f <= 0.0) {
            return Err(malformed(path, "`rope_freqs.weight` holds a value that is not positive"));
        }
        Ok(Self { shape, embedding, layers, norm, output, rope_factors })
    }

    /// The same network with every matrix as f32: several times larger and slower; what the blocks are measured
    /// against.
    pub fn expanded(self) -> Self {
        Self {
            embedding: self.embedding.expanded(),
            layers: self.layers.into_iter().map(Layer::expanded).collect(),
            output: self.output.map(Matrix::expanded),
            ..self
        }
    }

    /// Bytes of all numbers.
    pub fn bytes(&self) -> usize {
        let rest = size_of_val(self.norm.as_slice()) + self.rope_factors.as_deref().map_or(0, size_of_val);
        let layers: usize = self.layers.iter().map(Layer::bytes).sum();
        layers + self.embedding.bytes() + self.output.as_ref().map_or(0, Matrix::bytes) + rest
    }
}

impl Layer {
    fn load(tensors: &mut Tensors<'_>, s: &Shape, i: usize) -> Result<Self, ChatError> {
        let (q, kv) = (s.heads * s.head, s.kv_heads * s.head);
        let name = |what: &str| format!("blk.{i}.{what}");
        Ok(Self {
            attn_norm: tensors.vector(&name("attn_norm.weight"), s.width)?,
            q: tensors.matrix(&name("attn_q.weight"), q, s.width)?,
            k: tensors.matrix(&name("attn_k.weight"), kv, s.width)?,
            v: tensors.matrix(&name("attn_v.weight"), kv, s.width)?,
            o: tensors.matrix(&name("attn_output.weight"), s.width, q)?,
            q_bias: tensors.vector_if(&name("attn_q.bias"), q)?,
            k_bias: tensors.vector_if(&name("attn_k.bias"), kv)?,
            v_bias: tensors.vector_if(&name("attn_v.bias"), kv)?,
            q_norm: tensors.vector_if(&name("attn_q_norm.weight"), s.head)?,
            k_norm: tensors.vector_if(&name("attn_k_norm.weight"), s.head)?,
            post_attn_norm: tensors.vector_if(&name("post_attention_norm.weight"), s.width)?,
            ffn_norm: tensors.vector(&name("ffn_norm.weight"), s.width)?,
            gate: tensors.matrix(&name("ffn_gate.weight"), s.hidden, s.width)?,
            up: tensors.matrix(&name("ffn_up.weight"), s.hidden, s.width)?,
            down: tensors.matrix(&name("ffn_down.weight"), s.width, s.hidden)?,
            post_ffn_norm: tensors.vector_if(&name("post_ffw_norm.weight"), s.width)?,
        })
    }

    fn expanded(self) -> Self {
        Self {
            q: self.q.expanded(),
            k: self.k.expanded(),
            v: self.v.expanded(),
            o: self.o.expanded(),
            gate: self.gate.expanded(),
            up: self.up.expanded(),
            down: self.down.expanded(),
            ..self
        }
    }

    fn bytes(&self) -> usize {
        let matrices = [&self.q, &self.k, &self.v, &self.o, &self.gate, &self.up, &self.down];
        let optional = [
            &self.q_bias,
            &self.k_bias,
            &self.v_bias,
            &self.q_norm,
            &self.k_norm,
            &self.post_attn_norm,
            &self.post_ffn_norm,
        ];
        let norms = self.attn_norm.len()
            + self.ffn_norm.len()
            + optional.iter().copied().flatten().map(Vec::len).sum::<usize>();
        matrices.iter().map(|m| m.bytes()).sum::<usize>() + size_of::<f32>() * norms
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
