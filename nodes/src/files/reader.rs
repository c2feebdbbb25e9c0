//! Any audio file, decoded block by block: WAV and what symphonia knows by `media::file`, Ogg Opus by `media::ogg_opus`.
//!
//! Memory is bounded by a block, whatever the file claims. All errors name the file.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

use omni_flow_media::file::{AudioFile, AudioFileError, Input};
use omni_flow_media::ogg_opus::{OggOpusDecoder, OggReadError};
use omni_flow_media::opus::DecodeError;
use thiserror::Error;

/// Why a file cannot be read. Final for its file.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The system.
    #[error("cannot read `{name}`: {source}; check the path and its permissions")]
    Io {
        /// The path, or `standard input`.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// Anything but Ogg Opus.
    #[error(transparent)]
    File(#[from] AudioFileError),
    /// The Ogg container.
    #[error("`{name}`: {source}")]
    Ogg {
        /// The path.
        name: String,
        /// What is wrong.
        source: OggReadError,
    },
    /// The Opus codec.
    #[error("`{name}`: {source}")]
    Opus {
        /// The path.
        name: String,
        /// What is wrong.
        source: DecodeError,
    },
}

/// An open audio file.
pub struct Reader {
    name: String,
    inner: Inner,
}

enum Inner {
    File(AudioFile),
    Opus(Box<Opus>),
}

struct Opus {
    input: Box<dyn Read + Send>,
    decoder: OggOpusDecoder,
    channels: u16,
    block: Box<[u8]>,
    ended: bool,
}

/// The rate at which Ogg Opus is decoded, in Hz.
const OPUS_RATE: u32 = 48_000;
/// Bytes of an Ogg file read at a time: about two seconds at 32 kbit/s.
const BLOCK: usize = 8 * 1024;
/// Bytes that tell what a file is; the channel count of Ogg Opus is among them.
const HEAD: usize = 64;

impl Reader {
    /// Opens a file, or what else a path leads to, and reads its header. Blocks.
    ///
    /// # Errors
    /// [`ReadError`], naming the path.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let name = path.display().to_string();
        let mut file = File::open(path).map_err(|source| ReadError::Io { name: name.clone(), source })?;
        let regular = file.metadata().is_ok_and(|m| m.is_file());
        if regular {
            let head = head(&mut file).map_err(|source| ReadError::Io { name: name.clone(), source })?;
            if !is_opus(&head) {
                return Ok(Self { inner: Inner::File(AudioFile::open(path)?), name });
            }
            return Self::opus(Cursor::new(head.clone()).chain(file), &head, name);
        }
        if path.is_dir() {
            let source = io::ErrorKind::IsADirectory.into();
            return Err(ReadError::Io { name, source });
        }
        Self::pipe(file, name)
    }
    /// Reads the header from anything that can only be read from front to back; `name` is for messages. Blocks.
    ///
    /// # Errors
    /// [`ReadError`], naming `name`.
    pub fn pipe(input: impl Read + Send + Sync + 'static, name: impl Into<String>) -> Result<Self, ReadError> {
        let (mut input, name) = (input, name.into());
        let head = head(&mut input).map_err(|source| ReadError::Io { name: name.clone(), source })?;
        let whole = Cursor::new(head.clone()).chain(input);
        if is_opus(&head) {
            return Self::opus(whole, &head, name);
        }
        Ok(Self { inner: Inner::File(AudioFile::new(Input::pipe(whole), name.clone())?), name })
    }
    fn opus(input: impl Read + Send + 'static, head: &[u8], name: String) -> Result<Self, ReadError> {
        let channels = if head.get(37) == Some(&2) { 2 } else { 1 };
        let decoder = OggOpusDecoder::new(OPUS_RATE, channels)
            .map_err(|source| ReadError::Opus { name: name.clone(), source })?;
        let block = vec![0; BLOCK].into_boxed_slice();
        let opus = Opus { input: Box::new(input), decoder, channels: channels.into(), block, ended: false };
        Ok(Self { name, inner: Inner::Opus(Box::new(opus)) })
    }
    /// Path or name, as it stands in messages.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Samples per second.
    pub fn rate(&self) -> u32 {
        match &self.inner {
            Inner::File(f) => f.spec().rate(),
            Inner::Opus(_) => OPUS_RATE,
        }
    }
    /// Channels, interleaved.
    pub fn channels(&self) -> u16 {
        match &self.inner {
            Inner::File(f) => f.spec().layout().channels(),
            Inner::Opus(o) => o.channels,
        }
    }
    /// Pieces of the file that could not be decoded so far.
    pub fn damage(&self) -> u64 {
        match &self.inner {
            Inner::File(f) => f.damage(),
            Inner::Opus(o) => {
                let s = o.decoder.stats();
                s.losses + s.illegal + s.discontinuities
            }
        }
    }
    /// Appends the next block of interleaved samples to `out`; false at the end of the file. Blocks.
    ///
    /// # Errors
    /// [`ReadError`], naming the file.
    pub fn next(&mut self, out: &mut Vec<f32>) -> Result<bool, ReadError> {
        match &mut self.inner {
            Inner::File(f) => Ok(f.next(out)? > 0),
            Inner::Opus(o) => o.next(&self.name, out),
        }
    }
}

impl Opus {
    fn next(&mut self, name: &str, out: &mut Vec<f32>) -> Result<bool, ReadError> {
        let before = out.len();
        while out.len() == before && !self.ended {
            let ogg = |source| ReadError::Ogg { name: name.to_owned(), source };
            match self.input.read(&mut self.block) {
                Ok(0) => {
                    self.ended = true;
                    self.decoder.finish(out).map_err(ogg)?;
                }
                Ok(n) => self.decoder.push(&self.block[..n.min(BLOCK)], out).map_err(ogg)?,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(ReadError::Io { name: name.to_owned(), source }),
            }
        }
        Ok(out.len() > before)
    }
}

fn head(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    input.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// The first page of Ogg Opus has one segment; its packet begins at byte 28 (RFC 7845, section 5).
fn is_opus(head: &[u8]) -> bool {
    head.starts_with(b"OggS") && head.get(28..36) == Some(b"OpusHead")
}
