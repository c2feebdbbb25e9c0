//! What can be wrong with a WAV stream, a WAV file, and the writing of one.

use std::io;

use crate::pcm::{PcmSpec, SpecError};

/// Why bytes are not a WAV stream that we read. Final for its stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WavError {
    /// The first bytes are not those of a WAV stream.
    #[error("not a WAV stream: it does not begin with RIFF....WAVE")]
    NotWav,
    /// The samples have a form that is not supported.
    #[error("{what} is not supported in WAV; convert to PCM of 8, 16, 24 or 32 bits, float, A-law or mu-law")]
    UnsupportedFormat {
        /// The form that was met.
        what: String,
    },
    /// The header contradicts itself.
    #[error("the WAV header is damaged: {what}")]
    Malformed {
        /// What is wrong with it.
        what: &'static str,
    },
    /// The header states a rate or a number of channels that no stream may have.
    #[error("the WAV header is damaged: {0}")]
    Spec(#[from] SpecError),
    /// The stream ended before its samples began.
    #[error("the WAV stream ends inside its header, before any audio; it was probably cut short")]
    Truncated,
    /// A later piece of a joined stream has another format than the first.
    #[error("the WAV stream changes from {first} to {then}; pieces of one stream must have one format")]
    FormatChanged {
        /// Format of the first piece.
        first: PcmSpec,
        /// Format of the piece that was refused.
        then: PcmSpec,
    },
}

/// Why a WAV file or pipe could not be read.
#[derive(Debug, thiserror::Error)]
pub enum WavFileError {
    /// The system could not open or read it.
    #[error("cannot read `{name}`: {source}")]
    Io {
        /// Path of the file or name of the input.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
    /// It is no WAV that we read.
    #[error("`{name}`: {source}")]
    Wav {
        /// Path of the file or name of the input.
        name: String,
        /// What is wrong.
        source: WavError,
    },
}

/// Why a WAV file could not be written further. It is valid up to what was written.
#[derive(Debug, thiserror::Error)]
pub enum WavWriteError {
    /// The sizes of a WAV file have 32 bits; more audio does not fit. Nothing of the refused call was written.
    #[error("`{name}` is full: a WAV file holds less than 4 GiB; it has {frames} frames, start another file")]
    TooLong {
        /// Path of the file or name of the output.
        name: String,
        /// Whole frames in the file.
        frames: u64,
    },
    /// The bytes given are not whole frames. Nothing of them was written.
    #[error("`{name}`: {bytes} bytes are not whole frames of {frame_bytes} bytes")]
    CutFrame {
        /// Path of the file or name of the output.
        name: String,
        /// Bytes given.
        bytes: usize,
        /// Bytes of one frame.
        frame_bytes: usize,
    },
    /// The system refused to create, write or seek (disk full, no permission).
    #[error("cannot write `{name}` after {frames} frames: {source}")]
    Io {
        /// Path of the file or name of the output.
        name: String,
        /// Whole frames that lie in the file.
        frames: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// An earlier write failed; the file was closed there.
    #[error("`{name}` was closed after an earlier write error")]
    Closed {
        /// Path of the file or name of the output.
        name: String,
    },
}
