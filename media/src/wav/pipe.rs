//! WAV to an output that cannot seek.

use std::io::{self, Write};

use omni_flow_kernels::Tally;

use super::WavWriteError;
use super::header::{WavSizes, build_header};
use crate::pcm::PcmSpec;

/// Writes a header whose sizes are 0xFFFFFFFF ("until the end"), then samples without limit.
#[derive(Debug)]
pub struct WavPipe<W> {
    output: W,
    name: String,
    spec: PcmSpec,
    frames: u64,
    scratch: Vec<u8>,
}

impl<W: Write> WavPipe<W> {
    /// Writes the header; `name` is for messages.
    ///
    /// # Errors
    /// [`WavWriteError::Io`].
    pub fn new(output: W, name: impl Into<String>, spec: PcmSpec) -> Result<Self, WavWriteError> {
        let mut pipe = Self { output, name: name.into(), spec, frames: 0, scratch: Vec::new() };
        let header = Self::header(&spec);
        pipe.output.write_all(&header).map_err(|e| pipe.failure(e))?;
        Ok(pipe)
    }

    /// The bytes of a streaming header, for an output that is no `Write`.
    pub fn header(spec: &PcmSpec) -> Vec<u8> {
        build_header(spec, WavSizes::UNKNOWN)
    }

    /// Writes interleaved samples, whole frames only; tells how many had to be repaired.
    ///
    /// # Errors
    /// [`WavWriteError::CutFrame`], and then nothing was written; [`WavWriteError::Io`].
    pub fn write(&mut self, samples: &[f32]) -> Result<Tally, WavWriteError> {
        let (bytes, frame_bytes) = (samples.len().saturating_mul(self.spec.format().bytes()), self.spec.frame_bytes());
        if !bytes.is_multiple_of(frame_bytes) {
            return Err(WavWriteError::CutFrame { name: self.name.clone(), bytes, frame_bytes });
        }
        self.scratch.clear();
        let tally = self.spec.format().encode(samples, &mut self.scratch);
        self.output.write_all(&self.scratch).map_err(|e| self.failure(e))?;
        self.frames += (bytes / frame_bytes) as u64;
        Ok(tally)
    }

    /// Flushes, and gives the output back.
    ///
    /// # Errors
    /// [`WavWriteError::Io`].
    pub fn finish(mut self) -> Result<W, WavWriteError> {
        self.output.flush().map_err(|e| self.failure(e))?;
        Ok(self.output)
    }

    fn failure(&self, source: io::Error) -> WavWriteError {
        WavWriteError::Io { name: self.name.clone(), frames: self.frames, source }
    }
}
