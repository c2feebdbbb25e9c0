//! Answers: when one begins, what the graph gives of it, and how it ends.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::realtime::config::modality::Modality;
use crate::realtime::rules::answer::{Answer, Outcome as Ending};
use crate::realtime::rules::items::{Item, Place, Seen};
use crate::realtime::rules::output::{Output, Piece};
use crate::realtime::rules::pending::Commit;
use crate::realtime::wire::client::response::ResponseOptions;
use crate::realtime::wire::code::{Code, Refusal};
use crate::realtime::wire::server::ServerEvent;
use crate::realtime::wire::server::item::{self, Role};
use crate::realtime::wire::server::response::{CancelReason, ListenReason, Outcome, Usage};
use crate::realtime::wire::server::session::{Playback, TurnState};

use super::response::{AudioPiece, Begun, Ended, Response};
use super::{AnswerPart, Effect, GraphCommand, Message, Prompt, Session};

/// The active answer.
pub(super) struct Running {
    pub(super) shown: Response,
    encoder: Option<Output>,
    format: crate::realtime::config::format::AudioFormat,
    usage: Usage,
    /// It has been said that the model speaks.
    spoke: bool,
    /// Pieces of audio that the socket has not taken: samples, and bytes of the text that goes with them.
    untaken: VecDeque<(u64, usize)>,
    /// All of it was made; it ends once the socket has taken it, and can be cancelled until then.
    ending: Option<Outcome>,
    /// The place of its turn among pending commits.
    _place: Option<Commit>,
}

