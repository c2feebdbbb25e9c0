//! Things that happen, as chunks: they travel on the same edges as media, with the same credit and epochs.

use std::sync::Arc;

use crate::MediaTime;

/// An event of a conversation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Signal {
    /// The user began to speak.
    SpeechStarted {
        /// Position in the input's media time, prefix padding included.
        at: MediaTime,
    },
    /// The user stopped speaking.
    SpeechStopped {
        /// Position in the input's media time: the end of the last speech window.
        at: MediaTime,
    },
    /// The turn is over and an answer may begin.
    TurnEnded {
        /// Where the turn began, prefix padding included.
        start: MediaTime,
        /// End of the last window of speech.
        speech_end: MediaTime,
        /// Where it ended, trailing silence included.
        end: MediaTime,
        /// Why.
        reason: TurnEnd,
    },
    /// So much of the answer has really been played.
    Played {
        /// Position in the answer's media time.
        until: MediaTime,
    },
    /// Chunks were lost here on a lossy edge or by the network.
    Gap {
        /// How many chunks, 0 if unknown.
        items: u64,
        /// How much media time.
        len: MediaTime,
    },
    /// A named event of an application's own.
    Named {
        /// Its name.
        name: Arc<str>,
        /// Its data, as JSON text.
        data: Arc<str>,
    },
}

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TurnEnd {
    /// Enough silence.
    Silence,
    /// The longest utterance was reached; a new one begins.
    TooLong,
    /// The input ended.
    InputEnded,
    /// The client committed it.
    Committed,
}

impl Signal {
    /// Bytes that count against credit.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Named { name, data } => name.len() + data.len(),
            _ => 24,
        }
    }
}
