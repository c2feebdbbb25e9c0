//! WAV, read and written as it is met in the field.
//!
//! Reading: [`WavReader`] takes bytes in pieces of any size and gives whole frames; [`WavSource`] drives it from a file
//! or a pipe. Writing: [`WavWriter`] for what can seek (both sizes are kept right while the file grows), [`WavPipe`] for
//! what cannot. Linear PCM of 8, 16, 24 and 32 bits, floats of 32 and 64, A-law and mu-law; plain and EXTENSIBLE headers;
//! RF64 and BW64. Metadata is skipped, not kept.
//!
//! Rules that readers break in the field, and this one keeps: no size of the header is trusted beyond the bytes that
//! arrive; only bytes inside the `data` payload become samples; a cut last frame is dropped and counted, not an error.

mod chunk;
mod error;
mod header;
mod pipe;
mod reader;
mod source;
mod writer;

pub use error::{WavError, WavFileError, WavWriteError};
pub use header::{WavSizes, wav_sizes};
pub use pipe::WavPipe;
pub use reader::{WavOrigin, WavReader, WavSummary};
pub use source::WavSource;
pub use writer::{WavWriter, WavWritten};