impl Session {
    /// `response.create`.
    ///
    /// # Errors
    /// The refusal of §9.1's table.
    pub(super) fn create(&mut self, options: ResponseOptions) -> Result<(), Refusal> {
        if self.capabilities.native() {
            options.check_native()?;
        }
        if let Some(running) = &self.response {
            if !self.capabilities.response_replace {
                return Err(Refusal::already_active(&running.shown.id));
            }
            self.epoch += 1;
            self.cancel(CancelReason::NewResponse);
        }
        if let Some(text) = self.take_text() {
            self.add_user_text(text)?;
        }
        if let Some(turn) = self.turns.back_mut() {
            // A commit was accepted: this joins its answer.
            (turn.wanted, turn.options) = (true, Some(options));
            self.advance();
            return Ok(());
        }
        let Some(options) = self.native.join(options) else { return Ok(()) };
        let items = std::mem::take(&mut self.unanswered);
        if std::mem::take(&mut self.unanswered_turn) || (items > 0 && self.capabilities.text_only_turn) {
            if self.capabilities.native() {
                self.out.push(Effect::Graph(GraphCommand::Commit(Vec::new())));
                self.await_answer(options, None);
            } else {
                self.respond(options, None);
            }
            return Ok(());
        }
        if items > 0 {
            let message = "this graph answers speech; append audio and commit it, then ask for a response";
            return Err(Refusal::new(Code::TextOnlyTurnUnsupported, message));
        }
        let message = "there is nothing to answer; append audio or create an item before response.create";
        Err(Refusal::new(Code::ResponseCreateWithoutInput, message))
    }
    /// Begins an answer to the conversation as it is.
    pub(super) fn respond(&mut self, options: ResponseOptions, place: Option<Commit>) {
        self.key += 1;
        (self.unanswered, self.unanswered_turn, self.started) = (0, false, true);
        let prompt = self.prompt(&options);
        self.begin(self.key, &options, place);
        self.out.push(Effect::Graph(GraphCommand::Answer { key: self.key, prompt: Box::new(prompt) }));
        self.turn_state = TurnState::AssistantGenerating;
    }
    pub(super) fn begin(&mut self, key: u64, options: &ResponseOptions, place: Option<Commit>) {
        let modalities = options.modalities.clone().unwrap_or_else(|| self.config.modalities.clone());
        let format = options.output_format.map_or(self.config.output, |f| f.resolve(self.config.output_rate_hz));
        let id: Arc<str> = self.ids.response().into();
        let spoken = modalities.contains(&Modality::Audio);
        let policy = self.config.playback_commit_policy;
        let answer = Answer::new(&*id, policy, format.rate_hz, spoken, self.traits.aligned);
        // Its name is new, and it is empty.
        let _ = self.items.insert(Item::answer(answer), Place::End);
        let (shown, created) = Response::new(Begun {
            id,
            key,
            session_id: self.id.clone(),
            profile: self.config.profile,
            epoch: self.epoch,
            turn_id: self.turn_id,
            modalities,
            metadata: options.metadata.clone().unwrap_or_default(),
        });
        self.playback = Playback::default();
        self.overlap.begin();
        self.tell(created);
        self.response = Some(Running {
            shown,
            encoder: None,
            format,
            usage: Usage::default(),
            spoke: false,
            untaken: VecDeque::new(),
            ending: None,
            _place: place,
        });
    }
    fn prompt(&self, options: &ResponseOptions) -> Prompt {
        let c = &self.config;
        let mut messages = Vec::new();
        for seen in self.items.history() {
            match seen {
                Seen::Message { role, parts } => {
                    let text = super::items::words(parts);
                    if !text.is_empty() {
                        messages.push(match role {
                            Role::User => Message::User(text),
                            Role::System => Message::System(text),
                            Role::Assistant => Message::Assistant(text),
                        });
                    }
                }
                Seen::Answer(text) => messages.push(Message::Assistant(text.to_owned())),
                Seen::Call { call_id, name, arguments, output } => {
                    let call_id = call_id.to_owned();
                    messages.push(Message::Call {
                        call_id: call_id.clone(),
                        name: name.to_owned(),
                        arguments: arguments.to_owned(),
                    });
                    let output = output.unwrap_or("cancelled").to_owned();
                    messages.push(Message::CallOutput { call_id, output });
                }
            }
        }
        let modalities = options.modalities.as_ref().unwrap_or(&c.modalities);
        Prompt {
            instructions: options.instructions.clone().or_else(|| c.instructions.clone()),
            messages,
            tools: options.tools.clone().or_else(|| c.tools.clone()).unwrap_or_default(),
            tool_choice: options.tool_choice.clone().or_else(|| c.tool_choice.clone()),
            temperature: options.temperature.or(c.temperature),
            max_output_tokens: options.max_output_tokens.or(c.max_output_tokens),
            voice: options.voice.clone().or_else(|| c.voice.clone()),
            speed: options.speed.or(c.speed),
            audio: modalities.contains(&Modality::Audio),
            turn: self.turn_id,
        }
    }
    /// Part of an answer. What belongs to another answer than the active one is nothing.
    pub(super) fn part(&mut self, key: u64, part: AnswerPart) {
        if self.capabilities.native() && self.response.is_none() && key > self.key && !self.unasked(key, &part) {
            return;
        }
        let Some(running) = &mut self.response else { return };
        if running.shown.key != key || running.ending.is_some() {
            return;
        }
        match part {
            AnswerPart::Text(text) => {
                if text.is_empty() {
                    return;
                }
                let mut out = Vec::new();
                running.shown.open(previous(&self.items, &running.shown), &mut out);
                if let Some(answer) = self.items.answer_mut(&running.shown.id) {
                    answer.write(&text);
                }
                running.shown.add_text(&text, &mut out);
                self.tell_all(out);
            }
            AnswerPart::Audio { samples, rate_hz, spoken_chars } => {
                if running.shown.audible() {
                    self.audio(&samples, rate_hz, spoken_chars);
                }
            }
            AnswerPart::NeedsUnit => self.unit_needed(),
            AnswerPart::Call { call_id, name, arguments } => self.call(call_id, name, arguments),
            AnswerPart::Listen => {
                let id = running.shown.id.to_string();
                self.listen(Some(id));
                self.complete(Outcome::Completed);
            }
            AnswerPart::End { usage, cut } => {
                running.usage = usage;
                self.complete(if cut { Outcome::Incomplete("max_output_tokens") } else { Outcome::Completed });
            }
            AnswerPart::Failed { message } => {
                self.fail(Refusal::new(Code::RuntimeDataPlaneStreamFailed, message));
                self.settle_turn();
            }
        }
    }
    fn audio(&mut self, samples: &[f32], rate_hz: u32, spoken_chars: Option<u64>) {
        let Some(running) = &mut self.response else { return };
        if running.encoder.is_none() {
            match Output::new(rate_hz, running.format) {
                Ok(encoder) => running.encoder = Some(encoder),
                Err(e) => {
                    self.fail(Refusal::new(Code::ResponseError, e.to_string()));
                    return self.settle_turn();
                }
            }
        }
        let pieces = running.encoder.as_mut().map(|e| e.push(samples)).unwrap_or_default();
        self.pieces(pieces, spoken_chars, false);
    }
    /// What the converter still holds.
    fn flush(&mut self) {
        let rest = self.response.as_mut().and_then(|r| r.encoder.as_mut()).map(Output::finish).unwrap_or_default();
        self.pieces(rest, None, true);
    }
    fn pieces(&mut self, pieces: Vec<Piece>, spoken_chars: Option<u64>, end_of_turn: bool) {
        let native = self.capabilities.native();
        let Some(running) = &mut self.response else { return };
        let mut out = Vec::new();
        for piece in pieces {
            running.shown.open(previous(&self.items, &running.shown), &mut out);
            if native && !std::mem::replace(&mut running.spoke, true) {
                out.push(running.shown.speak());
            }
            let mut audio_ms = 0;
            if let Some(answer) = self.items.answer_mut(&running.shown.id) {
                answer.generate(piece.samples);
                answer.send(piece.samples);
                self.playback = answer.ledger().playback();
                audio_ms = answer.ledger().total_ms();
            }
            (self.audio_sent, self.turn_state) = (true, TurnState::AssistantPlaying);
            let format = running.encoder.as_ref().map_or(running.format, Output::format);
            let samples = piece.samples;
            let piece = AudioPiece {
                base64: piece.audio,
                format: format.encoding.name(),
                rate_hz: format.rate_hz,
                audio_ms,
                spoken_chars,
                model_speak: native,
                end_of_turn,
                playback: self.playback,
            };
            let (mark, told) = running.shown.add_audio(piece, &mut out);
            running.untaken.push_back((samples, told));
            if let Some(answer) = self.items.answer_mut(&running.shown.id) {
                answer.mark(mark);
            }
        }
        self.tell_all(out);
    }
    fn call(&mut self, call_id: Option<String>, name: Option<String>, arguments: String) {
        let Some(running) = &mut self.response else { return };
        let (Some(call_id), Some(name)) = (call_id.clone(), name.clone()) else {
            let event =
                ServerEvent::RawCall { session_id: self.id.to_string(), epoch: self.epoch, call_id, name, arguments };
            return self.tell(event);
        };
        let item_id = self.ids.item();
        let body = crate::realtime::rules::items::Body::Call {
            call_id: call_id.clone(),
            name: name.clone(),
            arguments: arguments.clone(),
            answered: false,
        };
        let Ok(inserted) = self.items.insert(Item { id: item_id.clone(), body }, Place::End) else { return };
        let mut out = Vec::new();
        let kind = item::ItemKind::FunctionCall { call_id, name, arguments };
        let shown = item::Item { id: item_id, status: item::ItemStatus::Completed, kind };
        running.shown.add_call(shown, inserted.previous, &mut out);
        self.tell_all(out);
    }
    pub(super) fn listen(&mut self, response_id: Option<String>) {
        let (session_id, epoch) = (self.id.to_string(), self.epoch);
        self.tell(ServerEvent::Listen { session_id, epoch, response_id, reason: ListenReason::ModelListen });
    }
    /// All of the active answer was made: it ends once the socket has taken it.
    pub(super) fn complete(&mut self, outcome: Outcome) {
        self.flush();
        if let Some(running) = self.response.as_mut().filter(|r| !r.untaken.is_empty()) {
            running.ending = Some(outcome);
            return;
        }
        self.finish(outcome);
        self.settle_turn();
    }
    /// The socket has taken the oldest audio delta of a response, and the words that go with it.
    pub fn sent(&mut self, response: &str) -> Vec<Effect> {
        if let Some(running) = self.response.as_mut().filter(|r| &*r.shown.id == response) {
            running.untaken.pop_front();
            if running.untaken.is_empty()
                && let Some(outcome) = running.ending.take()
            {
                self.finish(outcome);
                self.settle_turn();
            }
        }
        std::mem::take(&mut self.out)
    }
    /// The active answer is void: everything of it ends here.
    pub(super) fn cancel(&mut self, reason: CancelReason) {
        if let Some(running) = &mut self.response {
            self.out.push(Effect::Purge(running.shown.id.clone()));
            self.out.push(Effect::Graph(GraphCommand::Fence));
            // What was never sent was never heard.
            let lost = running.untaken.drain(..).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            let left = running.shown.take_back(lost.1);
            if let Some(answer) = self.items.answer_mut(&running.shown.id) {
                answer.take_back(lost.0, left);
            }
            self.finish(Outcome::Cancelled(reason));
            self.turn_state = TurnState::Idle;
        }
    }
    /// The active answer has failed.
    pub(super) fn fail(&mut self, refusal: Refusal) {
        if self.response.is_some() {
            self.out.push(Effect::Graph(GraphCommand::Fence));
            self.tell(ServerEvent::Error { refusal: refusal.clone(), event_id: None });
            self.finish(Outcome::Failed(refusal));
        }
    }
    pub(super) fn finish(&mut self, outcome: Outcome) {
        let Some(running) = self.response.take() else { return };
        let id = running.shown.id.clone();
        let silenced = !running.shown.audible() && matches!(outcome, Outcome::Completed);
        let mut audio_ms = 0;
        if let Some(answer) = self.items.answer_mut(&id) {
            answer.end(match outcome {
                Outcome::Completed | Outcome::Incomplete(_) => Ending::Completed,
                Outcome::Cancelled(_) => Ending::Cancelled,
                Outcome::Failed(_) => Ending::Failed,
            });
            self.playback = answer.ledger().playback();
            audio_ms = answer.ledger().sent_ms();
        }
        let committed = self.items.answer(&id).is_some_and(|a| !a.heard().trim().is_empty());
        let done = !matches!(outcome, Outcome::Cancelled(_));
        let ended = Ended { outcome, audio_ms, usage: running.usage, committed, playback: self.playback };
        let shown = running.shown.opened();
        let mut out = Vec::new();
        running.shown.finish(ended, &mut out);
        self.tell_all(out);
        if !shown {
            // An answer of which nothing was shown leaves no item.
            let _ = self.items.delete(&crate::realtime::rules::items::answer_id(&id));
        }
        if silenced && self.traits.speaks {
            // Its text is out; nobody wants to hear it.
            self.out.push(Effect::Graph(GraphCommand::Fence));
        }
        self.turn_id += u64::from(done);
    }
    /// An answer has ended by itself: what was said under it becomes the next turn, or is forgotten.
    pub(super) fn settle_turn(&mut self) {
        self.turn_state = TurnState::Idle;
        let settings = self.overlap_settings();
        if !self.overlap.finish(&settings) {
            self.forget_overlap();
        }
        self.advance();
    }
}

/// The item before that of an answer.
fn previous(items: &crate::realtime::rules::items::Conversation, shown: &Response) -> Option<String> {
    items.previous(&shown.item_id).map(str::to_owned)
}
