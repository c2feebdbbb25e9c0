//! Decoder-only transformers of the Llama family on one thread: Llama, Qwen 2 and 3, Gemma 3.
//!
//! Promises: no thread is started or used but the caller's; the state of a sequence is a plain buffer that can be cut
//! or copied at any token; a pass over several tokens equals passes over one token each up to rounding, which for
//! matrices kept as blocks includes that of few tokens to 8 bits. Does not batch sequences. Variants (biases, norms of
//! heads, windows) follow from [`Shape`] and the tensors present.

use std::any::Any;

use super::{
    attention,
    language::{ForwardError, KvState, LanguageModel},
    matrix::Workspace,
    weights::{Layer, Shape, Weights},
};

/// Reserved growth of a sequence, in tokens.
const GROW: usize = 128;

/// A network with its weights.
#[derive(Debug)]
pub struct Decoder {
    weights: Weights,
}

impl Decoder {
    /// Takes loaded weights.
    pub fn new(weights: Weights) -> Self {
        Self { weights }
    }
}

impl LanguageModel for Decoder {
    fn new_state(&self) -> Box<dyn KvState> {
        let s = &self.weights.shape;
        Box::new(State { width: s.kv_heads * s.head, len: 0, layers: vec![Default::default(); s.layers] })
    }

    fn forward(&self, state: &mut dyn KvState, tokens: &[u32]) -> Result<Vec<f32>, ForwardError> {
        let s = &self.weights.shape;
        let state = state.as_any_mut().downcast_mut::<State>().ok_or(ForwardError::ForeignState)?;
        if state.width != s.kv_heads * s.head || state.layers.len() != s.layers {
            return Err(ForwardError::ForeignState);
        }
        if let Some(bad) = tokens.iter().find(|&&t| t as usize >= s.vocab) {
            return Err(ForwardError::BadToken(Some(*bad)));
        }
        if tokens.is_empty() {
            return Err(ForwardError::BadToken(None));
        }
        let needed = state.len + tokens.len();
        if needed > s.context {
            return Err(ForwardError::Full { needed, limit: s.context });
        }
        let start = state.len;
        let logits = self.run(state, tokens);
        if logits.iter().any(|l| !l.is_finite()) {
            state.truncate(start);
            return Err(ForwardError::NotFinite);
        }
        Ok(logits)
    }

    fn vocab(&self) -> usize {
        self.weights.shape.vocab
    }

    fn context(&self) -> usize {
        self.weights.shape.context
    }

    fn bytes(&self) -> usize {
        self.weights.bytes()
    }
}

impl Decoder {
    fn run(&self, state: &mut State, tokens: &[u32]) -> Vec<f32> {
        let w = &self.weights;
        let s = &w.shape;
        let (m, start) = (tokens.len(), state.len);
        // A pass that panicked may have left rows behind.
        for (k, v) in &mut state.layers {
            k.truncate(start * state.width);
            v.truncate(start * state.width);
        }
        let mut x = vec![0.0; m * s.width];
        for (row, &t) in x.chunks_exact_mut(s.width).zip(tokens) {
            w.embedding.row(t as usize, row);
        }
        if s.gemma {
            let scale = (s.width as f32).sqrt();
            x.iter_mut().for_each(|v| *v *= scale);
        }
        let wide = Rotation::new(s, w.rope_factors.as_deref(), s.rope_base.0, s.rope_divisor, start, m);
        let near = s.window.map(|_| Rotation::new(s, None, s.rope_base.1, 1.0, start, m));
        let mut b = Scratch::new(s, m, start + m);
        for (i, (layer, cache)) in w.layers.iter().zip(&mut state.layers).enumerate() {
            let window = s.window.filter(|(_, every)| (i + 1) % every != 0).map(|(w, _)| w);
            let rotation = if window.is_some() { near.as_ref().unwrap_or(&wide) } else { &wide };
            norm_rows(&x, &layer.attn_norm, s.epsilon, &mut b.normed);
            attend(s, layer, cache, rotation, window, start, m, &mut b);
            add_branch(&mut x, &mut b.branch, layer.post_attn_norm.as_deref(), s);
            norm_rows(&x, &layer.ffn_norm, s.epsilon, &mut b.normed);
            feed_forward(s, layer, m, &mut b);
            add_branch(&mut x, &mut b.branch, layer.post_ffn_norm.as_deref(), s);
        }
        state.len += m;
        let mut last = vec![0.0; s.width];
        norm_rows(&x[(m - 1) * s.width..], &w.norm, s.epsilon, &mut last);
        let mut logits = vec![0.0; s.vocab];
        w.output.as_ref().unwrap_or(&w.embedding).project(&last, 1, &mut logits, &mut b.space);
        logits
    }
}

