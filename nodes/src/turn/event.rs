//! What the turn machine tells.

use thiserror::Error;

/// Why an item ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The silence lasted long enough.
    Silence,
    /// The item reached the longest length; if the speaker goes on, the next item begins where this one ends.
    Longest,
    /// The client committed.
    Commit,
    /// The stream ended.
    EndOfInput,
}

/// A decision of the turn machine. Positions are samples since the stream began; audio always has `end − start` samples.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEvent {
    /// A turn has begun.
    SpeechStarted {
        /// First sample of the item.
        start: u64,
        /// First sample of the window that began the run of speech.
        speech: u64,
        /// The item goes on where one of the longest length ended: no new onset.
        continued: bool,
        /// What the rules say of answers that are under way ([`TurnConfig::interrupt`](super::TurnConfig::interrupt)).
        interrupt: bool,
    },
    /// The turn is probably over: recognition may begin.
    Guess {
        /// Number of the guess, rising over the stream.
        id: u64,
        /// First sample of the item.
        start: u64,
        /// End of the audio so far.
        end: u64,
        /// The samples.
        audio: Vec<f32>,
    },
    /// The speaker went on (or the item was cleared): what was made of this guess is void.
    GuessCancelled {
        /// Number of the guess.
        id: u64,
    },
    /// The turn is over. A commit that found nothing to give tells it too, with an empty range and no samples.
    TurnEnded {
        /// First sample of the item.
        start: u64,
        /// End of the item, trailing silence included.
        end: u64,
        /// End of the last window of speech; the start of an item that has none.
        speech_end: u64,
        /// Why it ended.
        reason: EndReason,
        /// The guess that still holds: only silence came after it, so its recognition need not be done again.
        guess: Option<u64>,
        /// The samples.
        audio: Vec<f32>,
    },
    /// A clear took place.
    TurnCleared {
        /// What came before this sample is dropped.
        at: u64,
        /// First sample of the turn that had begun and is dropped, if one had.
        start: Option<u64>,
    },
}

/// What a client's commit found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// No sample since the last item or reset; nothing changed.
    Empty,
    /// Samples without speech, where speech makes a turn: they are dropped, no model need run.
    NoSpeech {
        /// First sample.
        start: u64,
        /// End.
        end: u64,
    },
    /// A turn was open, or audio was collected for one, and it has ended; see the event.
    Speech,
}

/// A call that the turn machine refuses; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TurnError {
    /// A probability came before the audio of its window.
    #[error("no audio for the window at sample {at}: push the audio first")]
    NoAudio {
        /// First sample of the window.
        at: u64,
    },
    /// More changes wait for their place than are kept.
    #[error("{most} changes wait for their place in the stream: send the audio before them first")]
    Changes {
        /// The bound.
        most: usize,
    },
    /// Too much audio without probabilities.
    #[error("{held} samples wait for a probability: at most {most} may; give probabilities first")]
    AudioAhead {
        /// Samples that would wait.
        held: u64,
        /// The bound.
        most: u64,
    },
}
