//! The user's side: appends, commits, and what the graph hears in them.

use std::time::Duration;

use crate::realtime::config::overlap::OverlapPolicy;
use crate::realtime::rules::input::Input;
use crate::realtime::rules::items::{Body, Item, Part, Place};
use crate::realtime::rules::overlap::{self, Action, Onset};
use crate::realtime::rules::pending::Bytes;
use crate::realtime::wire::client::Commit;
use crate::realtime::wire::client::append::Append;
use crate::realtime::wire::code::{Code, Refusal};
use crate::realtime::wire::server::item::{Content, ItemStatus, Role};
use crate::realtime::wire::server::response::{CancelReason, ListenReason};
use crate::realtime::wire::server::session::TurnState;
use crate::realtime::wire::server::{self, ServerEvent};

use super::turns::Turn;
use super::{Effect, GraphCommand, INPUT_RATE_HZ, Session};

/// What was appended since the last commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Seen {
    #[default]
    Nothing,
    Noise,
    Speech,
}

/// Input that no turn has taken yet.
pub(super) struct UserInput {
    decoder: Input,
    seen: Seen,
    /// The item of the utterance that has begun.
    item_id: Option<String>,
    /// All audio of the session so far, and of what is not committed.
    clock: Duration,
    open: Duration,
    /// What the client says was said.
    hints: Vec<String>,
    /// Text given beside the audio.
    text: String,
    /// Pending input: audio that the graph has not taken, and audio that is not committed.
    streamed: Option<Bytes>,
    kept: Option<Bytes>,
}

