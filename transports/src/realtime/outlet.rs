//! From what a session tells to what its client is sent: queued within bounds, numbered and kept as it goes out.
//!
//! An event is numbered when the socket takes it and not before, so that audio which an interruption makes void leaves no
//! gap. Without a socket ([`Outlet::next`] goes into the journal alone) numbering goes on.

use std::sync::Arc;
use std::time::Duration;

use super::rules::journal::{self, AckError, Journal, Noted, ReplayError};
use super::rules::outbox::{self, Kind, Outbox, Pushed};
use super::wire::profile::Profile;
use super::wire::project::{Envelope, project, text, told};
use super::wire::server::ServerEvent;
use super::wire::server::session::Resync;

/// Bytes of an audio event besides its audio, at most.
const AROUND: usize = 1024;

/// The output of one session.
pub struct Outlet {
    profile: Profile,
    session_id: Arc<str>,
    outbox: Outbox<ServerEvent>,
    journal: Option<Journal<Arc<str>>>,
    /// Goes out before all that waits.
    urgent: Option<ServerEvent>,
    /// The response of which audio was taken, and not yet the words that go with it.
    half: Option<Arc<str>>,
    seed: u64,
    sent: u64,
}

/// One event for the socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its JSON text.
    pub text: Arc<str>,
    /// True if nothing follows it.
    pub last: bool,
    /// The response of which it is audio.
    pub audio_of: Option<Arc<str>>,
}

