//! Buffers of one run, and the run itself.

use std::ops::Range;

use omni_flow_kernels::Tier;
use omni_flow_kernels::conv::{ConvInput, ConvOutput};

use super::program::{Convolution, Op, Program, Tensor};

/// No rows, whatever is added to them by minimum and maximum.
const NOTHING: Range<i64> = Range { start: i64::MAX, end: i64::MIN };

/// The buffers of one run at a time. They grow to what a run needs and are used again.
#[derive(Default)]
pub(super) struct Workspace {
    slots: Vec<Vec<f32>>,
    /// Per tensor: the rows that are needed, and the first row in its buffer.
    spans: Vec<Range<i64>>,
    bases: Vec<i64>,
    scratch: Vec<f32>,
    bias: Vec<f32>,
}

impl Workspace {
    pub(super) fn bytes(&self) -> usize {
        let floats = self.scratch.capacity() + self.slots.iter().map(Vec::capacity).sum::<usize>();
        floats * size_of::<f32>()
    }

    /// Makes the rows `keep` of the output.
    pub(super) fn run(
        &mut self,
        program: &Program,
        tier: Tier,
        latents: &[f32],
        speaker: usize,
        keep: Range<i64>,
    ) -> Vec<f32> {
        let frames = (latents.len() / program.width()) as i64;
        self.plan(program, frames, keep);
        for op in &program.ops {
            match op {
                Op::Convolve(c) => self.convolve(&program.tensors, c, tier, latents, speaker),
                Op::Sum { parts, out } => self.sum(&program.tensors, latents, *parts, *out),
                Op::Tanh { x } => {
                    let (at, slot) = (self.place(&program.tensors, *x), program.tensors[*x].slot);
                    self.slots[slot][at].iter_mut().for_each(|v| *v = v.tanh());
                }
            }
        }
        self.rows(&program.tensors, latents, program.last).to_vec()
    }

    /// Which rows of each tensor the rows `keep` of the last depend on. Rows before the first frame and after the last
    /// are zeros and not made.
    fn plan(&mut self, program: &Program, frames: i64, keep: Range<i64>) {
        self.spans.clear();
        self.spans.resize(program.tensors.len(), NOTHING);
        self.bases.clear();
        self.bases.resize(program.tensors.len(), 0);
        let slots = program.tensors.iter().map(|t| t.slot + 1).max().unwrap_or(0);
        self.slots.resize_with(slots, Vec::new);
        let spans = &mut self.spans;
        let need = |spans: &mut [Range<i64>], t: usize, rows: Range<i64>| {
            let most = frames * program.tensors[t].rate;
            let (low, high) = (rows.start.clamp(0, most), rows.end.clamp(0, most));
            if low < high {
                spans[t] = spans[t].start.min(low)..spans[t].end.max(high);
            }
        };
        need(spans, program.last, keep);
        for op in program.ops.iter().rev() {
            // The rows of what it makes are known: all that read them come later.
            let Some(out) = op.makes() else { continue };
            let rows = spans[out].clone();
            if rows.is_empty() {
                continue;
            }
            match op {
                Op::Convolve(c) => {
                    let made = c.made(&rows);
                    self.bases[out] = made.start * c.stride - if c.stride > 1 { c.pad } else { 0 };
                    let first = made.start - c.lead();
                    need(spans, c.x, first..made.end + c.around() - c.lead());
                }
                _ => self.bases[out] = rows.start,
            }
            if let Op::Convolve(c) = op {
                c.adds.iter().flatten().for_each(|t| need(spans, *t, rows.clone()));
            } else {
                op.reads().for_each(|t| need(spans, t, rows.clone()));
            }
        }
    }

    fn convolve(&mut self, tensors: &[Tensor], c: &Convolution, tier: Tier, latents: &[f32], speaker: usize) {
        let span = self.spans[c.out].clone();
        if span.is_empty() {
            return;
        }
        if let Some(condition) = &c.condition {
            condition.bias(speaker, &mut self.bias);
        }
        let made = c.made(&span);
        let len = (made.end - made.start) as usize * c.conv.columns();
        let (mut slot, mut scratch) = self.take(tensors[c.out].slot, len);
        let x = ConvInput {
            rows: self.rows(tensors, latents, c.x),
            first: self.spans[c.x].start.min(i64::MAX - c.lead()) + c.lead(),
            scale: c.scale,
            slope: c.slope,
        };
        let out = ConvOutput {
            rows: &mut slot[..len],
            first: made.start,
            bias: c.condition.as_ref().map(|_| &self.bias[..]),
            adds: c.adds.map(|t| t.map(|t| self.part(tensors, latents, t, &span))),
        };
        c.conv.run_on(tier, x, out, &mut scratch);
        self.slots[tensors[c.out].slot] = slot;
        self.scratch = scratch;
    }

    fn sum(&mut self, tensors: &[Tensor], latents: &[f32], [a, b]: [usize; 2], out: usize) {
        let span = self.spans[out].clone();
        if span.is_empty() {
            return;
        }
        let len = (span.end - span.start) as usize * tensors[out].channels;
        let (mut slot, scratch) = self.take(tensors[out].slot, len);
        let parts = self.part(tensors, latents, a, &span).iter().zip(self.part(tensors, latents, b, &span));
        slot.iter_mut().zip(parts).for_each(|(out, (a, b))| *out = a + b);
        self.slots[tensors[out].slot] = slot;
        self.scratch = scratch;
    }

    /// Takes out a slot of `len` numbers at least, whatever they are, and the scratch.
    fn take(&mut self, slot: usize, len: usize) -> (Vec<f32>, Vec<f32>) {
        let mut buffer = std::mem::take(&mut self.slots[slot]);
        if buffer.len() < len {
            buffer.resize(len, 0.0);
        }
        (buffer, std::mem::take(&mut self.scratch))
    }

    /// Where the needed rows of a tensor lie in its buffer.
    fn place(&self, tensors: &[Tensor], t: usize) -> Range<usize> {
        let (span, channels) = (&self.spans[t], tensors[t].channels);
        if span.is_empty() {
            return 0..0;
        }
        (span.start - self.bases[t]) as usize * channels..(span.end - self.bases[t]) as usize * channels
    }

    /// The needed rows of a tensor.
    fn rows<'a>(&'a self, tensors: &[Tensor], latents: &'a [f32], t: usize) -> &'a [f32] {
        let at = self.place(tensors, t);
        if t == 0 { &latents[at] } else { &self.slots[tensors[t].slot][at] }
    }

    /// Some of them.
    fn part<'a>(&'a self, tensors: &[Tensor], latents: &'a [f32], t: usize, rows: &Range<i64>) -> &'a [f32] {
        let (from, channels) = (self.spans[t].start, tensors[t].channels);
        let at = (rows.start - from) as usize * channels..(rows.end - from) as usize * channels;
        &self.rows(tensors, latents, t)[at]
    }
}

impl Convolution {
    /// The rows of its own kind that hold the samples `rows`: the same, or whole strides.
    fn made(&self, rows: &Range<i64>) -> Range<i64> {
        if self.stride == 1 {
            return rows.clone();
        }
        let up = |n: i64| n.div_euclid(self.stride) + i64::from(n.rem_euclid(self.stride) != 0);
        (rows.start + self.pad).div_euclid(self.stride)..up(rows.end + self.pad)
    }

    /// Rows that it sees beyond one.
    fn around(&self) -> i64 {
        ((self.conv.taps() - 1) * self.conv.dilation()) as i64
    }

    /// How many of those come before.
    fn lead(&self) -> i64 {
        if self.stride == 1 { self.pad } else { self.around() }
    }
}
