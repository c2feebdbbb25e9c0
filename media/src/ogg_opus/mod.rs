//! Ogg Opus (RFC 3533, RFC 7845): streaming reader, decoder, writer and encoder.
//!
//! All of them take or give bytes in pieces of any size and never seek. The reader checks every page's CRC: a damaged
//! page costs only what it held, and [`OggOpusDecoder`] fills its time, so that the sample count stays exact at every output
//! rate. Memory is bounded by one page and one packet, whatever a header claims. Chained streams are read one after the
//! other, other streams in the same file are skipped. Channel mapping family 0 only (mono and stereo).

mod decode;
mod encode;
mod head;
mod page;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use decode::{OggOpusDecoder, OggOpusStats};
pub use encode::{OggEncodeError, OggOpusEncoder};
pub use head::{HeadError, OpusHead, OpusTags};
pub use page::{Page, PageParser};
pub use reader::{AudioPage, OggItem, OggOpusReader, OggReadError};
pub use writer::OggOpusWriter;
