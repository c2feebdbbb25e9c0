//! The second half of a voice (a HiFi-GAN generator) on kernels of our own.
//!
//! The operators between latents and audio are read from the voice's own file and become a list of convolutions with
//! what surrounds them fused in: activations before, sums after. Nothing is told by names or sizes, so any number of
//! up-samplings, residual blocks of either type, and speakers will do.
//!
//! Promises: a sample is the same, bit for bit, whatever piece it is made in, as long as the piece has the frames around
//! it that it depends on; of those, every inner tensor is made only as far as the samples asked for need it. Any number
//! of threads may run one vocoder. Does not promise to know every voice: what it does not know it refuses to read.

mod lower;
mod program;
#[cfg(test)]
mod tests;
mod workspace;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use omni_flow_kernels::Tier;

use super::onnx::OnnxGraph;
use super::split::Split;
use super::weights::Refusal;
use program::Program;
use workspace::Workspace;

/// Buffers kept for later runs, at most; more runs at once make and drop their own.
const SPARE: usize = 4;
/// Bytes of one that is kept, at most.
const KEPT: usize = 64 << 20;

/// A vocoder with its weights.
pub(super) struct Vocoder {
    program: Program,
    hop: usize,
    tier: Tier,
    spare: Mutex<Vec<Workspace>>,
}

impl Vocoder {
    /// Reads what lies between `split` and the output of `graph`.
    ///
    /// # Errors
    /// [`Refusal`]: an operator is not known here, or a weight is damaged.
    pub(super) fn read(graph: &OnnxGraph<'_>, split: &Split, tier: Tier) -> Result<Self, Refusal> {
        let program = lower::lower(graph, &split.latents)?;
        if program.output().rate != split.reach.hop as i64 {
            return Err(Refusal::unknown("the output has another rate than its reach says"));
        }
        Ok(Self { program, hop: split.reach.hop, tier, spare: Mutex::new(Vec::new()) })
    }

    /// Numbers of a latent frame.
    pub(super) fn width(&self) -> usize {
        self.program.width()
    }

    /// Speakers it tells apart, if it does.
    pub(super) fn speakers(&self) -> Option<usize> {
        self.program.speakers()
    }

    /// Memory of the weights.
    pub(super) fn bytes(&self) -> usize {
        self.program.bytes()
    }

    /// The audio of the frames `keep` among `rows`, which are frames of [`width`](Self::width) numbers; silence is taken
    /// to be around them. A speaker that is not there counts as the last.
    pub(super) fn run(&self, rows: &[f32], speaker: usize, keep: Range<usize>) -> Vec<f32> {
        let mut workspace = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        let samples = (keep.start * self.hop) as i64..(keep.end * self.hop) as i64;
        let audio = workspace.run(&self.program, self.tier, rows, speaker, samples);
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE && workspace.bytes() <= KEPT {
            spare.push(workspace);
        }
        audio
    }
}
