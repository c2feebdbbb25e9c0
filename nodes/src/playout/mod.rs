//! Audio leaves at the speed it plays: the machine behind `speech.playout`, and the ledger of a listener.
//!
//! [`Playout`] is a jitter buffer that hands out frames by media time, never in a burst, and says what has been played.
//! [`Ledger`] counts the same for a listener elsewhere, from what was delivered or from what the listener acknowledged.
//! Both are given `now`; neither reads a clock, sends anything or resamples.

mod ledger;
mod machine;
mod pace;

pub use ledger::{Ledger, Underruns};
pub use machine::{Fenced, Played, Playout, PlayoutConfig, PlayoutError, PlayoutFrame};
pub use pace::Pace;
