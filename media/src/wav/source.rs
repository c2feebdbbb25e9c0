//! A WAV file or pipe, read a block at a time.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use omni_flow_kernels::Tally;

use super::{WavFileError, WavOrigin, WavReader, WavSummary};
use crate::pcm::PcmSpec;

/// Bytes read at a time.
const BLOCK: usize = 16 * 1024;

/// Drives a [`WavReader`] from anything that can be read. Memory: two blocks of 16 KiB.
#[derive(Debug)]
pub struct WavSource<R> {
    input: R,
    name: String,
    reader: WavReader,
    spec: PcmSpec,
    block: Box<[u8]>,
    /// Whole frames as stored, of which those before `taken` were given out.
    frames: Vec<u8>,
    taken: usize,
    summary: Option<WavSummary>,
    tally: Tally,
}

impl WavSource<File> {
    /// Opens a file, or a named pipe, and reads its header.
    ///
    /// # Errors
    /// [`WavFileError::Io`], or [`WavFileError::Wav`] if it does not begin as a WAV that we read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, WavFileError> {
        let name = path.as_ref().display().to_string();
        let open = || {
            let file = File::open(path.as_ref())?;
            let meta = file.metadata()?;
            Ok((file, if meta.is_file() { WavOrigin::File { len: meta.len() } } else { WavOrigin::Pipe }))
        };
        match open() {
            Ok((file, origin)) => Self::new(file, name, origin),
            Err(source) => Err(WavFileError::Io { name, source }),
        }
    }
}

impl<R: Read> WavSource<R> {
    /// Reads the header from an input whose length is not known; `name` is for messages.
    ///
    /// # Errors
    /// As [`WavSource::open`].
    pub fn pipe(input: R, name: impl Into<String>) -> Result<Self, WavFileError> {
        Self::new(input, name.into(), WavOrigin::Pipe)
    }

    /// Reads the header from an input of this origin.
    ///
    /// # Errors
    /// As [`WavSource::open`].
    pub fn new(input: R, name: String, origin: WavOrigin) -> Result<Self, WavFileError> {
        let mut reader = WavReader::new(origin);
        let mut input = input;
        let mut block = vec![0; BLOCK].into_boxed_slice();
        let mut frames = Vec::new();
        let mut summary = None;
        let spec = loop {
            if let (Some(spec), true) = (reader.spec(), reader.at_samples()) {
                break spec;
            }
            match advance(&mut input, &name, &mut reader, &mut block, &mut frames)? {
                None => {}
                Some(end) => {
                    summary = Some(end);
                    break end.spec;
                }
            }
        };
        Ok(Self { input, name, reader, spec, block, frames, taken: 0, summary, tally: Tally::default() })
    }

    /// Format of the samples.
    pub fn spec(&self) -> PcmSpec {
        self.spec
    }

    /// Whole frames of the stream, if known; see [`WavReader::total_frames`].
    pub fn total_frames(&self) -> Option<u64> {
        self.reader.total_frames()
    }

    /// Frames that the header states and that are not there, a cut one included; see [`WavReader::missing_bytes`].
    pub fn missing_frames(&self) -> u64 {
        self.reader.missing_bytes().div_ceil(self.spec.frame_bytes() as u64)
    }

    /// What was found, after the end was reached.
    pub fn summary(&self) -> Option<WavSummary> {
        self.summary
    }

    /// Samples that were no numbers and became 0, so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Appends at most `max_frames` frames to `out` as interleaved `f32`; gives the number of frames, 0 at the end.
    ///
    /// # Errors
    /// [`WavFileError::Io`], [`WavFileError::Wav`]; what was appended by earlier calls is good.
    pub fn read(&mut self, max_frames: usize, out: &mut Vec<f32>) -> Result<usize, WavFileError> {
        let (format, channels) = (self.spec.format(), self.spec.channels());
        let before = out.len();
        let bytes = self.stored(max_frames)?.len();
        let stored = &self.frames[self.taken..self.taken + bytes];
        self.tally += format.decode(stored, out);
        self.taken += bytes;
        Ok((out.len() - before) / channels)
    }

    /// As [`WavSource::read`], but gives the frames as they are stored.
    ///
    /// # Errors
    /// As [`WavSource::read`].
    pub fn read_stored(&mut self, max_frames: usize, out: &mut Vec<u8>) -> Result<usize, WavFileError> {
        let bytes = self.stored(max_frames)?.len();
        out.extend_from_slice(&self.frames[self.taken..self.taken + bytes]);
        self.taken += bytes;
        Ok(bytes / self.spec.frame_bytes())
    }

    /// Up to `max_frames` frames that wait to be taken; empty only at the end (or for a wish of 0).
    fn stored(&mut self, max_frames: usize) -> Result<&[u8], WavFileError> {
        while self.taken == self.frames.len() && self.summary.is_none() && max_frames > 0 {
            self.frames.clear();
            self.taken = 0;
            self.summary = advance(&mut self.input, &self.name, &mut self.reader, &mut self.block, &mut self.frames)?;
        }
        let waiting = &self.frames[self.taken..];
        Ok(&waiting[..waiting.len().min(max_frames.saturating_mul(self.spec.frame_bytes()))])
    }
}

/// Reads one block; gives the summary at the end of the input.
fn advance(
    input: &mut impl Read,
    name: &str,
    reader: &mut WavReader,
    block: &mut [u8],
    frames: &mut Vec<u8>,
) -> Result<Option<WavSummary>, WavFileError> {
    let wav = |source| WavFileError::Wav { name: name.to_owned(), source };
    match input.read(block) {
        Ok(0) => reader.finish(frames).map(Some).map_err(wav),
        Ok(n) => reader.push(&block[..n.min(block.len())], frames).map(|()| None).map_err(wav),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
        Err(source) => Err(WavFileError::Io { name: name.to_owned(), source }),
    }
}
