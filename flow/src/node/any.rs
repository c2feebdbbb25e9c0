//! Steps whose Rust types are erased, so that a graph can hold them.

use crate::error::{ErrorKind, RunError};
use crate::{Chunk, Emit, Item, Stamp, Step, StepError};

/// A [`Step`] over chunks. What it makes is put behind what `out` holds; after an error or a panic `out` is worthless.
pub(crate) trait AnyStep: Send {
    fn step(&mut self, chunk: Chunk, out: &mut Vec<Chunk>) -> Result<(), StepError>;
    fn fence(&mut self);
    fn end(&mut self, stamp: &Stamp, out: &mut Vec<Chunk>) -> Result<(), StepError>;
}

pub(crate) struct Erased<S: Step> {
    step: S,
    emit: Emit<S::Out>,
}

impl<S: Step> Erased<S> {
    pub(crate) fn new(step: S) -> Self {
        Self { step, emit: Emit::default() }
    }
}

impl<S: Step> AnyStep for Erased<S> {
    fn step(&mut self, chunk: Chunk, out: &mut Vec<Chunk>) -> Result<(), StepError> {
        let input = S::In::from_payload(chunk.payload).map_err(|p| {
            let text = format!("got {}, takes {}", p.medium().name(), S::In::MEDIUM.name());
            RunError::new(ErrorKind::Format, "", text)
        })?;
        // The step writes into the caller's vector itself.
        std::mem::swap(&mut self.emit.chunks, out);
        let done = self.step.step(&chunk.stamp, input, &mut self.emit);
        std::mem::swap(&mut self.emit.chunks, out);
        done
    }
    fn fence(&mut self) {
        self.step.fence();
    }
    fn end(&mut self, stamp: &Stamp, out: &mut Vec<Chunk>) -> Result<(), StepError> {
        std::mem::swap(&mut self.emit.chunks, out);
        let done = self.step.end(stamp, &mut self.emit);
        std::mem::swap(&mut self.emit.chunks, out);
        done
    }
}