/// Keys and values per layer, each `[tokens, kv_heads * head]`.
#[derive(Debug, Clone)]
struct State {
    width: usize,
    len: usize,
    layers: Vec<(Vec<f32>, Vec<f32>)>,
}

impl KvState for State {
    fn len(&self) -> usize {
        self.len
    }

    fn truncate(&mut self, len: usize) {
        if len < self.len {
            self.len = len;
            for (k, v) in &mut self.layers {
                k.truncate(len * self.width);
                v.truncate(len * self.width);
            }
        }
    }

    fn fork(&self, len: usize) -> Box<dyn KvState> {
        let len = len.min(self.len);
        let copy = |v: &Vec<f32>| v[..len * self.width].to_vec();
        let layers = self.layers.iter().map(|(k, v)| (copy(k), copy(v))).collect();
        Box::new(State { width: self.width, len, layers })
    }

    fn bytes(&self) -> usize {
        self.layers.iter().map(|(k, v)| 4 * (k.capacity() + v.capacity())).sum()
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// Sines and cosines `[tokens, rotated / 2]`.
struct Rotation {
    cos: Vec<f32>,
    sin: Vec<f32>,
}

impl Rotation {
    fn new(s: &Shape, factors: Option<&[f32]>, base: f32, divisor: f32, start: usize, m: usize) -> Self {
        let half = s.rotated / 2;
        let (mut cos, mut sin) = (Vec::with_capacity(m * half), Vec::with_capacity(m * half));
        for t in start..start + m {
            for i in 0..half {
                let mut freq = f64::from(base).powf(-2.0 * i as f64 / s.rotated as f64) / f64::from(divisor);
                if let Some(f) = factors {
                    freq /= f64::from(f[i]);
                }
                let (sn, cs) = (t as f64 * freq).sin_cos();
                cos.push(cs as f32);
                sin.push(sn as f32);
            }
        }
        Self { cos, sin }
    }

    fn apply(&self, s: &Shape, rows: &mut [f32], heads: usize) {
        let half = s.rotated / 2;
        for (t, row) in rows.chunks_exact_mut(heads * s.head).enumerate() {
            let (cos, sin) = (&self.cos[t * half..][..half], &self.sin[t * half..][..half]);
            for head in row.chunks_exact_mut(s.head) {
                for i in 0..half {
                    let (a, b) = if s.neox { (i, i + half) } else { (2 * i, 2 * i + 1) };
                    let (x, y) = (head[a], head[b]);
                    head[a] = x * cos[i] - y * sin[i];
                    head[b] = x * sin[i] + y * cos[i];
                }
            }
        }
    }
}

/// Buffers of one pass over `m` tokens that end at position `total`.
struct Scratch {
    normed: Vec<f32>,
    branch: Vec<f32>,
    q: Vec<f32>,
    kv: Vec<f32>,
    scores: Vec<f32>,
    mixed: Vec<f32>,
    gate: Vec<f32>,
    up: Vec<f32>,
    space: Workspace,
}

impl Scratch {
    fn new(s: &Shape, m: usize, total: usize) -> Self {
        let zeros = |n: usize| vec![0.0; n];
        Self {
            normed: zeros(m * s.width),
            branch: zeros(m * s.width),
            q: zeros(m * s.heads * s.head),
            kv: zeros(m * s.kv_heads * s.head),
            scores: zeros(m.max(s.heads / s.kv_heads) * total),
            mixed: zeros(m * s.heads * s.head),
            gate: zeros(m * s.hidden),
            up: zeros(m * s.hidden),
            space: Workspace::default(),
        }
    }
}

#[allow(clippy::too_many_arguments)]
fn attend(
    s: &Shape,
    layer: &Layer,
    (keys, values): &mut (Vec<f32>, Vec<f32>),
    rotation: &Rotation,
    window: Option<usize>,
    start: usize,
    m: usize,
    b: &mut Scratch,
) {
    let kv_width = s.kv_heads * s.head;
    layer.q.project(&b.normed, m, &mut b.q, &mut b.space);
    add_bias(&mut b.q, layer.q_bias.as_deref());
    norm_heads(&mut b.q, layer.q_norm.as_deref(), s);
    rotation.apply(s, &mut b.q, s.heads);
    layer.k.project(&b.normed, m, &mut b.kv, &mut b.space);
    add_bias(&mut b.kv, layer.k_bias.as_deref());
    norm_heads(&mut b.kv, layer.k_norm.as_deref(), s);
    rotation.apply(s, &mut b.kv, s.kv_heads);
    append(keys, &b.kv, kv_width);
    layer.v.project(&b.normed, m, &mut b.kv, &mut b.space);
    add_bias(&mut b.kv, layer.v_bias.as_deref());
    append(values, &b.kv, kv_width);
    attention::mix(s, &b.q, (keys, values), window, start, &mut b.scores, &mut b.mixed);
    layer.o.project(&b.mixed, m, &mut b.branch, &mut b.space);
}

fn feed_forward(s: &Shape, layer: &Layer, m: usize, b: &mut Scratch) {
    layer.gate.project(&b.normed, m, &mut b.gate, &mut b.space);
    layer.up.project(&b.normed, m, &mut b.up, &mut b.space);
    for (g, u) in b.gate.iter_mut().zip(&b.up) {
        let x = *g;
        *g = u * match s.gemma {
            // GELU by tanh (Hendrycks and Gimpel 2016), SiLU otherwise.
            true => 0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x * x * x)).tanh()),
            false => x / (1.0 + (-x).exp()),
        };
    }
    layer.down.project(&b.gate, m, &mut b.branch, &mut b.space);
}

