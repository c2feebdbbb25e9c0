//! Changes of the configuration.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::realtime::config::Phase;
use crate::realtime::wire::code::Refusal;
use crate::realtime::wire::server::ServerEvent;

use super::{Effect, GraphCommand, Session};

impl Session {
    /// `session.update`: all of it, or nothing.
    ///
    /// # Errors
    /// The refusal; nothing has changed then.
    pub(super) fn update(&mut self, given: &Map<String, Value>) -> Result<(), Refusal> {
        let phase = Phase {
            audio_sent: self.audio_sent,
            context_locked: self.capabilities.native() && self.started,
            started: self.started || self.configured,
        };
        let next = self.config.update(given, &self.capabilities, &phase)?;
        if next.turn_detection != self.config.turn_detection {
            self.out.push(Effect::Graph(GraphCommand::Detect(next.turn_detection.clone())));
        }
        let told = (&next.instructions, &next.voice) == (&self.config.instructions, &self.config.voice);
        self.config = Arc::new(next);
        if !told {
            self.give_context();
        }
        self.tell(ServerEvent::SessionUpdated { session: Box::new(self.view()) });
        Ok(())
    }
}
