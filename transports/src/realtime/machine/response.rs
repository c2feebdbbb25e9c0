//! One answer from its creation to its end, as events.
//!
//! It keeps the order of events (opened once, deltas, one tail) whatever the graph sends, and adds up what was made.
//! What it does not know is the conversation around it.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::realtime::config::modality::Modality;
use crate::realtime::wire::profile::Profile;
use crate::realtime::wire::server::ServerEvent;
use crate::realtime::wire::server::item::{Content, Item, ItemKind, ItemStatus, Role};
use crate::realtime::wire::server::response::{AudioDelta, Created, Done, Mark, Outcome, Part, Place, Usage};
use crate::realtime::wire::server::session::Playback;

/// An answer that is being made.
pub(super) struct Response {
    pub(super) id: Arc<str>,
    pub(super) item_id: Arc<str>,
    /// Names it towards the graph.
    pub(super) key: u64,
    session_id: Arc<str>,
    profile: Profile,
    epoch: u64,
    turn_id: u64,
    audio: bool,
    metadata: Map<String, Value>,
    previous_item_id: Option<String>,
    opened: bool,
    /// All text so far, and the part of it that no delta has carried.
    text: String,
    untold: String,
    /// The place of the message among the items, once it is opened, and the items that are calls.
    message_index: u32,
    calls: Vec<Item>,
}

/// What an answer is told at its creation.
pub(super) struct Begun {
    pub(super) id: Arc<str>,
    pub(super) key: u64,
    pub(super) session_id: Arc<str>,
    pub(super) profile: Profile,
    pub(super) epoch: u64,
    pub(super) turn_id: u64,
    pub(super) modalities: Vec<Modality>,
    pub(super) metadata: Map<String, Value>,
}