fn append(cache: &mut Vec<f32>, rows: &[f32], width: usize) {
    if cache.capacity() - cache.len() < rows.len() {
        let len = (cache.len() + rows.len()).next_multiple_of(GROW * width);
        cache.reserve_exact(len - cache.len());
    }
    cache.extend_from_slice(rows);
}

fn add_bias(rows: &mut [f32], bias: Option<&[f32]>) {
    if let Some(bias) = bias {
        for row in rows.chunks_exact_mut(bias.len()) {
            row.iter_mut().zip(bias).for_each(|(x, b)| *x += b);
        }
    }
}

fn norm_heads(rows: &mut [f32], gain: Option<&[f32]>, s: &Shape) {
    if let Some(gain) = gain {
        rows.chunks_exact_mut(s.head).for_each(|row| norm(row, gain, s.epsilon));
    }
}

fn add_branch(x: &mut [f32], branch: &mut [f32], gain: Option<&[f32]>, s: &Shape) {
    if let Some(gain) = gain {
        branch.chunks_exact_mut(s.width).for_each(|row| norm(row, gain, s.epsilon));
    }
    x.iter_mut().zip(branch).for_each(|(x, b)| *x += *b);
}

fn norm_rows(x: &[f32], gain: &[f32], epsilon: f32, out: &mut [f32]) {
    out.copy_from_slice(x);
    out.chunks_exact_mut(gain.len()).for_each(|row| norm(row, gain, epsilon));
}

/// Root mean square norm, in place.
fn norm(row: &mut [f32], gain: &[f32], epsilon: f32) {
    let mean = row.iter().map(|v| v * v).sum::<f32>() / row.len() as f32;
    let scale = 1.0 / (mean + epsilon).sqrt();
    row.iter_mut().zip(gain).for_each(|(v, g)| *v *= scale * g);
}
