//! The rules of a realtime session as structs without I/O and without a clock.
//!
//! Time comes in as `now`, a [`Duration`](std::time::Duration) since an arbitrary start, or as media time in
//! milliseconds. Whatever a client sends, no rule panics and every store has a bound; what is refused changes nothing.
//! Comments name the part of the protocol that a rule stands in ("Realtime protocol, playback").
//!
//! | module | what |
//! |---|---|
//! | [`audio`], [`input`], [`output`] | why audio is refused, and its level; a client's audio in, an answer's audio out |
//! | [`units`] | whole units for the model, and how long it may go on over silence |
//! | [`overlap`], [`short_acks`] | what to do with speech under an answer |
//! | [`ledger`], [`marks`], [`answer`] | how much was heard, which text that is, what of it counts |
//! | [`items`] | the conversation and what the model may see of it |
//! | [`journal`], [`token`] | what a client that comes back is told again, and how it proves to be the one |
//! | [`outbox`], [`pending`], [`lease`] | bounds in bytes, events and time |

pub mod answer;
pub mod audio;
pub mod input;
pub mod items;
pub mod journal;
pub mod lease;
pub mod ledger;
pub mod marks;
pub mod outbox;
pub mod output;
pub mod overlap;
pub mod pending;
pub mod short_acks;
pub mod token;
pub mod units;
