//! Steps whose Rust types are erased, so that a graph can hold them.

use crate::error::{ErrorKind, RunError};
use crate::{Chunk, Emit, Item, Stamp, Step, StepError};

/// A [`Step`] over chunks.
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
    fn collect(&mut self, out: &mut Vec<Chunk>) {
        out.extend(self.emit.drain().map(|(stamp, v)| Chunk { stamp, payload: v.into_payload() }));
    }
}

impl<S: Step> AnyStep for Erased<S> {
    fn step(&mut self, chunk: Chunk, out: &mut Vec<Chunk>) -> Result<(), StepError> {
        let input = S::In::from_payload(chunk.payload).map_err(|p| {
            let text = format!("got {}, takes {}", p.medium().name(), S::In::MEDIUM.name());
            RunError::new(ErrorKind::Format, "", text)
        })?;
        self.step.step(&chunk.stamp, input, &mut self.emit)?;
        self.collect(out);
        Ok(())
    }
    fn fence(&mut self) {
        self.emit.drain().for_each(drop);
        self.step.fence();
    }
    fn end(&mut self, stamp: &Stamp, out: &mut Vec<Chunk>) -> Result<(), StepError> {
        self.step.end(stamp, &mut self.emit)?;
        self.collect(out);
        Ok(())
    }
}
