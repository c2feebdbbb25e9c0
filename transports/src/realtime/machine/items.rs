//! Items that a client writes, reads and takes away.

use std::time::Duration;

use crate::realtime::config::format::AudioFormat;
use crate::realtime::rules::audio::AudioError;
use crate::realtime::rules::input::Input;
use crate::realtime::rules::items::{Body, Item, ItemError, Part, Place};
use crate::realtime::rules::pending::{Bytes, Commit};
use crate::realtime::wire::client::item::{ItemCreate, NewKind, NewPart};
use crate::realtime::wire::code::{Code, Refusal};
use crate::realtime::wire::server::ServerEvent;
use crate::realtime::wire::server::item::{self, Content, ItemKind, ItemStatus, Role};

use super::input::backpressure;
use super::turns::Turn;
use super::{Effect, GraphCommand, INPUT_RATE_HZ, Session};

/// Characters of an image that are shown again: more would not fit a frame.
const MOST_SHOWN: usize = 256 * 1024;

/// Speech in an item.
struct Spoken {
    pieces: Vec<Vec<f32>>,
    /// The client knows what was said in all of it.
    words: bool,
    time: Duration,
    held: (Option<Commit>, Option<Bytes>),
}

/// An item as the client is shown it.
pub(super) fn shown(item: &Item) -> item::Item {
    let kind = match &item.body {
        Body::Message { role, parts } => {
            ItemKind::Message { role: *role, content: parts.iter().map(|p| content(*role, p)).collect() }
        }
        Body::Answer(answer) => {
            let heard = answer.heard().to_owned();
            let part = if answer.is_spoken() {
                Content::OutputAudio { transcript: heard, audio_duration_ms: Some(answer.ledger().total_ms()) }
            } else {
                Content::OutputText(heard)
            };
            ItemKind::Message { role: Role::Assistant, content: vec![part] }
        }
        Body::Call { call_id, name, arguments, .. } => {
            ItemKind::FunctionCall { call_id: call_id.clone(), name: name.clone(), arguments: arguments.clone() }
        }
        Body::Output { call_id, output } => {
            ItemKind::FunctionCallOutput { call_id: call_id.clone(), output: output.clone() }
        }
    };
    item::Item { id: item.id.clone(), status: ItemStatus::Completed, kind }
}

fn content(role: Role, part: &Part) -> Content {
    match part {
        Part::Text(text) if role == Role::Assistant => Content::OutputText(text.clone()),
        Part::Text(text) => Content::InputText(text.clone()),
        Part::Audio(transcript) if role == Role::Assistant => {
            Content::OutputAudio { transcript: transcript.clone().unwrap_or_default(), audio_duration_ms: None }
        }
        Part::Audio(transcript) => Content::InputAudio { transcript: transcript.clone() },
        Part::Image(url) => Content::InputImage { image_url: Some(url.clone()).filter(|url| url.len() <= MOST_SHOWN) },
    }
}

/// The words of a message.
pub(super) fn words(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|p| match p {
        Part::Text(text) => Some(text.as_str()),
        Part::Audio(transcript) => transcript.as_deref(),
        Part::Image(_) => None,
    });
    texts.map(str::trim).filter(|t| !t.is_empty()).collect::<Vec<_>>().join("\n")
}

fn refusal(e: ItemError) -> Refusal {
    match e {
        ItemError::Duplicate(id) => Refusal::duplicate_item(&id),
        ItemError::NotFound(id) => Refusal::item_not_found(&id),
        e @ (ItemError::UnknownCall(_) | ItemError::AnsweredCall(_)) => {
            Refusal::new(Code::InvalidFunctionCallOutput, e.to_string()).about("item.call_id")
        }
        e @ ItemError::DuplicateCall(_) => Refusal::bad("item.call_id", e.to_string()),
        e @ ItemError::TooLarge { .. } => Refusal::bad("item", e.to_string()),
    }
}

