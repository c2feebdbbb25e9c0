//! Which routes a graph serves, and through which of its ends: found by the kinds and names of its `session.in` and
//! `session.out`.
//!
//! Requests are answered by graphs of mode `turn`. Each request has a session of its own, whose inputs end with it.

use omni_flow::{Client, Kind, Medium, Mode, Plan};

/// The ends of a graph that requests speak through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Text in, audio out.
    pub speech: Option<Speech>,
    /// Audio in, text out.
    pub transcription: Option<Transcription>,
    /// A conversation in, text out, and audio beside it.
    pub chat: Option<Chat>,
}

/// Through which ends text becomes speech.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speech {
    /// Where the text goes in.
    pub text: String,
    /// Where the other fields of a request go in, as a signal `speech.request`: a `session.in` of signals named `request`.
    pub request: Option<String>,
    /// Where the audio comes out.
    pub speaker: String,
    /// The node that makes it.
    pub node: String,
    /// Its rate, if the graph file says it.
    pub rate: Option<u32>,
}

/// Through which ends speech becomes text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcription {
    /// Where the audio goes in.
    pub mic: String,
    /// Its rate.
    pub rate: u32,
    /// Its channels.
    pub channels: u16,
    /// Where the text comes out, an utterance per chunk.
    pub heard: String,
}

/// Through which ends a conversation is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chat {
    /// Where the question goes in.
    pub ask: String,
    /// It takes whole conversations, as signals `chat.prompt`; else the last thing that the user said, as text.
    pub prompts: bool,
    /// Where the text comes out.
    pub said: String,
    /// Where calls and the end of an answer are told.
    pub events: Option<String>,
    /// Where the audio comes out.
    pub speaker: Option<String>,
    /// The node that makes it.
    pub node: String,
}

impl Ends {
    /// Whether there is anything that requests can be answered with.
    pub fn any(&self) -> bool {
        self.speech.is_some() || self.transcription.is_some() || self.chat.is_some()
    }
    /// The ends of a plan.
    pub fn of(plan: &Plan) -> Self {
        if plan.session.mode != Mode::Turn {
            return Self::default();
        }
        let (mut text, mut ask, mut request, mut mic) = (None, None, None, None);
        let (mut speaker, mut said, mut heard, mut events) = (None, None, None, None);
        for node in &plan.nodes {
            let name = node.name.clone();
            match node.schema.client {
                Some(Client::In) => {
                    let kind = node.schema.outputs.first().map_or(Kind::of(Medium::Any), |p| p.kind.clone());
                    match (kind.medium, name.as_str()) {
                        (Medium::Text, _) if text.is_none() => text = Some(name),
                        (Medium::Signal, "ask") => ask = Some(name),
                        (Medium::Signal, "request") => request = Some(name),
                        (Medium::Audio, _) if mic.is_none() => {
                            mic = Some((name, kind.rate.unwrap_or(16_000), kind.channels.unwrap_or(1)));
                        }
                        _ => {}
                    }
                }
                Some(Client::Out) => {
                    let Some(edge) = node.inputs.first().copied().flatten().map(|e| &plan.edges[e]) else { continue };
                    match (edge.kind.medium, name.trim_end_matches("-out")) {
                        (Medium::Audio, _) if speaker.is_none() => {
                            speaker = Some((name, plan.nodes[edge.from.0].name.clone(), edge.kind.rate));
                        }
                        (Medium::Text, "unheard") => {}
                        (Medium::Text, "heard") => heard = Some(name),
                        (Medium::Text, _) if said.is_none() => said = Some(name),
                        (Medium::Signal, "events" | "calls") => events = Some(name),
                        _ => {}
                    }
                }
                None => {}
            }
        }
        let mut ends = Self::default();
        if let Some((mic, rate, channels)) = mic.filter(|_| ask.is_none()) {
            // Without a name, the only text of a graph that does not speak is what it heard.
            let heard = heard.clone().or_else(|| said.clone().filter(|_| speaker.is_none()));
            ends.transcription = heard.map(|heard| Transcription { mic, rate, channels, heard });
        }
        let (asked, prompts) = (ask.clone().or_else(|| text.clone()), ask.is_some());
        if let (Some(ask), Some(said)) = (asked, said) {
            let (speaker, node) = speaker.map_or((None, String::new()), |(s, n, _)| (Some(s), n));
            ends.chat = Some(Chat { ask, prompts, said, events, speaker, node });
        } else if let (Some(text), Some((speaker, node, rate))) = (text, speaker) {
            ends.speech = Some(Speech { text, request, speaker, node, rate });
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use omni_flow::{CheckCx, GraphFile, Registry};

    use super::*;

    fn ends(nodes: &str) -> Ends {
        let file = format!("graph: g\nsession: {{ mode: turn }}\nnodes:\n{nodes}");
        let plan = GraphFile::parse("g.yaml", &file).unwrap().check(&Registry::base(), &CheckCx::default()).unwrap().0;
        Ends::of(&plan)
    }
    /// Ends joined to ends: what a graph is by its kinds alone.
    fn input(name: &str, kind: &str) -> String {
        format!("  {name}: {{ use: session.in, {kind} }}\n")
    }

    #[test]
    fn a_graph_serves_what_its_ends_are_for() {
        let relay =
            |a: &str, kind: &str, b: &str| format!("{}  {b}: {{ use: session.out, in: {a} }}\n", input(a, kind));
        let audio = "audio: { rate: 8000 }";
        let echo = ends(&relay("mic", audio, "speaker"));
        assert_eq!(echo, Ends::default());
        let text = ends(&relay("text", "kind: text", "said"));
        assert!(text.chat.as_ref().is_some_and(|c| !c.prompts && c.speaker.is_none()) && text.speech.is_none());
        let both =
            relay("mic", audio, "speaker") + &input("text", "kind: text") + "  log: { use: session.out, in: text }\n";
        let both = ends(&both);
        assert!(both.speech.is_none(), "its audio is part of an answer");
        assert_eq!(both.chat.unwrap().speaker.as_deref(), Some("speaker"));
    }
}
