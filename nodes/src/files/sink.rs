//! A WAV or Ogg Opus file under way: written while it is made, complete when dropped.
//!
//! WAV is valid at any moment. Ogg Opus is valid up to its last page; dropped, it gets its end page as far as the system
//! lets it. All errors name the file.

use std::fs::File;
use std::io::{self, Stdout, Write};
use std::path::Path;

use omni_flow_media::ogg_opus::{OggEncodeError, OggOpusEncoder, OpusTags};
use omni_flow_media::opus::{Application, EncoderConfig, RATES};
use omni_flow_media::pcm::{Layout, PcmSpec, SampleFormat, SpecError};
use omni_flow_media::resample::{Quality, ResampleError, Resampler};
use omni_flow_media::wav::{WavPipe, WavWriteError, WavWriter};
use thiserror::Error;

/// Why a file cannot be written further.
#[derive(Debug, Error)]
pub enum WriteError {
    /// A WAV file.
    #[error("{0}; check the path, its permissions and the space left")]
    Wav(#[from] WavWriteError),
    /// The system, for an Ogg file.
    #[error("cannot write `{name}`: {source}; check the path, its permissions and the space left")]
    Io {
        /// The path, or `standard output`.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// Audio that no file of this kind holds.
    #[error("`{name}`: {source}")]
    Format {
        /// The path.
        name: String,
        /// What is wrong with it.
        source: SpecError,
    },
    /// The Opus encoder.
    #[error("`{name}`: {source}")]
    Encode {
        /// The path.
        name: String,
        /// What is wrong.
        source: OggEncodeError,
    },
    /// No resampler makes a rate for Opus of this one.
    #[error("`{name}`: {source}")]
    Resample {
        /// The path.
        name: String,
        /// What is wrong.
        source: ResampleError,
    },
}

/// What to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// WAV with samples of this format.
    Wav(SampleFormat),
    /// Ogg Opus with so many bits per second.
    Opus(u32),
}

/// Makes sure that a file can be written at `path`, and changes nothing there. Blocks.
///
/// # Errors
/// [`WriteError::Io`] if it cannot.
pub fn probe(path: &Path) -> Result<(), WriteError> {
    let io = |source| WriteError::Io { name: path.display().to_string(), source };
    let there = match path.metadata() {
        // Opening a pipe or a device to look would disturb it.
        Ok(m) if !m.is_file() => return Ok(()),
        Ok(_) => true,
        Err(_) if path.as_os_str() == "-" => return Ok(()),
        Err(_) => false,
    };
    File::options().write(true).create(true).truncate(false).open(path).map_err(io)?;
    if !there {
        std::fs::remove_file(path).map_err(io)?;
    }
    Ok(())
}

/// A file under way.
pub struct Sink {
    inner: Inner,
    rate: u32,
    channels: u16,
    frames: u64,
}

enum Inner {
    Wav(WavWriter<File>),
    Pipe(WavPipe<Stdout>),
    Opus(Box<Opus>),
}

struct Opus {
    encoder: Option<OggOpusEncoder>,
    resampler: Resampler,
    output: Box<dyn Write + Send>,
    name: String,
    scratch: Vec<f32>,
}

/// Longest page of an Ogg file, ms: what a crash loses at most.
const PAGE_MS: u32 = 200;

impl Sink {
    /// Creates or replaces the file at `path`, `-` being standard output, for audio of this rate and channel count.
    /// Blocks.
    ///
    /// # Errors
    /// [`WriteError`], naming the path.
    pub fn create(
        path: &Path,
        container: Container,
        rate: u32,
        channels: u16,
        serial: u32,
    ) -> Result<Self, WriteError> {
        let stdout = path.as_os_str() == "-";
        let name = if stdout { "standard output".to_owned() } else { path.display().to_string() };
        let inner = match container {
            Container::Wav(format) => {
                let spec = PcmSpec::new(format, rate, Layout::of(channels))
                    .map_err(|source| WriteError::Format { name: name.clone(), source })?;
                if stdout {
                    Inner::Pipe(WavPipe::new(io::stdout(), name, spec)?)
                } else {
                    Inner::Wav(WavWriter::create(path, spec)?)
                }
            }
            Container::Opus(bitrate) => {
                let open = || -> io::Result<Box<dyn Write + Send>> {
                    Ok(if stdout { Box::new(io::stdout()) } else { Box::new(File::create(path)?) })
                };
                Inner::Opus(Box::new(Opus::new(open, name, bitrate, rate, channels, serial)?))
            }
        };
        Ok(Self { inner, rate, channels, frames: 0 })
    }
    /// Rate and channels of the audio it takes.
    pub fn format(&self) -> (u32, u16) {
        (self.rate, self.channels)
    }
    /// Frames taken.
    pub fn frames(&self) -> u64 {
        self.frames
    }
    /// Writes interleaved samples. Blocks.
    ///
    /// # Errors
    /// [`WriteError`]; the file is whole up to there.
    pub fn write(&mut self, samples: &[f32]) -> Result<(), WriteError> {
        match &mut self.inner {
            Inner::Wav(w) => drop(w.write(samples)?),
            Inner::Pipe(w) => drop(w.write(samples)?),
            Inner::Opus(o) => o.write(samples)?,
        }
        self.frames += (samples.len() / usize::from(self.channels)) as u64;
        Ok(())
    }
    /// Completes the file. Blocks.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn finish(self) -> Result<(), WriteError> {
        match self.inner {
            Inner::Wav(w) => drop(w.finish()?),
            Inner::Pipe(w) => {
                w.finish()?;
            }
            Inner::Opus(mut o) => o.finish()?,
        }
        Ok(())
    }
}

