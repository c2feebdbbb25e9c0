//! What a session asks of its graph, and what the graph tells it.
//!
//! The machine knows no engine: whoever runs it turns a [`GraphCommand`] into chunks and fences, and chunks into
//! [`GraphEvent`]s. Positions are samples of the graph's input at 16 kHz.

use std::sync::Arc;

use serde_json::Value;

use crate::realtime::config::turn::TurnDetection;
use crate::realtime::wire::server::response::Usage;

/// Samples per second of what goes into a graph.
pub const INPUT_RATE_HZ: u32 = 16_000;

/// What a session asks of its graph, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum GraphCommand {
    /// How turns are found from here on; `None`: the client commits them.
    Detect(Option<TurnDetection>),
    /// Audio of the user, mono, 16 kHz.
    Audio {
        /// The samples, full scale 1.0.
        samples: Vec<f32>,
        /// Bytes of pending input that are free again once the graph has taken it.
        holds: u64,
    },
    /// All audio up to here is one turn; these samples end it.
    Commit(Vec<f32>),
    /// All audio that no turn has taken is void.
    Clear,
    /// Make an answer.
    Answer {
        /// Names it in what the graph tells about it.
        key: u64,
        /// What to answer.
        prompt: Box<Prompt>,
    },
    /// What answers that nobody asks for are to be made from: for a model that owns its turns.
    Context {
        /// Instructions.
        instructions: Option<String>,
        /// The voice.
        voice: Option<String>,
    },
    /// Every answer asked for so far is void, also what of it is under way.
    Fence,
}

/// What an answer is made from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompt {
    /// Instructions, before everything else.
    pub instructions: Option<String>,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// Functions that may be called, in the stock shape.
    pub tools: Vec<Value>,
    /// Which of them, in the stock shape.
    pub tool_choice: Option<Value>,
    /// Temperature.
    pub temperature: Option<f64>,
    /// Tokens at most.
    pub max_output_tokens: Option<u64>,
    /// The voice.
    pub voice: Option<String>,
    /// Speed of speech.
    pub speed: Option<f64>,
    /// Whether it is to be heard; else its text is enough.
    pub audio: bool,
    /// Turns answered so far.
    pub turn: u64,
}

/// One message of a conversation, as a model is to read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Instructions.
    System(String),
    /// The person.
    User(String),
    /// The model.
    Assistant(String),
    /// The model called a function.
    Call {
        /// The call.
        call_id: String,
        /// The function.
        name: String,
        /// Its arguments, JSON text.
        arguments: String,
    },
    /// What the function gave.
    CallOutput {
        /// The call.
        call_id: String,
        /// Its result.
        output: String,
    },
}

/// What a graph tells.
#[derive(Clone, Debug, PartialEq)]
pub enum GraphEvent {
    /// It has taken audio that held so many bytes of pending input.
    Taken(u64),
    /// The user began to speak, `at` samples into the input, padding included.
    SpeechStarted {
        /// Samples.
        at: u64,
    },
    /// The user stopped.
    SpeechStopped {
        /// Samples.
        at: u64,
    },
    /// A turn is over.
    TurnEnded {
        /// Where it began, samples.
        start: u64,
        /// Where it ended, samples, silence included.
        end: u64,
        /// True if a commit ended it.
        committed: bool,
    },
    /// What was said in the turn that began at `start`; empty if no words were found.
    Transcript {
        /// Samples.
        start: u64,
        /// The words.
        text: Arc<str>,
    },
    /// Part of an answer.
    Answer {
        /// Which.
        key: u64,
        /// What.
        part: AnswerPart,
    },
    /// The graph has ended in error: so does the session.
    Failed {
        /// What to tell the client.
        message: String,
    },
}

/// Part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerPart {
    /// More text of what is said.
    Text(String),
    /// More audio, mono.
    Audio {
        /// The samples, full scale 1.0.
        samples: Arc<[f32]>,
        /// Per second.
        rate_hz: u32,
        /// How many characters of the text given so far are spoken at its end, if the graph knows.
        spoken_chars: Option<u64>,
    },
    /// A function is called.
    Call {
        /// The call; `None` if the model did not say.
        call_id: Option<String>,
        /// The function; `None` if the model did not say.
        name: Option<String>,
        /// Its arguments, JSON text.
        arguments: String,
    },
    /// The model would rather listen.
    Listen,
    /// The model goes on once it has heard one more unit.
    NeedsUnit,
    /// All of it has been given.
    End {
        /// Tokens, where the graph counts.
        usage: Usage,
        /// True if the token limit cut it.
        cut: bool,
    },
    /// It could not be made; the session goes on.
    Failed {
        /// Why.
        message: String,
    },
}