impl UserInput {
    pub(super) fn new() -> Self {
        Self {
            decoder: Input::new(INPUT_RATE_HZ),
            seen: Seen::Nothing,
            item_id: None,
            clock: Duration::ZERO,
            open: Duration::ZERO,
            hints: Vec::new(),
            text: String::new(),
            streamed: None,
            kept: None,
        }
    }
    fn reset(&mut self) {
        self.decoder.clear();
        (self.seen, self.item_id, self.open) = (Seen::Nothing, None, Duration::ZERO);
        self.hints.clear();
        self.kept = None;
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
fn at_ms(samples: u64) -> u64 {
    samples / (u64::from(INPUT_RATE_HZ) / 1000)
}

impl Session {
    /// True if the graph finds the turns.
    pub(super) fn detecting(&self) -> bool {
        self.traits.detects && self.config.turn_detection.is_some()
    }

    /// `input_audio_buffer.append`.
    ///
    /// # Errors
    /// The refusal; nothing has changed then.
    pub(super) fn append(&mut self, append: &Append) -> Result<(), Refusal> {
        if !append.video_frames.is_empty() && !self.capabilities.image {
            let message = "this graph takes no camera frames; leave `video_frames` out";
            return Err(Refusal::new(Code::InvalidVideoFrames, message).about("video_frames"));
        }
        let format = append.audio_format(self.config.input, self.config.input_rate_hz)?;
        let audio = append.audio.as_deref().unwrap_or_default();
        let held = self.pending.hold(audio.len() / 4 * 3).map_err(|e| backpressure(&e))?;
        let mut samples = Vec::new();
        let appended = self.input.decoder.push(format, audio, &mut samples).map_err(|e| {
            let code = match e {
                crate::realtime::rules::audio::AudioError::Base64(_) => Code::BadAudio,
                _ => Code::UnsupportedAudioFormat,
            };
            Refusal::new(code, e.to_string()).about("audio")
        })?;
        self.started = true;
        self.native.heard();
        let speech = append.speech(f64::from(appended.rms), self.config.overlap.silence_rms);
        let duration = append.duration_ms.map_or(appended.duration(), |ms| Duration::from_secs_f64(ms / 1000.0));
        if let Some(hint) = append.transcript.as_ref().filter(|t| self.input.hints.last() != Some(t)) {
            self.input.hints.push(hint.clone());
        }
        let goes = self.response.is_none() || self.overlapped(append, speech, duration);
        if !goes && !self.detecting() {
            return Ok(());
        }
        if self.detecting() {
            self.input.seen = Seen::Speech;
        } else {
            self.utterance(speech);
        }
        self.input.clock += appended.duration();
        self.input.open += appended.duration();
        let holds = held.count() as u64;
        let keep = if self.detecting() { &mut self.input.streamed } else { &mut self.input.kept };
        match keep {
            // Permits of one session always join.
            Some(all) => drop(all.join(held)),
            None => *keep = Some(held),
        }
        if !samples.is_empty() || holds > 0 {
            self.out.push(Effect::Graph(GraphCommand::Audio { samples, holds }));
        }
        Ok(())
    }
    /// Without a detector an utterance begins with its first speech.
    fn utterance(&mut self, speech: bool) {
        if !speech {
            self.input.seen = self.input.seen.max_noise();
            return;
        }
        self.input.seen = Seen::Speech;
        if self.input.item_id.is_none() {
            let item_id = self.ids.item();
            self.input.item_id = Some(item_id.clone());
            self.tell(ServerEvent::SpeechStarted { item_id, audio_start_ms: ms(self.input.clock) });
            if self.response.is_none() {
                self.turn_state = TurnState::UserSpeaking;
            }
        }
    }
    /// Audio under an answer: true if it is kept or goes on.
    fn overlapped(&mut self, append: &Append, speech: bool, duration: Duration) -> bool {
        let onset = match append.vad.speech_started {
            Some(true) => Onset::Starts,
            Some(false) => Onset::Not,
            // The graph's own detector says so when it knows.
            None if self.detecting() => Onset::Not,
            None => Onset::Unknown,
        };
        let settings = self.overlap_settings();
        let facts = overlap::Append {
            speech,
            duration,
            asked: append.overlap_action,
            force_listen: append.force_listen,
            force_barge_in: append.force_barge_in,
            transcript: append.transcript.as_deref(),
            onset,
        };
        let decision = self.overlap.decide(&settings, &facts);
        let interrupts = decision.action == Action::BargeIn;
        if interrupts {
            self.epoch += 1;
        }
        if decision.say && !(self.detecting() && decision.action == Action::Drop) {
            self.tell(ServerEvent::Overlap(server::Overlap {
                session_id: self.id.to_string(),
                epoch: self.epoch,
                policy: settings.policy,
                action: decision.action.name(),
                reason: decision.reason.name(),
                duration_ms: ms(duration),
                overlap_speech_ms: ms(decision.overlap_speech),
                buffer_audio: decision.keep,
                defer_runtime_append: decision.keep,
            }));
        }
        if interrupts {
            self.cancel(decision.cancel_reason.unwrap_or(CancelReason::BargeIn));
            self.turn_state = TurnState::BargeIn;
        }
        decision.keep || decision.straight
    }
    pub(super) fn overlap_settings(&self) -> overlap::Settings {
        let o = &self.config.overlap;
        overlap::Settings {
            policy: o.policy,
            supports_barge_in: self.capabilities.barge_in,
            auto_respond: self.config.auto_response,
            short_ack: Duration::from_millis(o.short_ack_ms),
            barge_in: Duration::from_millis(o.barge_in_ms),
            short_acks: self.short_acks.clone(),
        }
    }
    /// All audio of the user so far.
    pub(super) fn input_clock(&self) -> Duration {
        self.input.clock
    }
    /// The graph has taken audio.
    pub(super) fn taken(&mut self, bytes: u64) {
        if let Some(held) = &mut self.input.streamed {
            held.release(usize::try_from(bytes).unwrap_or(usize::MAX));
        }
    }
    /// The graph heard the user begin.
    pub(super) fn speech_started(&mut self, at: u64) {
        let item_id = self.ids.item();
        self.input.item_id = Some(item_id.clone());
        self.tell(ServerEvent::SpeechStarted { item_id, audio_start_ms: at_ms(at) });
        let interrupts = self.config.turn_detection.as_ref().is_some_and(|t| t.interrupt_response);
        if self.response.is_some() && interrupts && self.capabilities.barge_in {
            self.epoch += 1;
            self.tell(ServerEvent::Overlap(server::Overlap {
                session_id: self.id.to_string(),
                epoch: self.epoch,
                policy: OverlapPolicy::BargeInOnSpeech,
                action: Action::BargeIn.name(),
                reason: overlap::Reason::ServerVadSpeechStarted.name(),
                duration_ms: 0,
                overlap_speech_ms: ms(self.overlap.speech()),
                buffer_audio: false,
                defer_runtime_append: false,
            }));
            self.cancel(CancelReason::TurnDetected);
            self.turn_state = TurnState::BargeIn;
        } else if self.response.is_none() {
            self.turn_state = TurnState::UserSpeaking;
        }
    }
    /// The graph heard the user stop.
    pub(super) fn speech_stopped(&mut self, at: u64) {
        if let Some(item_id) = self.input.item_id.clone() {
            self.tell(ServerEvent::SpeechStopped { item_id, audio_end_ms: at_ms(at) });
        }
    }
    /// The graph found the end of a turn.
    pub(super) fn turn_ended(&mut self, start: u64, end: u64, committed: bool) {
        if committed {
            return self.turn_begun(start);
        }
        let wanted = self.config.turn_detection.as_ref().is_none_or(|t| t.create_response);
        let item_id = self.input.item_id.take().unwrap_or_else(|| self.ids.item());
        let turn = self.turn(item_id, Some(start), at_ms(end.saturating_sub(start)), wanted);
        self.committed(turn, false);
        self.input.reset();
        self.advance();
    }
    fn turn(&mut self, item_id: String, start: Option<u64>, duration_ms: u64, wanted: bool) -> Turn {
        Turn {
            item_id,
            start,
            duration_ms,
            wanted,
            options: None,
            deferred: self.response.is_some(),
            unheard: self.traits.transcribes,
            wordless: false,
            shown: false,
            held: (None, self.input.kept.take()),
        }
    }
    /// Puts a turn into the conversation and tells of it.
    fn committed(&mut self, mut turn: Turn, silent: bool) {
        let hint = std::mem::take(&mut self.input.hints).join(" ");
        let (item_id, text) = (turn.item_id.clone(), std::mem::take(&mut self.input.text));
        let mut parts = vec![Part::Audio((!hint.is_empty()).then(|| hint.clone()))];
        let mut content = vec![Content::InputAudio { transcript: (!hint.is_empty()).then(|| hint.clone()) }];
        if !text.is_empty() {
            content.push(Content::InputText(text.clone()));
            parts.push(Part::Text(text));
        }
        if !turn.deferred {
            self.items.freeze();
        }
        let item = Item { id: item_id.clone(), body: Body::Message { role: Role::User, parts } };
        // Its name is new, and there is room for one of any size that could be appended.
        let previous_item_id = self.items.insert(item, Place::End).ok().and_then(|i| i.previous);
        let shown = server::item::Item::message(&*item_id, Role::User, ItemStatus::Completed, content.clone());
        self.tell(ServerEvent::ItemAdded { previous_item_id: previous_item_id.clone(), item: shown.clone() });
        self.tell(ServerEvent::ItemCreated { previous_item_id: previous_item_id.clone(), item: shown });
        let history_len = self.items.history().count() as u64;
        self.tell(ServerEvent::Committed(server::Committed {
            item_id: item_id.clone(),
            previous_item_id,
            session_id: self.id.to_string(),
            turn_id: self.turn_id,
            epoch: self.epoch,
            history_len,
            content,
            overlap_deferred: turn.deferred,
            no_response: silent,
        }));
        if self.response.is_none() {
            self.turn_state = TurnState::UserCommitted;
        }
        if silent {
            return self.item_done(&item_id);
        }
        if turn.unheard && !hint.is_empty() && !self.detecting() {
            // The client knows what was said.
            turn.unheard = false;
        }
        let done = !turn.unheard;
        if done && !hint.is_empty() {
            let duration_ms = turn.duration_ms;
            self.tell(ServerEvent::TranscriptionCompleted {
                item_id: item_id.clone(),
                content_index: 0,
                transcript: hint,
                duration_ms,
            });
        }
        self.turns.push_back(turn);
        if done {
            self.item_done(&item_id);
        }
    }
    /// `conversation.item.done` of an item as it is now.
    pub(super) fn item_done(&mut self, id: &str) {
        let previous_item_id = self.items.previous(id).map(str::to_owned);
        if let Some(item) = self.items.get(id).map(super::items::shown) {
            self.tell(ServerEvent::ItemDone { previous_item_id, item });
        }
    }

    /// `input_audio_buffer.commit`.
    ///
    /// # Errors
    /// The refusal; nothing has changed then.
    pub(super) fn commit(&mut self, commit: Commit) -> Result<(), Refusal> {
        if self.input.seen == Seen::Nothing {
            return Err(Refusal::commit_empty());
        }
        if !commit.is_final {
            return Ok(());
        }
        let speech = commit.is_speech.unwrap_or(self.input.seen == Seen::Speech);
        let place = self.pending.commit().map_err(|e| backpressure(&e))?;
        let mut rest = Vec::new();
        self.input.decoder.finish(&mut rest);
        let told = self.input.item_id.take();
        let item_id = told.clone().unwrap_or_else(|| self.ids.item());
        if told.is_some() && !self.detecting() {
            self.tell(ServerEvent::SpeechStopped { item_id: item_id.clone(), audio_end_ms: ms(self.input.clock) });
        }
        let wanted = commit.response_create.unwrap_or(self.config.auto_response);
        let mut turn = self.turn(item_id, None, ms(self.input.open), wanted);
        turn.held.0 = Some(place);
        if speech {
            if wanted || !self.capabilities.native() {
                self.out.push(Effect::Graph(GraphCommand::Commit(rest)));
            } else if !rest.is_empty() {
                // A commit would be answered.
                self.out.push(Effect::Graph(GraphCommand::Audio { samples: rest, holds: 0 }));
            }
            self.committed(turn, false);
        } else {
            self.out.push(Effect::Graph(GraphCommand::Clear));
            self.committed(turn, true);
            self.tell(ServerEvent::Listen {
                session_id: self.id.to_string(),
                epoch: self.epoch,
                response_id: None,
                reason: ListenReason::SilenceOrNoise,
            });
            self.settle();
        }
        self.input.reset();
        self.advance();
        Ok(())
    }
    /// Nothing of the user's waits any more: whose turn is it?
    pub(super) fn settle(&mut self) {
        if !self.busy() && self.input.item_id.is_none() {
            self.turn_state = TurnState::Idle;
        }
    }
    /// `input_audio_buffer.clear`.
    pub(super) fn clear_input(&mut self) {
        self.input.reset();
        self.input.text.clear();
        self.out.push(Effect::Graph(GraphCommand::Clear));
        self.tell(ServerEvent::InputCleared);
        self.settle();
    }
    /// Text beside the audio.
    pub(super) fn append_text(&mut self, text: &str) {
        self.input.text.push_str(text);
    }
    /// Text that no commit has taken.
    pub(super) fn take_text(&mut self) -> Option<String> {
        Some(std::mem::take(&mut self.input.text)).filter(|t| !t.trim().is_empty())
    }
    /// Overlap speech that was too short for a turn.
    pub(super) fn forget_overlap(&mut self) {
        if self.input.seen != Seen::Nothing && !self.detecting() {
            self.input.reset();
            self.out.push(Effect::Graph(GraphCommand::Clear));
        }
    }
}

impl Seen {
    fn max_noise(self) -> Self {
        if self == Seen::Nothing { Seen::Noise } else { self }
    }
}

pub(super) fn backpressure(full: &crate::realtime::rules::pending::Full) -> Refusal {
    Refusal::new(Code::InputBackpressure, full.to_string())
}