impl Response {
    pub(super) fn new(begun: Begun) -> (Self, ServerEvent) {
        let item_id: Arc<str> = format!("item_{}", begun.id).into();
        let created = ServerEvent::ResponseCreated(Created {
            response_id: begun.id.to_string(),
            session_id: begun.session_id.to_string(),
            epoch: begun.epoch,
            turn_id: begun.turn_id,
            modalities: begun.modalities.clone(),
            metadata: begun.metadata.clone(),
        });
        let me = Self {
            item_id,
            audio: begun.modalities.contains(&Modality::Audio),
            id: begun.id,
            key: begun.key,
            session_id: begun.session_id,
            profile: begun.profile,
            epoch: begun.epoch,
            turn_id: begun.turn_id,
            metadata: begun.metadata,
            previous_item_id: None,
            opened: false,
            text: String::new(),
            untold: String::new(),
            message_index: 0,
            calls: Vec::new(),
        };
        (me, created)
    }
    /// True if it is to be heard.
    pub(super) fn audible(&self) -> bool {
        self.audio
    }
    /// True once something of it has been shown.
    pub(super) fn opened(&self) -> bool {
        self.opened
    }
    fn place(&self) -> Place {
        Place {
            response_id: self.id.clone(),
            item_id: self.item_id.clone(),
            output_index: self.message_index,
            content_index: 0,
        }
    }
    fn part(&self, text: String) -> Part {
        if self.audio { Part::Audio(text) } else { Part::Text(text) }
    }
    /// Shows the item, once, before its first delta. `previous` is the item before it.
    pub(super) fn open(&mut self, previous: Option<String>, out: &mut Vec<ServerEvent>) {
        if std::mem::replace(&mut self.opened, true) {
            return;
        }
        self.previous_item_id = previous;
        self.message_index = self.calls.len() as u32;
        let item = Item::message(&*self.item_id, Role::Assistant, ItemStatus::InProgress, Vec::new());
        let place = self.place();
        let added = ServerEvent::OutputItemAdded {
            response_id: self.id.to_string(),
            output_index: place.output_index,
            item: item.clone(),
        };
        let previous_item_id = self.previous_item_id.clone();
        let new = [
            ServerEvent::ItemAdded { previous_item_id: previous_item_id.clone(), item: item.clone() },
            ServerEvent::ItemCreated { previous_item_id, item },
        ];
        // Stock clients want the output item first, the duplex profile the conversation's.
        if self.profile == Profile::Duplex {
            out.extend(new);
            out.push(added);
        } else {
            out.push(added);
            out.extend(new);
        }
        out.push(ServerEvent::ContentPartAdded { place, part: self.part(String::new()) });
    }
    /// `response.speak`, for a graph that says when it speaks.
    pub(super) fn speak(&self) -> ServerEvent {
        ServerEvent::Speak { place: self.place(), session_id: self.session_id.to_string(), epoch: self.epoch }
    }
    /// More text. A text answer tells it at once, a spoken one with its next piece of audio.
    pub(super) fn add_text(&mut self, text: &str, out: &mut Vec<ServerEvent>) {
        self.text.push_str(text);
        if self.audio {
            self.untold.push_str(text);
        } else if !text.is_empty() {
            out.push(ServerEvent::TextDelta { place: self.place(), delta: text.to_owned() });
        }
    }
    /// A piece of audio, encoded, and the text that goes with it: its mark, and how many bytes of text that is.
    pub(super) fn add_audio(&mut self, piece: AudioPiece, out: &mut Vec<ServerEvent>) -> (Mark, usize) {
        let told = std::mem::take(&mut self.untold);
        let len = told.len();
        let chars = piece.spoken_chars.unwrap_or_else(|| self.text.chars().count() as u64);
        let mark = Mark { text_chars: chars, audio_end_ms: piece.audio_ms };
        out.push(ServerEvent::AudioDelta(Box::new(AudioDelta {
            place: self.place(),
            delta: piece.base64,
            format: piece.format,
            sample_rate_hz: piece.rate_hz,
            session_id: self.session_id.clone(),
            epoch: self.epoch,
            model_speak: piece.model_speak,
            end_of_turn: piece.end_of_turn,
            audio_duration_ms: piece.audio_ms,
            marks: vec![mark],
            playback: piece.playback,
            stage_metrics: None,
        })));
        out.push(ServerEvent::TranscriptDelta { place: self.place(), delta: told });
        (mark, len)
    }
    /// The last `bytes` of what was told, and all that was not, are not said after all. Gives how many bytes are.
    pub(super) fn take_back(&mut self, bytes: usize) -> usize {
        if self.audio {
            let told = self.text.len() - std::mem::take(&mut self.untold).len();
            self.text.truncate(told.saturating_sub(bytes));
        }
        self.text.len()
    }
    /// A function call, as an item of its own that is whole at once.
    pub(super) fn add_call(&mut self, item: Item, previous_item_id: Option<String>, out: &mut Vec<ServerEvent>) {
        let ItemKind::FunctionCall { call_id, name, arguments } = item.kind.clone() else { return };
        let output_index = self.calls.len() as u32 + u32::from(self.opened);
        let place = Place { item_id: item.id.as_str().into(), output_index, ..self.place() };
        let response_id = self.id.to_string();
        let new = [
            ServerEvent::ItemAdded { previous_item_id: previous_item_id.clone(), item: item.clone() },
            ServerEvent::ItemCreated { previous_item_id: previous_item_id.clone(), item: item.clone() },
        ];
        let added = ServerEvent::OutputItemAdded { response_id: response_id.clone(), output_index, item: item.clone() };
        if self.profile == Profile::Duplex {
            out.extend(new);
            out.push(added);
        } else {
            out.push(added);
            out.extend(new);
        }
        let delta = arguments.clone();
        out.push(ServerEvent::CallDelta { place: place.clone(), call_id: call_id.clone(), delta });
        out.push(ServerEvent::CallDone { place, call_id, name, arguments });
        out.push(ServerEvent::OutputItemDone { response_id, output_index, item: item.clone() });
        out.push(ServerEvent::ItemDone { previous_item_id, item: item.clone() });
        self.calls.push(item);
    }
    /// The end of it: everything that was opened is closed, then `response.done`.
    pub(super) fn finish(mut self, end: Ended, out: &mut Vec<ServerEvent>) {
        let status = match end.outcome {
            Outcome::Completed => ItemStatus::Completed,
            _ => ItemStatus::Incomplete,
        };
        if status != ItemStatus::Completed {
            // What was never spoken is not said.
            let told = self.text.len() - std::mem::take(&mut self.untold).len();
            self.text.truncate(told);
        }
        let mut output = std::mem::take(&mut self.calls);
        if self.opened {
            let place = self.place();
            let content = if self.audio {
                if end.audio_ms > 0 || !self.text.is_empty() {
                    out.push(ServerEvent::AudioDone { place: place.clone() });
                }
                if !self.text.is_empty() {
                    if !self.untold.is_empty() {
                        // Text that no audio followed.
                        out.push(ServerEvent::TranscriptDelta { place: place.clone(), delta: self.untold.clone() });
                    }
                    out.push(ServerEvent::TranscriptDone { place: place.clone(), transcript: self.text.clone() });
                }
                Content::OutputAudio { transcript: self.text.clone(), audio_duration_ms: Some(end.audio_ms) }
            } else {
                out.push(ServerEvent::TextDone { place: place.clone(), text: self.text.clone() });
                Content::OutputText(self.text.clone())
            };
            out.push(ServerEvent::ContentPartDone { place: place.clone(), part: self.part(self.text.clone()) });
            let item = Item::message(&*self.item_id, Role::Assistant, status, vec![content]);
            out.push(ServerEvent::OutputItemDone {
                response_id: self.id.to_string(),
                output_index: place.output_index,
                item: item.clone(),
            });
            let previous_item_id = self.previous_item_id.clone();
            out.push(ServerEvent::ItemDone { previous_item_id, item: item.clone() });
            output.insert((place.output_index as usize).min(output.len()), item);
        }
        out.push(ServerEvent::ResponseDone(Box::new(Done {
            response_id: self.id.to_string(),
            session_id: self.session_id.to_string(),
            epoch: self.epoch,
            outcome: end.outcome,
            output,
            usage: end.usage,
            metadata: self.metadata,
            committed: end.committed,
            playback: end.playback,
            stage_metrics: None,
        })));
        out.push(ServerEvent::RateLimits);
    }
    /// The turn it answers.
    pub(super) fn turn_id(&self) -> u64 {
        self.turn_id
    }
}

/// One encoded piece of audio.
pub(super) struct AudioPiece {
    pub(super) base64: String,
    pub(super) format: &'static str,
    pub(super) rate_hz: u32,
    /// All audio of the answer up to its end, ms.
    pub(super) audio_ms: u64,
    pub(super) spoken_chars: Option<u64>,
    pub(super) model_speak: bool,
    pub(super) end_of_turn: bool,
    pub(super) playback: Playback,
}

/// How an answer ended.
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    pub(super) audio_ms: u64,
    pub(super) usage: Usage,
    pub(super) committed: bool,
    pub(super) playback: Playback,
}
