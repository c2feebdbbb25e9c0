//! Any audio file, decoded to interleaved `f32` packet by packet.
//!
//! The first bytes decide: WAV is read by [`crate::wav`], Ogg Opus by [`crate::ogg_opus`], all else by symphonia
//! (feature `symphonia`, on by default), with our decoder where Opus lies in WebM, Matroska or MP4. Memory is bounded
//! by a packet, whatever the length of the file. What is not supported is a typed error that names the file and what
//! is supported. Nothing is resampled or mixed down.

mod error;
mod input;
mod opus;
#[cfg(feature = "symphonia")]
mod opus_track;
#[cfg(feature = "symphonia")]
mod packets;
mod sniff;

use std::path::Path;
use std::time::Duration;

pub use error::{AudioFileError, FORMATS};
pub use input::{Input, Media};
use sniff::Kind;

use crate::pcm::{Layout, PcmSpec, SampleFormat};
use crate::wav::{WavOrigin, WavSource};

/// Frames that [`AudioFile::next`] gives at most from a WAV file.
const WAV_BLOCK: usize = 1024;

/// An open audio file, read from front to back.
pub struct AudioFile {
    name: String,
    decoder: Decoder,
}

enum Decoder {
    Wav(Box<WavSource<Input>>),
    Opus(Box<opus::OpusFile>),
    #[cfg(feature = "symphonia")]
    Packets(Box<packets::Packets>),
}

/// All of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// Interleaved samples.
    pub samples: Vec<f32>,
    /// Frames per second.
    pub rate: u32,
    /// Samples in a frame.
    pub channels: usize,
}