impl Opus {
    /// `open` is called once the encoder is there: a file that it would not write stays as it is.
    fn new(
        open: impl FnOnce() -> io::Result<Box<dyn Write + Send>>,
        name: String,
        bitrate: u32,
        rate: u32,
        channels: u16,
        serial: u32,
    ) -> Result<Self, WriteError> {
        let at = if RATES.contains(&rate) { rate } else { 48_000 };
        let config = EncoderConfig {
            rate: at,
            channels: u8::try_from(channels).unwrap_or(u8::MAX),
            bitrate,
            application: Application::Audio,
            ..EncoderConfig::default()
        };
        let encode = |source| WriteError::Encode { name: name.clone(), source };
        let encoder = OggOpusEncoder::new(config, &OpusTags::default(), serial, PAGE_MS).map_err(encode)?;
        let resampler = Resampler::new(rate, at, usize::from(channels), Quality::Good)
            .map_err(|source| WriteError::Resample { name: name.clone(), source })?;
        let output = open().map_err(|source| WriteError::Io { name: name.clone(), source })?;
        let mut opus = Self { encoder: Some(encoder), resampler, output, name, scratch: Vec::new() };
        opus.put(&[])?;
        Ok(opus)
    }
    fn write(&mut self, samples: &[f32]) -> Result<(), WriteError> {
        let mut made = std::mem::take(&mut self.scratch);
        made.clear();
        self.resampler.push(samples, &mut made);
        let result = self.put(&made);
        self.scratch = made;
        result
    }
    fn put(&mut self, samples: &[f32]) -> Result<(), WriteError> {
        let Some(e) = &mut self.encoder else { return Ok(()) };
        e.push(samples).map_err(|source| WriteError::Encode { name: self.name.clone(), source })?;
        let bytes = e.take();
        self.send(&bytes)
    }
    fn send(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.output.write_all(bytes).and_then(|()| self.output.flush()).map_err(|source| {
            // What failed once is not tried again when the file is dropped.
            self.encoder = None;
            WriteError::Io { name: self.name.clone(), source }
        })
    }
    fn finish(&mut self) -> Result<(), WriteError> {
        let mut made = Vec::new();
        self.resampler.flush(&mut made);
        self.put(&made)?;
        let Some(e) = self.encoder.take() else { return Ok(()) };
        let bytes = e.finish().map_err(|source| WriteError::Encode { name: self.name.clone(), source })?;
        self.send(&bytes)
    }
}

impl Drop for Opus {
    fn drop(&mut self) {
        // `finish` reports its errors; here nobody would hear them.
        let _ = self.finish();
    }
}
