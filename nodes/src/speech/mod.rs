//! Speech nodes: who speaks when. Thin wrappers of [`silero`](crate::silero), [`turn`](crate::turn) and
//! [`playout`](crate::playout).

mod align;
mod confirm;
mod guess;
mod playout;
mod rules;
mod turn;
#[cfg(feature = "silero")]
mod vad;

pub use align::{SpeechAlign, Spoken};
pub use confirm::SpeechConfirm;
pub use guess::SpeechGuess;
pub use playout::SpeechPlayout;
pub use turn::SpeechTurn;
#[cfg(feature = "silero")]
pub use vad::SpeechVad;
