//! Ogg Opus files, by the reader of this crate: symphonia has no decoder for Opus.
//!
//! Always 48 kHz, the codec's own clock, with the channels of the first stream; chained streams with other channels are
//! mixed to those. The length is exact (pre-skip and end trim are applied). Damaged pages are concealed and counted.

use std::io::{ErrorKind, Read};

use super::{AudioFileError, Input, checked};
use crate::ogg_opus::{HeadError, OggOpusDecoder, OggReadError};
use crate::opus::TICKS;
use crate::pcm::PcmSpec;

/// Bytes given to the decoder at a time. Every page that lies after a loss may be worth 10 s of concealment, so few pages
/// per call bound what one call can append, whatever the file says.
const STEP: usize = 256;

pub(super) struct OpusFile {
    input: Input,
    decoder: OggOpusDecoder,
    spec: PcmSpec,
    /// Samples that came while the head was looked for.
    first: Vec<f32>,
    frames: u64,
    ended: bool,
}

impl OpusFile {
    /// Reads up to the head of the first stream, of which `channels` is known already; more than two are refused.
    pub(super) fn new(input: Input, name: &str, channels: u8) -> Result<Self, AudioFileError> {
        let channels = channels.clamp(1, 2);
        let decoder = OggOpusDecoder::new(TICKS, channels)
            .map_err(|e| AudioFileError::Damaged { name: name.to_owned(), what: e.to_string() })?;
        let spec = checked(name, TICKS, usize::from(channels))?;
        let mut file = Self { input, decoder, spec, first: Vec::new(), frames: 0, ended: false };
        let mut first = Vec::new();
        while file.decoder.stats().streams == 0 && !file.ended {
            file.advance(&mut first).map_err(|failure| failure.named(name))?;
        }
        file.first = first;
        Ok(file)
    }

    pub(super) fn spec(&self) -> PcmSpec {
        self.spec
    }

    pub(super) fn total_frames(&self) -> Option<u64> {
        self.ended.then_some(self.frames)
    }

    pub(super) fn damaged(&self) -> u64 {
        let stats = self.decoder.stats();
        stats.losses + stats.illegal + stats.discontinuities
    }

    pub(super) fn next(&mut self, name: &str, out: &mut Vec<f32>) -> Result<usize, AudioFileError> {
        let before = out.len();
        out.append(&mut self.first);
        while out.len() == before && !self.ended {
            let result = self.advance(out);
            self.ended |= result.is_err();
            result.map_err(|failure| failure.named(name))?;
        }
        let frames = (out.len() - before) / self.spec.channels();
        self.frames += frames as u64;
        Ok(frames)
    }

    fn advance(&mut self, out: &mut Vec<f32>) -> Result<(), Failure> {
        let mut bytes = [0; STEP];
        match self.input.read(&mut bytes) {
            Ok(0) => {
                self.ended = true;
                Ok(self.decoder.finish(out)?)
            }
            Ok(n) => Ok(self.decoder.push(&bytes[..n], out)?),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(Failure::Io(error)),
        }
    }
}

enum Failure {
    Io(std::io::Error),
    Ogg(OggReadError),
}

impl From<OggReadError> for Failure {
    fn from(error: OggReadError) -> Self {
        Self::Ogg(error)
    }
}

impl Failure {
    fn named(self, name: &str) -> AudioFileError {
        let name = name.to_owned();
        match self {
            Self::Io(source) => AudioFileError::Io { name, source },
            Self::Ogg(OggReadError::Head(HeadError::Channels { family, channels })) => {
                let what = format!("Ogg Opus with mapping family {family} and {channels} channels");
                AudioFileError::Unsupported { name, what }
            }
            Self::Ogg(OggReadError::Head(HeadError::Version { version })) => {
                AudioFileError::Unsupported { name, what: format!("Ogg Opus of version {version}") }
            }
            Self::Ogg(error) => AudioFileError::Damaged { name, what: error.to_string() },
        }
    }
}
