//! The payloads that hold media and numbers.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use super::{Buf, SampleType};
use crate::MediaTime;

/// Interleaved uncompressed audio.
#[derive(Clone, Debug)]
pub struct Pcm {
    rate: u32,
    channels: u16,
    sample: SampleType,
    voice: Option<f32>,
    buf: Buf,
}

/// Why a block of bytes is not PCM of the stated format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PcmError {
    /// Rate or channel count out of range.
    #[error("audio of {rate} Hz and {channels} channels: the rate must be 1 to 768000 Hz, with 1 to 64 channels")]
    Format {
        /// Samples per second.
        rate: u32,
        /// Channels.
        channels: u16,
    },
    /// Not a whole number of frames.
    #[error("{bytes} bytes are not whole frames of {frame} bytes")]
    Partial {
        /// What was given.
        bytes: usize,
        /// Bytes of one frame (one sample of each channel).
        frame: usize,
    },
}

impl Pcm {
    /// Audio over existing bytes.
    ///
    /// # Errors
    /// [`PcmError`] if the format is out of range or the bytes are not whole frames.
    pub fn new(rate: u32, channels: u16, sample: SampleType, buf: Buf) -> Result<Self, PcmError> {
        if rate == 0 || rate > 768_000 || channels == 0 || channels > 64 {
            return Err(PcmError::Format { rate, channels });
        }
        let frame = sample.bytes() * usize::from(channels);
        if !buf.len().is_multiple_of(frame) {
            return Err(PcmError::Partial { bytes: buf.len(), frame });
        }
        Ok(Self { rate, channels, sample, voice: None, buf })
    }
    /// Mono f32 audio, the form that most nodes work on.
    ///
    /// # Panics
    /// If `rate` is 0 or over 768 000: use [`Pcm::new`] for rates that come from outside.
    pub fn mono(rate: u32, samples: Vec<f32>) -> Self {
        Self::new(rate, 1, SampleType::F32, Buf::from_f32(samples)).expect("a rate of 1 to 768000 Hz")
    }
    /// Samples per second.
    pub fn rate(&self) -> u32 {
        self.rate
    }
    /// Channels, interleaved.
    pub fn channels(&self) -> u16 {
        self.channels
    }
    /// How a sample is stored.
    pub fn sample(&self) -> SampleType {
        self.sample
    }
    /// The bytes, little-endian.
    pub fn buf(&self) -> &Buf {
        &self.buf
    }
    /// Frames (samples per channel).
    pub fn frames(&self) -> usize {
        self.buf.len() / (self.sample.bytes() * usize::from(self.channels))
    }
    /// Playing time.
    pub fn len(&self) -> MediaTime {
        MediaTime::from_samples(self.frames() as u64, self.rate)
    }
    /// True if it holds no frame.
    pub fn is_empty(&self) -> bool {
        self.buf.is_empty()
    }
    /// The samples as f32 in -1 ..= 1, interleaved; i16 is scaled by 1/32768.
    pub fn f32(&self) -> Cow<'_, [f32]> {
        match self.sample {
            SampleType::F32 => self.buf.typed(),
            SampleType::I16 => Cow::Owned(self.buf.typed::<i16>().iter().map(|s| f32::from(*s) / 32768.0).collect()),
        }
    }
    /// Probability, 0 to 1, that this block holds speech, if a voice activity detector has looked at it.
    pub fn voice(&self) -> Option<f32> {
        self.voice
    }
    /// The same audio with a voice activity detector's finding.
    #[must_use]
    pub fn with_voice(mut self, probability: f32) -> Self {
        self.voice = Some(probability);
        self
    }
}

/// Layout of a picture's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PixelFormat {
    /// Planar Y, U, V, chroma halved both ways.
    I420,
    /// Planar Y, interleaved UV, chroma halved both ways.
    Nv12,
    /// Packed 8-bit red, green, blue.
    Rgb,
    /// Packed 8-bit red, green, blue, alpha.
    Rgba,
    /// Three planes of f32 in 0 ..= 1.
    RgbF32,
}

/// One uncompressed picture.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Layout.
    pub format: PixelFormat,
    /// Each plane with its stride in bytes.
    pub planes: Arc<[(Buf, usize)]>,
}

/// Token ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens(pub Arc<[u32]>);

impl Tokens {
    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Element type of a [`Tensor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dtype {
    /// 32-bit float.
    F32,
    /// 16-bit float.
    F16,
    /// bfloat16.
    Bf16,
    /// 64-bit integer.
    I64,
    /// 32-bit integer.
    I32,
    /// Byte.
    U8,
}

impl Dtype {
    /// Bytes of one element.
    pub const fn bytes(self) -> usize {
        match self {
            Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::U8 => 1,
        }
    }
}

/// A dense row-major array of numbers.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Element type.
    pub dtype: Dtype,
    /// Sizes, outermost first.
    pub shape: Arc<[usize]>,
    /// The elements.
    pub buf: Buf,
}

impl Tensor {
    /// A tensor of f32 values.
    ///
    /// # Panics
    /// If `values` does not hold exactly the product of `shape` elements.
    pub fn f32(shape: impl Into<Arc<[usize]>>, values: Vec<f32>) -> Self {
        let shape = shape.into();
        assert_eq!(shape.iter().product::<usize>(), values.len(), "elements of shape {shape:?}");
        Self { dtype: Dtype::F32, shape, buf: Buf::from_f32(values) }
    }
}

/// Encoded media: one Opus packet, one H.264 access unit, one MP4 fragment.
#[derive(Clone, Debug)]
pub struct Packet {
    /// The codec, in the spelling of the graph files (`opus`, `pcmu`, `h264`, `fmp4`).
    pub codec: Arc<str>,
    /// The bytes.
    pub data: Bytes,
    /// True if decoding can start here.
    pub key: bool,
    /// Clock rate of the media inside, in Hz, where the codec has one.
    pub rate: u32,
    /// Channels, for audio.
    pub channels: u16,
}
