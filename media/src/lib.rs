//! Codecs, containers and signal processing of omni-flow: plain structs and functions, no engine, no clock, no log.
//!
//! | module | what |
//! |---|---|
//! | [`pcm`] | sample formats, layouts, whole frames out of pieces of any length |
//! | [`g711`] | mu-law and A-law |
//! | [`wav`] | WAV as it is met in the field, read from anything, written so that it is valid at any moment |
//! | [`mod@file`] | any audio file, decoded packet by packet (WAV and Ogg Opus here, others by symphonia, feature `symphonia`) |
//! | [`levels`] | RMS, peak, meters, bounds of speech |
//! | [`resample`] | one streaming resampler per stream |
//! | [`opus`], [`ogg_opus`] | Opus packets with loss concealment; Ogg files |
//! | [`encode`], [`mod@stretch`] | whole clips as WAV, FLAC, MP3 or Opus; a clip at another speed and the same pitch |
//! | [`mel`] | the log-mel spectrogram that Whisper hears |
//!
//! Samples in work are interleaved `f32` with full scale [-1, 1]. Every parser takes bytes from outside: it is bounded in
//! memory by what has arrived, never by what a header claims, and no input makes it panic; errors are typed, and name the
//! file where there is one. State (a dangling byte, a history, a position) belongs to one stream and dies with it.
//!
//! ```
//! use omni_flow_media::pcm::{Layout, PcmSpec, SampleFormat};
//! use omni_flow_media::wav::{WavOrigin, WavPipe, WavReader};
//!
//! // A WAV stream as a pipe sees it, one byte at a time.
//! let spec = PcmSpec::new(SampleFormat::I16, 16_000, Layout::MONO)?;
//! let mut pipe = WavPipe::new(Vec::new(), "example", spec)?;
//! pipe.write(&[0.0, 0.5, -0.5])?;
//! let (mut reader, mut frames) = (WavReader::new(WavOrigin::Pipe), Vec::new());
//! for byte in pipe.finish()? {
//!     reader.push(&[byte], &mut frames)?;
//! }
//! assert_eq!(reader.finish(&mut frames)?.frames, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(missing_docs)]

// Files and sample formats.
pub mod file;
pub mod g711;
pub mod levels;
pub mod pcm;
pub mod wav;

// Codecs and signal processing.
pub mod encode;
pub mod mel;
pub mod ogg_opus;
pub mod opus;
pub mod resample;
pub mod stretch;