impl Outlet {
    /// An empty one. With `resumable` events are numbered and kept. `seed` makes event ids differ from those of others.
    pub fn new(
        profile: Profile,
        session_id: Arc<str>,
        queue: outbox::Limits,
        resumable: Option<journal::Limits>,
        seed: u64,
    ) -> Self {
        let journal = resumable.map(Journal::new);
        Self { profile, session_id, outbox: Outbox::new(queue), journal, urgent: None, half: None, seed, sent: 0 }
    }
    /// Queues an event that this client is told of. False: the queue has overflowed, for the first time.
    pub fn tell(&mut self, event: ServerEvent) -> bool {
        if let ServerEvent::ResponseCreated(created) = &event {
            self.outbox.begin(&created.response_id);
        }
        if !told(&event, self.profile) {
            return true;
        }
        let (kind, bytes) = match &event {
            ServerEvent::AudioDelta(d) => (Kind::Delta(&d.place.response_id), d.delta.len() + AROUND),
            ServerEvent::TranscriptDelta { place, delta } => {
                (Kind::Delta(&place.response_id), delta.len() * 2 + AROUND)
            }
            ServerEvent::ResponseDone(done) => (Kind::Done(&done.response_id), self.size(&event)),
            ServerEvent::Error { .. } => (Kind::Error, self.size(&event)),
            _ => (Kind::Ordinary, self.size(&event)),
        };
        let response = match kind {
            Kind::Delta(id) | Kind::Done(id) => Some(id.to_owned()),
            _ => None,
        };
        // The name is the event's own, which moves into the queue with it.
        let kind = match (kind, &response) {
            (Kind::Delta(_), Some(id)) => Kind::Delta(id),
            (Kind::Done(_), Some(id)) => Kind::Done(id),
            (Kind::Error, _) => Kind::Error,
            _ => Kind::Ordinary,
        };
        self.outbox.push(kind, bytes, event) != Pushed::Overflow
    }
    /// Takes audio of a response out of the queue, and the words that go with it. Where the socket has the audio already its
    /// words still follow.
    pub fn purge(&mut self, response: &str) {
        let of = |event: &ServerEvent| matches!(event, ServerEvent::AudioDelta(d) if &*d.place.response_id == response);
        self.urgent.take_if(|event| of(event));
        let first = self.outbox.cancel(response).into_iter().next();
        if self.half.as_deref() == Some(response)
            && self.urgent.is_none()
            && let Some(words @ ServerEvent::TranscriptDelta { .. }) = first
        {
            self.urgent = Some(words);
        }
    }
    /// The last event; nothing is accepted after it.
    pub fn close(&mut self, event: ServerEvent) {
        self.outbox.close(event);
    }
    /// True if something waits to be sent.
    pub fn waits(&self) -> bool {
        self.urgent.is_some() || !self.outbox.is_empty() || self.outbox.has_last()
    }
    /// Bytes that wait, and bytes that are kept for a client that comes back.
    pub fn bytes(&self) -> (usize, usize) {
        (self.outbox.bytes(), self.journal.as_ref().map_or(0, Journal::bytes))
    }
    /// The next event, numbered and kept.
    pub fn next(&mut self, now: Duration) -> Option<Sent> {
        loop {
            let event = match self.urgent.take() {
                Some(event) => event,
                None => self.outbox.take()?,
            };
            if !self.outbox.check() {
                continue;
            }
            let last = matches!(event, ServerEvent::SessionClosed { .. } | ServerEvent::SessionExpired { .. });
            let audio_of = match &event {
                ServerEvent::AudioDelta(d) => Some(d.place.response_id.clone()),
                _ => None,
            };
            let numbered = !matches!(event, ServerEvent::SessionCreated { .. });
            let seq = self.journal.as_ref().and_then(Journal::next).filter(|_| numbered);
            let text: Arc<str> = self.text(&event, seq)?.into();
            let noted = match &mut self.journal {
                Some(journal) if numbered => journal.note(now, text.len(), text.clone()),
                _ => Noted::Unnumbered,
            };
            self.outbox.written();
            if noted == Noted::Overflow {
                // Told first, once; the event itself goes out without a number.
                self.urgent = Some(event);
                let reason = Resync::JournalOverflow;
                let resync = ServerEvent::ResyncRequired { session_id: self.session_id.to_string(), reason };
                return self.text(&resync, None).map(|t| Sent { text: t.into(), last: false, audio_of: None });
            }
            self.half.clone_from(&audio_of);
            return Some(Sent { text, last, audio_of });
        }
    }
    /// An event that is neither queued nor kept: the answer to a handshake.
    pub fn directly(&mut self, event: &ServerEvent) -> Option<Arc<str>> {
        self.text(event, None).map(Into::into)
    }
    /// The client has everything up to this number.
    ///
    /// # Errors
    /// [`AckError`]; a session that keeps nothing has sent nothing with a number.
    pub fn acknowledge(&mut self, seq: i64) -> Result<(), AckError> {
        match &mut self.journal {
            Some(journal) => journal.ack(seq),
            None if seq == 0 => Ok(()),
            None => Err(AckError::BeyondHead { seq, head: 0 }),
        }
    }
    /// Every event after a number, as it was sent.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn replay(&mut self, now: Duration, after: i64) -> Result<Vec<Arc<str>>, ReplayError> {
        match &mut self.journal {
            Some(journal) => Ok(journal.since(now, after)?.map(|(_, text)| text.clone()).collect()),
            None => Err(ReplayError::Overflowed),
        }
    }

    fn size(&self, event: &ServerEvent) -> usize {
        let envelope = Envelope { event_id: String::new(), server_event_seq: None };
        // Ids and numbers come with the sending.
        project(event, self.profile, &envelope).map_or(0, |v| v.to_string().len()) + 64
    }
    fn text(&mut self, event: &ServerEvent, seq: Option<u64>) -> Option<String> {
        self.sent += 1;
        let event_id = format!("event_{:016x}{:016x}", self.seed, self.sent);
        text(event, self.profile, &Envelope { event_id, server_event_seq: seq })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realtime::wire::server::response::{AudioDelta, Created, Place};
    use crate::realtime::wire::server::session::Playback;
    use serde_json::Value;

    fn outlet(journal: Option<usize>) -> Outlet {
        let limits = journal.map(|bytes| journal::Limits { bytes, ..journal::Limits::default() });
        Outlet::new(Profile::Duplex, "duplex-1".into(), outbox::Limits::default(), limits, 7)
    }
    fn created(id: &str) -> ServerEvent {
        ServerEvent::ResponseCreated(Created {
            response_id: id.to_owned(),
            session_id: "s".to_owned(),
            epoch: 0,
            turn_id: 0,
            modalities: Vec::new(),
            metadata: serde_json::Map::new(),
        })
    }
    fn audio(id: &str, bytes: usize) -> ServerEvent {
        ServerEvent::AudioDelta(Box::new(AudioDelta {
            place: Place { response_id: id.into(), item_id: "i".into(), output_index: 0, content_index: 0 },
            delta: "A".repeat(bytes),
            format: "pcm16",
            sample_rate_hz: 24_000,
            session_id: "s".into(),
            epoch: 0,
            model_speak: false,
            end_of_turn: false,
            audio_duration_ms: 0,
            marks: Vec::new(),
            playback: Playback::default(),
            stage_metrics: None,
        }))
    }
    fn all(outlet: &mut Outlet) -> Vec<(String, Option<u64>)> {
        let mut got = Vec::new();
        while let Some(sent) = outlet.next(Duration::ZERO) {
            let v: Value = serde_json::from_str(&sent.text).unwrap();
            got.push((v["type"].as_str().unwrap().to_owned(), v["server_event_seq"].as_u64()));
        }
        got
    }

    #[test]
    fn numbers_have_no_gap_where_audio_was_taken_back() {
        let mut o = outlet(Some(8 << 20));
        o.tell(created("r"));
        (0..3).for_each(|_| assert!(o.tell(audio("r", 10))));
        assert_eq!(o.next(Duration::ZERO).map(|s| s.last), Some(false));
        o.purge("r");
        assert!(o.tell(audio("r", 10)), "late audio is nothing");
        o.tell(ServerEvent::InputCleared);
        assert_eq!(all(&mut o), [("input_audio_buffer.cleared".to_owned(), Some(2))]);
        assert!(!o.waits());
    }

    #[test]
    fn audio_that_was_taken_keeps_its_words() {
        let mut o = outlet(None);
        o.tell(created("r"));
        let words = |text: &str| ServerEvent::TranscriptDelta {
            place: Place { response_id: "r".into(), item_id: "i".into(), output_index: 0, content_index: 0 },
            delta: text.to_owned(),
        };
        for text in ["a", "b"] {
            o.tell(audio("r", 10));
            o.tell(words(text));
        }
        o.next(Duration::ZERO);
        assert_eq!(o.next(Duration::ZERO).unwrap().audio_of.as_deref(), Some("r"));
        o.purge("r");
        let text = o.next(Duration::ZERO).unwrap().text;
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["delta"], "a");
        assert!(o.next(Duration::ZERO).is_none());
    }

    #[test]
    fn a_reader_that_stops_reading_overflows_once() {
        let mut o = outlet(None);
        o.tell(created("r"));
        let overflows = (0..100).filter(|_| !o.tell(audio("r", 100_000))).count();
        assert_eq!(overflows, 1);
        assert!(o.bytes().0 <= outbox::Limits::default().bytes);
        o.close(ServerEvent::SessionClosed { session_id: "s".to_owned(), reason: "output_overflow".to_owned() });
        assert!(o.waits());
        let got = all(&mut o);
        assert_eq!((got.last().unwrap().0.as_str(), got.last().unwrap().1), ("session.closed", None));
    }

    #[test]
    fn a_journal_that_overflows_says_so_and_numbers_no_more() {
        let mut o = outlet(Some(700));
        (0..8).for_each(|_| assert!(o.tell(ServerEvent::InputCleared)));
        let got = all(&mut o);
        let at = got.iter().position(|e| e.0 == "session.resync_required").unwrap();
        assert!(got[..at].iter().enumerate().all(|(i, e)| e.1 == Some(i as u64 + 1)));
        assert!(got[at..].iter().all(|e| e.1.is_none()));
        assert_eq!((got.len(), o.bytes().1), (9, 0));
        assert_eq!(o.replay(Duration::ZERO, 0), Err(ReplayError::Overflowed));
    }

    #[test]
    fn what_was_sent_is_told_again_word_for_word() {
        let mut o = outlet(Some(8 << 20));
        let mut sent = Vec::new();
        for _ in 0..4 {
            o.tell(ServerEvent::InputCleared);
            sent.extend(o.next(Duration::ZERO).map(|s| s.text));
        }
        assert_eq!(o.replay(Duration::ZERO, 2).unwrap(), sent[2..]);
        o.acknowledge(3).unwrap();
        assert!(o.acknowledge(9).is_err());
        assert!(matches!(o.replay(Duration::ZERO, 1), Err(ReplayError::Gap { .. })));
        assert!(o.replay(Duration::from_secs(61), 4).unwrap().is_empty());
    }
}
