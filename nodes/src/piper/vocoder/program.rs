//! What a vocoder computes: tensors, and the steps that make them in order.

use omni_flow_kernels::conv::Conv;

/// A tensor of rows of channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tensor {
    pub(super) channels: usize,
    /// Rows per latent frame.
    pub(super) rate: i64,
    /// The buffer it is kept in; tensors that are not needed at once share one. Not used for the latents.
    pub(super) slot: usize,
}

/// One step.
#[derive(Debug)]
pub(super) enum Op {
    Convolve(Box<Convolution>),
    /// The sum of two tensors of one shape.
    Sum {
        parts: [usize; 2],
        out: usize,
    },
    /// The hyperbolic tangent, in place.
    Tanh {
        x: usize,
    },
}

/// A convolution with what is fused into it. All numbers of tensors are indices.
#[derive(Debug)]
pub(super) struct Convolution {
    pub(super) conv: Conv,
    pub(super) x: usize,
    pub(super) out: usize,
    /// Factor of the input, then its leaky slope.
    pub(super) scale: f32,
    pub(super) slope: f32,
    /// Zeros before the input; of a transposed convolution, samples cut off before the output.
    pub(super) pad: i64,
    /// Output samples of an input row: 1, or more for a transposed convolution.
    pub(super) stride: i64,
    pub(super) adds: [Option<usize>; 2],
    pub(super) condition: Option<Condition>,
}

/// What a speaker adds to the bias of a convolution.
#[derive(Debug)]
pub(super) struct Condition {
    /// The bias without a speaker.
    pub(super) bias: Vec<f32>,
    /// By speaker and number.
    pub(super) speakers: Vec<f32>,
    /// Numbers of a speaker.
    pub(super) numbers: usize,
    /// By output and number.
    pub(super) weights: Vec<f32>,
}

impl Condition {
    /// Writes the bias for a speaker; one that is not there counts as the last.
    pub(super) fn bias(&self, speaker: usize, out: &mut Vec<f32>) {
        let speaker = speaker.min((self.speakers.len() / self.numbers).saturating_sub(1));
        let numbers = &self.speakers[speaker * self.numbers..][..self.numbers];
        out.clear();
        out.extend(
            self.bias
                .iter()
                .zip(self.weights.chunks_exact(self.numbers))
                .map(|(bias, w)| w.iter().zip(numbers).fold(*bias, |sum, (w, x)| sum + w * x)),
        );
    }
}

/// All steps.
#[derive(Debug)]
pub(super) struct Program {
    /// The first is the latents.
    pub(super) tensors: Vec<Tensor>,
    pub(super) ops: Vec<Op>,
    /// The tensor of audio.
    pub(super) last: usize,
}

impl Program {
    pub(super) fn output(&self) -> Tensor {
        self.tensors[self.last]
    }

    pub(super) fn width(&self) -> usize {
        self.tensors[0].channels
    }

    pub(super) fn speakers(&self) -> Option<usize> {
        self.ops.iter().find_map(|op| match op {
            Op::Convolve(c) => c.condition.as_ref().map(|c| c.speakers.len() / c.numbers),
            _ => None,
        })
    }

    pub(super) fn bytes(&self) -> usize {
        let bytes = |op: &Op| match op {
            Op::Convolve(c) => {
                let condition = c.condition.as_ref().map_or(0, |c| c.bias.len() + c.speakers.len() + c.weights.len());
                c.conv.bytes() + condition * size_of::<f32>()
            }
            _ => 0,
        };
        self.ops.iter().map(bytes).sum()
    }

    /// Gives tensors that are not needed at the same time the same buffer.
    pub(super) fn assign_slots(&mut self) {
        let mut last_use = vec![0; self.tensors.len()];
        for (i, op) in self.ops.iter().enumerate() {
            op.reads().for_each(|t| last_use[t] = i);
        }
        last_use[self.last] = usize::MAX;
        let (mut free, mut slots) = (Vec::new(), 0);
        for (i, op) in self.ops.iter().enumerate() {
            if let Some(out) = op.makes() {
                self.tensors[out].slot = free.pop().unwrap_or_else(|| {
                    slots += 1;
                    slots - 1
                });
                // Made and never read.
                if last_use[out] <= i {
                    free.push(self.tensors[out].slot);
                }
            }
            let mut done: Vec<usize> = op.reads().filter(|t| *t != 0 && last_use[*t] == i).collect();
            done.sort_unstable();
            done.dedup();
            free.extend(done.into_iter().map(|t| self.tensors[t].slot));
        }
    }
}

impl Op {
    /// Tensors that it reads.
    pub(super) fn reads(&self) -> impl Iterator<Item = usize> + use<> {
        let all = match self {
            Self::Convolve(c) => [Some(c.x), c.adds[0], c.adds[1]],
            Self::Sum { parts, .. } => [Some(parts[0]), Some(parts[1]), None],
            Self::Tanh { x } => [Some(*x), None, None],
        };
        all.into_iter().flatten()
    }

    /// The tensor that it makes, if it is not one that was there.
    pub(super) fn makes(&self) -> Option<usize> {
        match self {
            Self::Convolve(c) => Some(c.out),
            Self::Sum { out, .. } => Some(*out),
            Self::Tanh { .. } => None,
        }
    }
}
