//! A model that owns its turns: it answers unasked, and may need input to go on speaking.

use std::collections::VecDeque;
use std::time::Duration;

use crate::realtime::rules::pending::Commit;
use crate::realtime::rules::units::Silence;
use crate::realtime::wire::client::response::ResponseOptions;
use crate::realtime::wire::server::response::Outcome;
use crate::realtime::wire::server::session::TurnState;

use super::{AnswerPart, Effect, GraphCommand, INPUT_RATE_HZ, Session};

/// The unit of a model that declares none.
const UNIT: Duration = Duration::from_millis(20);

/// A commit whose answer has not begun.
struct Awaited {
    options: ResponseOptions,
    place: Option<Commit>,
}

/// What a session has to know about such a model.
pub(super) struct Native {
    awaited: VecDeque<Awaited>,
    silence: Silence,
    /// It waits for a unit, and the user is speaking.
    hungry: bool,
    /// The user gave input since the last unit that was asked for.
    heard: bool,
}

impl Native {
    pub(super) fn new(silence_units: u32) -> Self {
        Self { awaited: VecDeque::new(), silence: Silence::new(silence_units), hungry: false, heard: false }
    }
    /// True while a commit waits for its answer.
    pub(super) fn awaits(&self) -> bool {
        !self.awaited.is_empty()
    }
    /// The user gave input.
    pub(super) fn heard(&mut self) {
        self.heard = true;
        self.silence.reset();
    }
    pub(super) fn clear(&mut self) {
        self.awaited.clear();
        self.hungry = false;
    }
    /// Gives the options to the answer that is awaited; back if there is none.
    pub(super) fn join(&mut self, options: ResponseOptions) -> Option<ResponseOptions> {
        match self.awaited.back_mut() {
            Some(awaited) => {
                awaited.options = options;
                None
            }
            None => Some(options),
        }
    }
}

impl Session {
    /// Tells a model that is not asked what its answers are to be made from.
    pub(super) fn give_context(&mut self) {
        if self.capabilities.native() {
            let (instructions, voice) = (self.config.instructions.clone(), self.config.voice.clone());
            self.out.push(Effect::Graph(GraphCommand::Context { instructions, voice }));
        }
    }
    fn unit(&self) -> Duration {
        self.capabilities.chunk_period_ms.map_or(UNIT, |ms| Duration::from_millis(ms.max(1).into()))
    }
    /// A commit that the model will answer, or listen to.
    pub(super) fn await_answer(&mut self, options: ResponseOptions, place: Option<Commit>) {
        (self.unanswered, self.unanswered_turn, self.started) = (0, false, true);
        self.native.awaited.push_back(Awaited { options, place });
    }
    /// The model has begun an answer by itself, with `part`. False if there is none to show: it listens, or should.
    pub(super) fn unasked(&mut self, key: u64, part: &AnswerPart) -> bool {
        self.key = key;
        let units = self.input_clock().as_nanos() / self.unit().as_nanos().max(1);
        let listens = self.config.force_listen_count.is_some_and(|n| units < u128::from(n));
        let awaited = self.native.awaited.pop_front();
        if listens || *part == AnswerPart::Listen {
            if listens {
                self.out.push(Effect::Graph(GraphCommand::Fence));
            }
            self.listen(None);
            self.settle();
            return false;
        }
        if awaited.is_none() && !self.config.auto_response {
            // Nobody wants it.
            self.out.push(Effect::Graph(GraphCommand::Fence));
            return false;
        }
        let Awaited { options, place } =
            awaited.unwrap_or_else(|| Awaited { options: ResponseOptions::default(), place: None });
        self.native.silence.reset();
        (self.native.hungry, self.native.heard) = (false, false);
        self.begin(key, &options, place);
        self.turn_state = TurnState::AssistantGenerating;
        true
    }
    /// The model goes on once it has heard one more unit. If the user speaks that may be of what they say.
    pub(super) fn unit_needed(&mut self) {
        self.native.hungry = true;
        if !std::mem::take(&mut self.native.heard) {
            self.give_silence();
        }
    }
    /// How long a model may wait for the user's next input before it is given silence ([`Session::starve`]); `None` if it
    /// waits for nothing.
    pub fn hungry(&self) -> Option<Duration> {
        (self.native.hungry && self.response.is_some()).then(|| self.unit())
    }
    /// The user has given nothing for so long.
    pub fn starve(&mut self) -> Vec<Effect> {
        if self.hungry().is_some() {
            self.give_silence();
        }
        std::mem::take(&mut self.out)
    }
    fn give_silence(&mut self) {
        self.native.hungry = false;
        if self.native.silence.take() {
            let samples = self.unit().as_millis() * u128::from(INPUT_RATE_HZ) / 1000;
            let samples = vec![0.0; usize::try_from(samples).unwrap_or_default()];
            self.out.push(Effect::Graph(GraphCommand::Audio { samples, holds: 0 }));
            return;
        }
        // It would go on for ever: what there is, is the answer.
        self.out.push(Effect::Graph(GraphCommand::Fence));
        self.complete(Outcome::Completed);
    }
}
