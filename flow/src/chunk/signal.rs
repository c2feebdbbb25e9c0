//! Things that happen, as chunks: they travel on the same edges as media, with the same credit and epochs.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

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
    /// A [`Signal::Named`] with `data` as its JSON text.
    ///
    /// # Errors
    /// `data` cannot be written as JSON: a map with keys that are no text, or what its own `Serialize` says.
    pub fn named(name: &str, data: &impl Serialize) -> serde_json::Result<Self> {
        Ok(Self::Named { name: name.into(), data: serde_json::to_string(data)?.into() })
    }
    /// The data of a [`Signal::Named`] of this name; `None` for any other signal. No data at all is read as an empty
    /// object.
    ///
    /// # Errors
    /// Its data is no JSON, or not that of a `T`.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Option<serde_json::Result<T>> {
        match self {
            Self::Named { name: own, data } if &**own == name => {
                Some(serde_json::from_str(if data.trim().is_empty() { "{}" } else { data }))
            }
            _ => None,
        }
    }
    /// Bytes that count against credit.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Named { name, data } => name.len() + data.len(),
            _ => 24,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Clear {
        at: Option<u64>,
    }

    #[test]
    fn named_data_reads_back_and_wrong_data_is_told() {
        let s = Signal::named("turn.clear", &Clear { at: Some(7) }).unwrap();
        assert_eq!(s, Signal::Named { name: "turn.clear".into(), data: "{\"at\":7}".into() });
        assert_eq!(s.read::<Clear>("turn.clear").unwrap().unwrap(), Clear { at: Some(7) });
        assert!(s.read::<Clear>("turn").is_none(), "another name");
        assert!(Signal::SpeechStarted { at: MediaTime::ZERO }.read::<Clear>("turn.clear").is_none());
        let named = |data: &str| Signal::Named { name: "x".into(), data: data.into() };
        assert_eq!(named(" ").read::<Clear>("x").unwrap().unwrap(), Clear { at: None });
        assert!(named("{\"at\": -1}").read::<Clear>("x").unwrap().is_err());
        assert!(named("no").read::<Clear>("x").unwrap().is_err());
    }
}
