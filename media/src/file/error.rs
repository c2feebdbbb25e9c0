//! Why an audio file could not be decoded.

use std::io;

use crate::wav::WavFileError;

/// The formats that [`AudioFile`](super::AudioFile) reads, for messages and help.
#[cfg(feature = "symphonia")]
pub const FORMATS: &str = "WAV, AIFF, FLAC, MP3, AAC, MP4 (AAC, ALAC), Ogg (Opus, Vorbis, FLAC), Matroska and WebM";
/// The formats that [`AudioFile`](super::AudioFile) reads, for messages and help.
#[cfg(not(feature = "symphonia"))]
pub const FORMATS: &str = "WAV and Ogg Opus (built without the feature `symphonia`)";

/// Why an audio file could not be decoded. Final for its file.
#[derive(Debug, thiserror::Error)]
pub enum AudioFileError {
    /// The system could not open or read it.
    #[error("cannot read `{name}`: {source}")]
    Io {
        /// Path or name of the input.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
    /// There are no bytes in it.
    #[error("`{name}` is empty")]
    Empty {
        /// Path or name of the input.
        name: String,
    },
    /// It is no WAV that we read.
    #[error(transparent)]
    Wav(#[from] WavFileError),
    /// Container or codec are not among those supported.
    #[error("`{name}`: {what} is not supported; use one of {FORMATS}")]
    Unsupported {
        /// Path or name of the input.
        name: String,
        /// What was met.
        what: String,
    },
    /// The file contradicts itself or its format, or nothing in it could be decoded.
    #[error("`{name}` is damaged: {what}")]
    Damaged {
        /// Path or name of the input.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// Rate or number of channels change inside the file.
    #[error("`{name}` changes from {first} to {then}; split it there")]
    FormatChanged {
        /// Path or name of the input.
        name: String,
        /// The format it began with.
        first: crate::pcm::PcmSpec,
        /// The format that was refused.
        then: crate::pcm::PcmSpec,
    },
    /// The file has more frames than the caller wants to hold.
    #[error("`{name}` has more than {max_frames} frames; read it in parts")]
    TooLong {
        /// Path or name of the input.
        name: String,
        /// The limit that was given.
        max_frames: u64,
    },
}
