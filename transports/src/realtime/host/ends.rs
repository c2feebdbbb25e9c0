//! Which ends of a graph a session speaks through: found by the names and kinds of its `session.in` and `session.out`.

use omni_flow::{Client, Kind, Lane, Medium, Mode, Plan};

use crate::realtime::machine::GraphTraits;

/// The ends of a graph that can be served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Audio of the user, mono, 16 kHz.
    pub mic: String,
    /// Rules of turn detection, named `control`.
    pub control: Option<String>,
    /// What is to be answered, named `ask`.
    pub ask: Option<String>,
    /// Audio of the answers.
    pub speaker: Option<String>,
    /// Transcripts of the user's turns, named `heard` or `heard-out`.
    pub heard: Option<String>,
    /// Turns without a word, named `unheard` or `unheard-out`.
    pub unheard: Option<String>,
    /// Text of the answers, named `said` or `said-out`.
    pub said: Option<String>,
    /// Which words of answers have their sound by when (`speech.align`), named `spoken` or `spoken-out`.
    pub spoken: Option<String>,
    /// Where the user's turns begin and end, named `turn-out` or `turns`.
    pub turns: Option<String>,
    /// Function calls and decisions, named `events` or `calls`.
    pub events: Option<String>,
    /// The lane of the answers, which an interruption fences.
    pub lane: Lane,
}

/// Why a graph cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndsError {
    /// Nobody can speak to it.
    #[error("the graph has no microphone: add `mic: {{ use: session.in, audio: {{ rate: 16000 }} }}`")]
    NoMic,
    /// Its microphone is another.
    #[error("`{node}` takes {kind}; a served graph hears `audio 16000 mono`: put `audio.resample` behind it")]
    Mic {
        /// The node.
        node: String,
        /// What it takes.
        kind: Kind,
    },
    /// It says nothing.
    #[error("the graph has no `session.out` with audio or text, so nobody would hear of it")]
    Mute,
}

impl Ends {
    /// The ends of a plan.
    ///
    /// # Errors
    /// [`EndsError`].
    pub fn of(plan: &Plan) -> Result<Self, EndsError> {
        let mut ends = Self::default();
        let mut mic = None;
        for node in &plan.nodes {
            let name = || Some(node.name.clone());
            match node.schema.client {
                Some(Client::In) => {
                    let kind = node.schema.outputs.first().map_or(Kind::of(Medium::Any), |p| p.kind.clone());
                    match (kind.medium, node.name.as_str()) {
                        (Medium::Audio, _) if mic.is_none() => mic = Some((node.name.clone(), kind)),
                        (Medium::Signal, "control") => ends.control = name(),
                        (Medium::Signal, "ask") => ends.ask = name(),
                        _ => {}
                    }
                }
                Some(Client::Out) => {
                    let edge = node.inputs.first().copied().flatten().map(|e| &plan.edges[e]);
                    let medium = edge.map_or(Medium::Any, |e| e.kind.medium);
                    let lane = edge.map_or(Lane::MAIN, |e| e.lane);
                    match (medium, node.name.trim_end_matches("-out")) {
                        (Medium::Audio, _) if ends.speaker.is_none() => {
                            ends.speaker = name();
                            ends.lane = lane;
                        }
                        (Medium::Text, "heard") => ends.heard = name(),
                        (Medium::Text, "unheard") => ends.unheard = name(),
                        (Medium::Text, "said") => {
                            ends.said = name();
                            if ends.speaker.is_none() {
                                ends.lane = lane;
                            }
                        }
                        // Turn by turn there is one text, whatever it is called.
                        (Medium::Text, _) if plan.session.mode == Mode::Turn && ends.heard.is_none() => {
                            ends.heard = name();
                        }
                        (Medium::Signal, "spoken") => ends.spoken = name(),
                        (Medium::Signal, "turn" | "turns") => ends.turns = name(),
                        (Medium::Signal, "events" | "calls") => ends.events = name(),
                        _ => {}
                    }
                }
                None => {}
            }
        }
        let (node, kind) = mic.ok_or(EndsError::NoMic)?;
        if !kind.feeds(&Kind::mono(16_000)) {
            return Err(EndsError::Mic { node, kind });
        }
        if ends.speaker.is_none() && ends.said.is_none() && ends.heard.is_none() {
            return Err(EndsError::Mute);
        }
        ends.mic = node;
        Ok(ends)
    }
    /// What a session may expect of the graph.
    pub fn traits(&self) -> GraphTraits {
        GraphTraits {
            transcribes: self.heard.is_some(),
            detects: self.control.is_some() && self.turns.is_some(),
            speaks: self.speaker.is_some(),
            aligned: true,
        }
    }
}
