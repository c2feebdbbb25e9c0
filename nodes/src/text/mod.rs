//! Text between a language model and a voice, as pure machines: no clock, no I/O, no engine.
//!
//! [`Utf8Tail`] keeps a character that was cut between two chunks whole, [`Sentences`] cuts a stream of text into
//! pieces that can be spoken early, [`speakable`] writes a piece out as it is said (numbers, dates, symbols).

mod markup;
pub mod node;
mod normalize;
mod numbers;
mod sentences;
mod shapes;
mod units;
mod utf8;
mod web;

pub use normalize::speakable;
pub use sentences::{Piece, Sentences, SentencesConfig, Stop};
pub use utf8::Utf8Tail;