impl AudioFile {
    /// Opens a file, or anything else that a path leads to, and reads its header.
    ///
    /// # Errors
    /// As [`AudioFile::new`]; [`AudioFileError::Io`] if there is nothing to open.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, AudioFileError> {
        let name = path.as_ref().display().to_string();
        match Input::open(path.as_ref()) {
            Ok(input) => Self::new(input, name),
            Err(source) => Err(AudioFileError::Io { name, source }),
        }
    }

    /// Reads the header from an input; `name` is for messages.
    ///
    /// # Errors
    /// [`AudioFileError::Io`], [`AudioFileError::Empty`], [`AudioFileError::Wav`], [`AudioFileError::Unsupported`], or
    /// [`AudioFileError::Damaged`] if the header contradicts itself.
    pub fn new(input: Input, name: impl Into<String>) -> Result<Self, AudioFileError> {
        let (mut input, name) = (input, name.into());
        let head = input.peek().map_err(|source| AudioFileError::Io { name: name.clone(), source })?;
        let decoder = match sniff::kind(head) {
            Kind::Empty => return Err(AudioFileError::Empty { name }),
            Kind::Wav => {
                let origin = input.len().map_or(WavOrigin::Pipe, |len| WavOrigin::File { len });
                Decoder::Wav(Box::new(WavSource::new(input, name.clone(), origin)?))
            }
            Kind::OggOpus { channels } => Decoder::Opus(Box::new(opus::OpusFile::new(input, &name, channels)?)),
            #[cfg(feature = "symphonia")]
            Kind::Other => Decoder::Packets(Box::new(packets::Packets::new(input, &name)?)),
            #[cfg(not(feature = "symphonia"))]
            Kind::Other => return Err(AudioFileError::Unsupported { name, what: "its format".into() }),
        };
        Ok(Self { name, decoder })
    }

    /// Path or name, as it stands in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Rate and layout of what [`AudioFile::next`] gives; the format is always `f32`.
    pub fn spec(&self) -> PcmSpec {
        match &self.decoder {
            Decoder::Wav(wav) => as_f32(wav.spec()),
            Decoder::Opus(opus) => opus.spec(),
            #[cfg(feature = "symphonia")]
            Decoder::Packets(packets) => packets.spec(),
        }
    }

    /// Frames of the whole file, if known. From a WAV file this is what is there; Ogg Opus is known at its end only; other
    /// files state it, and may be wrong.
    pub fn total_frames(&self) -> Option<u64> {
        match &self.decoder {
            Decoder::Wav(wav) => wav.total_frames(),
            Decoder::Opus(opus) => opus.total_frames(),
            #[cfg(feature = "symphonia")]
            Decoder::Packets(packets) => packets.total_frames(),
        }
    }

    /// Pieces of the file that could not be decoded and were left out: cut bytes of a WAV file, losses in
    /// Ogg Opus (their time is kept), damaged packets of others.
    pub fn damage(&self) -> u64 {
        match &self.decoder {
            Decoder::Wav(wav) => wav.summary().map_or(0, |s| s.truncated_bytes),
            Decoder::Opus(opus) => opus.damaged(),
            #[cfg(feature = "symphonia")]
            Decoder::Packets(packets) => packets.damaged(),
        }
    }

    /// Time of the audio that the header states and that is not in the file: one that was cut short. Of WAV files on disk
    /// it is known at once, else at the end of the file; `None` as long as nothing is known to be missing. A header that
    /// states no size, or the stand-ins of programs that stream, promises nothing.
    pub fn missing(&self) -> Option<Duration> {
        let (frames, rate) = match &self.decoder {
            Decoder::Wav(wav) => (wav.missing_frames(), wav.spec().rate()),
            Decoder::Opus(_) => return None,
            #[cfg(feature = "symphonia")]
            Decoder::Packets(packets) => (packets.missing_frames(), packets.spec().rate()),
        };
        (frames > 0).then(|| Duration::from_secs_f64(frames as f64 / f64::from(rate.max(1))))
    }

    /// Appends the next packet to `out`; gives its number of frames, 0 at the end of the file.
    ///
    /// # Errors
    /// [`AudioFileError::Io`], [`AudioFileError::Wav`], [`AudioFileError::FormatChanged`], or [`AudioFileError::Damaged`] if
    /// nothing in the file could be decoded; what was appended before is good. Final for this file.
    pub fn next(&mut self, out: &mut Vec<f32>) -> Result<usize, AudioFileError> {
        match &mut self.decoder {
            Decoder::Wav(wav) => Ok(wav.read(WAV_BLOCK, out)?),
            Decoder::Opus(opus) => opus.next(&self.name, out),
            #[cfg(feature = "symphonia")]
            Decoder::Packets(packets) => packets.next(&self.name, out),
        }
    }
}

impl std::fmt::Debug for AudioFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AudioFile").field("name", &self.name).field("spec", &self.spec()).finish_non_exhaustive()
    }
}

/// Decodes a whole file of at most `max_frames` frames; a longer one is refused once that much was read.
///
/// # Errors
/// As [`AudioFile::open`] and [`AudioFile::next`]; [`AudioFileError::TooLong`].
pub fn decode(path: impl AsRef<Path>, max_frames: u64) -> Result<Decoded, AudioFileError> {
    let mut file = AudioFile::open(path)?;
    let (spec, mut samples, mut frames) = (file.spec(), Vec::new(), 0u64);
    loop {
        match file.next(&mut samples)? {
            0 => return Ok(Decoded { samples, rate: spec.rate(), channels: spec.channels() }),
            n => frames += n as u64,
        }
        if frames > max_frames {
            return Err(AudioFileError::TooLong { name: file.name, max_frames });
        }
    }
}

fn as_f32(spec: PcmSpec) -> PcmSpec {
    // Rate and layout were checked when `spec` was made.
    PcmSpec::new(SampleFormat::F32, spec.rate(), spec.layout()).unwrap_or(spec)
}

/// Checks what a header states.
fn checked(name: &str, rate: u32, channels: usize) -> Result<PcmSpec, AudioFileError> {
    let channels = u16::try_from(channels).unwrap_or(u16::MAX);
    PcmSpec::new(SampleFormat::F32, rate, Layout::of(channels))
        .map_err(|e| AudioFileError::Damaged { name: name.to_owned(), what: e.to_string() })
}
