//! A WAV file that is valid while it grows.
//!
//! Samples are written first, then the whole header is rewritten with one call, at the latest after every half second of
//! audio; before the first samples the sizes say "until the end". So whenever the process is killed, the header states
//! only what lies behind it, and a player finds all but the last half second (a reader of ours, with the file's length
//! at hand, never reads past it). Nothing is synced to the disk: a power cut may lose what the system had not written.

use std::fs::File;
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;

use omni_flow_kernels::Tally;

use super::WavWriteError;
use super::header::{WavSizes, build_header, most_payload, wav_sizes};
use crate::pcm::PcmSpec;

/// What a finished file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WavWritten {
    /// Whole frames.
    pub frames: u64,
    /// Bytes of the whole file.
    pub bytes: u64,
}

/// Writes a WAV file of less than 4 GiB. After an error of the system the file stays valid up to the last whole frame
/// that was written, and every later call is [`WavWriteError::Closed`]. Dropping a writer finishes the file as far as
/// that goes without reporting errors.
#[derive(Debug)]
pub struct WavWriter<W: Write + Seek> {
    output: W,
    name: String,
    spec: PcmSpec,
    /// Where in the output the file begins.
    start: u64,
    header_len: u64,
    /// Payload bytes in the output, and those that its header states.
    written: u64,
    stated: u64,
    state_every: u64,
    scratch: Vec<u8>,
    open: bool,
}

impl WavWriter<File> {
    /// Creates or replaces a file.
    ///
    /// # Errors
    /// [`WavWriteError::Io`].
    pub fn create(path: impl AsRef<Path>, spec: PcmSpec) -> Result<Self, WavWriteError> {
        let name = path.as_ref().display().to_string();
        match File::create(path.as_ref()) {
            Ok(file) => Self::new(file, name, spec),
            Err(source) => Err(WavWriteError::Io { name, frames: 0, source }),
        }
    }
}

impl<W: Write + Seek> WavWriter<W> {
    /// Writes a header at the output's position; `name` is for messages.
    ///
    /// # Errors
    /// [`WavWriteError::Io`].
    pub fn new(output: W, name: impl Into<String>, spec: PcmSpec) -> Result<Self, WavWriteError> {
        let header = build_header(&spec, WavSizes::UNKNOWN);
        let half_second = u64::from(spec.rate().div_ceil(2)) * spec.frame_bytes() as u64;
        let mut writer = Self {
            output,
            name: name.into(),
            spec,
            start: 0,
            header_len: header.len() as u64,
            written: 0,
            stated: 0,
            state_every: half_second,
            scratch: Vec::new(),
            open: false,
        };
        let begin = |w: &mut Self| {
            w.start = w.output.stream_position()?;
            w.output.write_all(&header)
        };
        match begin(&mut writer) {
            Ok(()) => {
                writer.open = true;
                Ok(writer)
            }
            Err(source) => Err(writer.failure(source)),
        }
    }

    /// Format of the file.
    pub fn spec(&self) -> PcmSpec {
        self.spec
    }

    /// Whole frames in the file.
    pub fn frames(&self) -> u64 {
        self.written / self.spec.frame_bytes() as u64
    }

    /// Writes interleaved samples; tells how many had to be repaired. All of a call is written or, where it does not fit
    /// or is not whole frames, nothing.
    ///
    /// # Errors
    /// [`WavWriteError::TooLong`], [`WavWriteError::CutFrame`]: nothing of the call was written, and the file can go on;
    /// [`WavWriteError::Io`], after which it is closed; [`WavWriteError::Closed`].
    pub fn write(&mut self, samples: &[f32]) -> Result<Tally, WavWriteError> {
        let bytes = samples.len().saturating_mul(self.spec.format().bytes());
        self.admit(bytes)?;
        let mut tally = Tally::default();
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut result = Ok(());
        for part in samples.chunks(SCRATCH_SAMPLES) {
            scratch.clear();
            tally += self.spec.format().encode(part, &mut scratch);
            result = self.put(&scratch);
            if result.is_err() {
                break;
            }
        }
        self.scratch = scratch;
        result.map(|()| tally)
    }