impl Session {
    /// `conversation.item.create`.
    ///
    /// # Errors
    /// The refusal; nothing has changed then.
    pub(super) fn create_item(&mut self, create: ItemCreate) -> Result<(), Refusal> {
        let spoken = match &create.kind {
            NewKind::Message { role: Role::User, content } => self.spoken(content)?,
            _ => None,
        };
        let (body, asks) = match create.kind {
            NewKind::Message { role, content } => {
                let parts: Vec<Part> = content.into_iter().map(part).collect();
                (Body::Message { role, parts }, role == Role::User)
            }
            NewKind::FunctionCall { call_id, name, arguments } => {
                (Body::Call { call_id, name, arguments, answered: false }, false)
            }
            NewKind::FunctionCallOutput { call_id, output } => (Body::Output { call_id, output }, true),
        };
        let output = matches!(body, Body::Output { .. });
        let heard = spoken.is_some();
        let id = create.id.unwrap_or_else(|| self.ids.item());
        let place = match create.previous_item_id.as_deref() {
            None => Place::End,
            Some("root") => Place::First,
            Some(id) => Place::After(id),
        };
        let previous = self.items.insert(Item { id: id.clone(), body }, place).map_err(refusal)?.previous;
        self.started = true;
        if output {
            // What a function gave is answered like speech is.
            self.unanswered_turn = true;
        } else if !heard {
            self.unanswered += usize::from(asks);
        }
        if let Some(item) = self.items.get(&id).map(shown) {
            let previous_item_id = previous;
            self.tell(ServerEvent::ItemAdded { previous_item_id: previous_item_id.clone(), item: item.clone() });
            self.tell(ServerEvent::ItemCreated { previous_item_id: previous_item_id.clone(), item: item.clone() });
            self.tell(ServerEvent::ItemDone { previous_item_id, item });
        }
        if let Some(spoken) = spoken {
            self.speak(id, spoken);
        }
        Ok(())
    }
    /// The speech in a message of the user; none if there is none.
    ///
    /// # Errors
    /// The refusal of audio that cannot be read, or of too much.
    fn spoken(&mut self, content: &[NewPart]) -> Result<Option<Spoken>, Refusal> {
        let (mut pieces, mut bytes, mut time, mut words) = (Vec::new(), 0, Duration::ZERO, true);
        for part in content {
            let NewPart::Audio { audio: Some(audio), format, rate_hz, transcript } = part else { continue };
            let rate = rate_hz.unwrap_or(self.config.input_rate_hz);
            let format = match format {
                Some(format) => format.resolve(rate),
                None => AudioFormat { rate_hz: rate_hz.unwrap_or(self.config.input.rate_hz), ..self.config.input },
            };
            let (mut decoder, mut samples) = (Input::new(INPUT_RATE_HZ), Vec::new());
            let appended = decoder.push(format, audio, &mut samples).map_err(|e| {
                let code =
                    if matches!(e, AudioError::Base64(_)) { Code::BadAudio } else { Code::UnsupportedAudioFormat };
                Refusal::new(code, e.to_string()).about("item.content")
            })?;
            decoder.finish(&mut samples);
            if f64::from(appended.rms) >= self.config.overlap.silence_rms && !samples.is_empty() {
                (bytes, time) = (bytes + appended.bytes, time + appended.duration());
                words &= transcript.is_some();
                pieces.push(samples);
            }
        }
        if pieces.is_empty() {
            return Ok(None);
        }
        let place = self.pending.commit().map_err(|e| backpressure(&e))?;
        let held = self.pending.hold(bytes).map_err(|e| backpressure(&e))?;
        Ok(Some(Spoken { pieces, words, time, held: (Some(place), Some(held)) }))
    }
    /// Speech of an item is a turn that nobody has asked to be answered yet.
    fn speak(&mut self, item_id: String, spoken: Spoken) {
        for samples in spoken.pieces {
            self.out.push(Effect::Graph(GraphCommand::Audio { samples, holds: 0 }));
        }
        if !self.capabilities.native() {
            self.out.push(Effect::Graph(GraphCommand::Commit(Vec::new())));
        }
        self.turns.push_back(Turn {
            item_id,
            start: None,
            duration_ms: u64::try_from(spoken.time.as_millis()).unwrap_or(u64::MAX),
            wanted: false,
            options: None,
            deferred: self.response.is_some(),
            unheard: self.traits.transcribes && !spoken.words,
            wordless: false,
            shown: true,
            held: spoken.held,
        });
        self.advance();
    }
    /// Text that came beside the audio, as an item.
    ///
    /// # Errors
    /// The refusal; nothing has changed then.
    pub(super) fn add_user_text(&mut self, text: String) -> Result<(), Refusal> {
        self.create_item(ItemCreate {
            id: None,
            status: ItemStatus::Completed,
            kind: NewKind::Message { role: Role::User, content: vec![NewPart::Text(text)] },
            previous_item_id: None,
        })
    }
    /// `conversation.item.retrieve`.
    ///
    /// # Errors
    /// `item_retrieve_invalid_item_id`.
    pub(super) fn retrieve(&mut self, id: &str) -> Result<(), Refusal> {
        let Some(item) = self.items.get(id).map(shown) else {
            return Err(Refusal::item_not_found(id).under(Code::ItemRetrieveInvalidItemId));
        };
        self.tell(ServerEvent::ItemRetrieved { item });
        Ok(())
    }
    /// `conversation.item.delete`. The item of the active answer goes once that has ended.
    ///
    /// # Errors
    /// `item_not_found`, or `bad_event` for the item of the active answer.
    pub(super) fn delete(&mut self, id: &str) -> Result<(), Refusal> {
        if self.response.as_ref().is_some_and(|r| &*r.shown.item_id == id) {
            return Err(Refusal::bad("item_id", "this answer is still being made; cancel it before deleting it"));
        }
        self.items.delete(id).map_err(refusal)?;
        self.tell(ServerEvent::ItemDeleted { item_id: id.to_owned() });
        Ok(())
    }
}

fn part(part: NewPart) -> Part {
    match part {
        NewPart::Text(text) => Part::Text(text),
        NewPart::Audio { transcript, .. } => Part::Audio(transcript),
        NewPart::Image { image_url } => Part::Image(image_url),
    }
}