    /// Writes whole frames as they are to be stored, under the same rule.
    ///
    /// # Errors
    /// As [`WavWriter::write`].
    pub fn write_stored(&mut self, frames: &[u8]) -> Result<(), WavWriteError> {
        self.admit(frames.len())?;
        self.put(frames)
    }

    /// Brings the header up to date now.
    ///
    /// # Errors
    /// [`WavWriteError::Io`], [`WavWriteError::Closed`].
    pub fn state_sizes(&mut self) -> Result<(), WavWriteError> {
        if !self.open {
            return Err(WavWriteError::Closed { name: self.name.clone() });
        }
        self.patch().map_err(|source| self.fail(source))
    }

    /// Writes the pad byte, if one is due, and the final sizes. Dropping without this leaves errors unseen.
    ///
    /// # Errors
    /// [`WavWriteError::Io`], [`WavWriteError::Closed`].
    pub fn finish(mut self) -> Result<WavWritten, WavWriteError> {
        if !self.open {
            return Err(WavWriteError::Closed { name: self.name.clone() });
        }
        self.end().map_err(|source| self.fail(source))
    }

    fn admit(&self, bytes: usize) -> Result<(), WavWriteError> {
        if !self.open {
            return Err(WavWriteError::Closed { name: self.name.clone() });
        }
        let frame_bytes = self.spec.frame_bytes();
        if !bytes.is_multiple_of(frame_bytes) {
            return Err(WavWriteError::CutFrame { name: self.name.clone(), bytes, frame_bytes });
        }
        match self.written.checked_add(bytes as u64) {
            Some(sum) if sum <= most_payload(&self.spec) => Ok(()),
            _ => Err(WavWriteError::TooLong { name: self.name.clone(), frames: self.frames() }),
        }
    }

    /// Writes payload and, when it is time, the header.
    fn put(&mut self, bytes: &[u8]) -> Result<(), WavWriteError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.output.write(rest) {
                Ok(0) => return Err(self.fail(ErrorKind::WriteZero.into())),
                Ok(n) => {
                    self.written += n as u64;
                    rest = rest.get(n..).unwrap_or_default();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.fail(error)),
            }
        }
        if self.stated == 0 || self.written - self.stated >= self.state_every {
            self.patch().map_err(|source| self.fail(source))?;
        }
        Ok(())
    }

    /// States all whole frames in the header and goes back to the end.
    fn patch(&mut self) -> io::Result<()> {
        let whole = self.written - self.written % self.spec.frame_bytes() as u64;
        let sizes = wav_sizes(&self.spec, whole).ok_or(ErrorKind::FileTooLarge)?;
        self.output.seek(SeekFrom::Start(self.start))?;
        self.output.write_all(&build_header(&self.spec, sizes))?;
        self.output.seek(SeekFrom::Start(self.start + self.header_len + self.written))?;
        self.stated = whole;
        Ok(())
    }

    fn end(&mut self) -> io::Result<WavWritten> {
        let pad = self.written % 2;
        if pad == 1 {
            self.output.write_all(&[0])?;
        }
        self.patch()?;
        self.output.seek(SeekFrom::Start(self.start + self.header_len + self.written + pad))?;
        self.output.flush()?;
        self.open = false;
        Ok(WavWritten { frames: self.frames(), bytes: self.header_len + self.written + pad })
    }

    /// Closes the file at its last whole frame. Overwriting the header needs no new space, so it works on a full disk.
    fn fail(&mut self, source: io::Error) -> WavWriteError {
        if self.open {
            self.open = false;
            // The error that is reported is the first one.
            let _ = self.patch().and_then(|()| self.output.flush());
        }
        self.failure(source)
    }

    fn failure(&self, source: io::Error) -> WavWriteError {
        WavWriteError::Io { name: self.name.clone(), frames: self.frames(), source }
    }
}

impl<W: Write + Seek> Drop for WavWriter<W> {
    fn drop(&mut self) {
        if self.open {
            let _ = self.end();
        }
    }
}

/// Samples that are converted at a time.
const SCRATCH_SAMPLES: usize = 8192;
