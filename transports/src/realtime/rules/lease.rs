//! How long a session lives without being used (Realtime protocol, leases).
//!
//! Three clocks: the session's idle time, the silence of its socket, and the time without a socket. Which of them has run
//! out is asked with [`Lease::expired`]; when to ask next, with [`Lease::next_deadline`].

use std::time::Duration;

/// How long each clock runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Idle time of the session; `None` is for ever.
    pub idle: Option<Duration>,
    /// Silence of a socket (`idle_timeout_s`).
    pub silence: Duration,
    /// Time without a socket.
    pub grace: Duration,
}

impl Default for Limits {
    /// 300 s, 300 s and 30 s.
    fn default() -> Self {
        Self { idle: Some(Duration::from_secs(300)), silence: Duration::from_secs(300), grace: Duration::from_secs(30) }
    }
}

/// What happened in the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// `input_audio_buffer.append` and other input.
    Append,
    /// A signal or any command that acts on the session.
    Signal,
    /// `playback.ack`
    PlaybackAck,
    /// `session.heartbeat`
    Heartbeat,
    /// `session.event_ack`: a sign of life of the socket, no use of the session.
    EventAck,
    /// A message that was refused: a sign of life of the socket, no use of the session.
    Refused,
    /// The model gave something; no sign of life of the socket.
    ModelOutput,
}

/// What has run out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expired {
    /// The session was without a socket for too long: it ends (`disconnect_grace_expired`).
    Grace,
    /// The session was not used: it ends (`idle_ttl_expired`).
    Idle,
    /// The socket was silent: it counts as disconnected, the session does not end by that.
    Silence,
}

/// The three clocks of one session.
#[derive(Debug, Clone)]
pub struct Lease {
    limits: Limits,
    used: Duration,
    heard: Duration,
    detached: Option<Duration>,
    operations: usize,
}

impl Lease {
    /// A session that was opened now, with its socket.
    pub fn new(now: Duration, limits: Limits) -> Self {
        Self { limits, used: now, heard: now, detached: None, operations: 0 }
    }

    /// Another limit for the silence of the socket.
    pub fn set_silence(&mut self, silence: Duration) {
        self.limits.silence = silence;
    }

    /// Something happened.
    pub fn note(&mut self, now: Duration, what: Use) {
        if what != Use::ModelOutput {
            self.heard = self.heard.max(now);
        }
        if !matches!(what, Use::EventAck | Use::Refused) {
            self.used = self.used.max(now);
        }
    }

    /// A socket is attached, for the first time or again.
    pub fn attach(&mut self, now: Duration) {
        self.detached = None;
        self.used = self.used.max(now);
        self.heard = self.heard.max(now);
    }

    /// The socket is gone. Of two calls in a row the first counts.
    pub fn detach(&mut self, now: Duration) {
        self.used = self.used.max(now);
        self.detached.get_or_insert(now);
    }

    /// Whether there is a socket.
    pub fn is_attached(&self) -> bool {
        self.detached.is_none()
    }

    /// An operation begins; the session does not become idle while one runs.
    pub fn begin(&mut self) {
        self.operations = self.operations.saturating_add(1);
    }

    /// An operation ends; idle time is counted from here on.
    pub fn end(&mut self, now: Duration) {
        self.operations = self.operations.saturating_sub(1);
        self.used = self.used.max(now);
    }

    /// What has run out, the gravest first.
    pub fn expired(&self, now: Duration) -> Option<Expired> {
        self.deadlines().into_iter().flatten().find(|(at, _)| now >= *at).map(|(_, what)| what)
    }

    /// When the first clock that runs will run out; `None` if none runs.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.deadlines().into_iter().flatten().map(|(at, _)| at).min()
    }

    fn deadlines(&self) -> [Option<(Duration, Expired)>; 3] {
        let grace = self.detached.map(|at| (at.saturating_add(self.limits.grace), Expired::Grace));
        let idle = self.limits.idle.filter(|_| self.operations == 0);
        let idle = idle.map(|idle| (self.used.saturating_add(idle), Expired::Idle));
        let silence = self.is_attached().then(|| (self.heard.saturating_add(self.limits.silence), Expired::Silence));
        [grace, idle, silence]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn new() -> Lease {
        Lease::new(s(0), Limits { silence: s(1000), ..Limits::default() })
    }

    #[test]
    fn use_renews_and_an_acknowledged_event_does_not() {
        let uses = [Use::Append, Use::Signal, Use::PlaybackAck, Use::Heartbeat, Use::ModelOutput];
        for what in uses {
            let mut lease = new();
            lease.note(s(200), what);
            assert_eq!((lease.expired(s(499)), lease.expired(s(500))), (None, Some(Expired::Idle)), "{what:?}");
        }
        for what in [Use::EventAck, Use::Refused] {
            let mut lease = new();
            lease.note(s(200), what);
            assert_eq!(lease.expired(s(300)), Some(Expired::Idle), "{what:?}");
        }
    }

    #[test]
    fn a_socket_is_silent_whatever_the_model_does() {
        let mut lease = Lease::new(s(0), Limits { silence: s(10), ..Limits::default() });
        lease.note(s(5), Use::ModelOutput);
        assert_eq!((lease.expired(s(9)), lease.expired(s(10))), (None, Some(Expired::Silence)));
        lease.note(s(9), Use::EventAck);
        assert_eq!(lease.next_deadline(), Some(s(19)));
        lease.detach(s(19));
        assert_eq!((lease.expired(s(48)), lease.expired(s(49))), (None, Some(Expired::Grace)));
        lease.detach(s(40));
        assert_eq!(lease.next_deadline(), Some(s(49)));
        lease.attach(s(45));
        assert_eq!((lease.expired(s(54)), lease.next_deadline()), (None, Some(s(55))));
    }

    #[test]
    fn a_running_operation_holds_off_idleness_but_not_the_grace() {
        let mut lease = new();
        lease.begin();
        assert_eq!(lease.expired(s(999)), None);
        lease.end(s(999));
        assert_eq!(lease.next_deadline(), Some(s(1000)));
        lease.begin();
        lease.detach(s(999));
        assert_eq!(lease.expired(s(1029)), Some(Expired::Grace));
    }

    #[test]
    fn the_grace_comes_before_idleness_and_idleness_may_be_off() {
        let mut lease = Lease::new(s(0), Limits { idle: Some(s(1)), ..Limits::default() });
        lease.detach(s(0));
        assert_eq!((lease.expired(s(29)), lease.expired(s(30))), (Some(Expired::Idle), Some(Expired::Grace)));
        let mut off = Lease::new(s(0), Limits { idle: None, silence: Duration::MAX, ..Limits::default() });
        assert_eq!(off.expired(s(1_000_000)), None);
        off.end(s(1)); // nothing had begun
        assert_eq!(off.next_deadline(), Some(Duration::MAX));
    }

    proptest! {
        #[test]
        fn nothing_is_expired_before_the_next_deadline_and_something_is_then(
            steps in prop::collection::vec((0u8..10, 0u64..200), 0..40),
        ) {
            let mut lease = Lease::new(s(0), Limits::default());
            let (mut now, mut used, mut heard, mut gone, mut busy) = (0, 0, 0, None, 0u32);
            for (what, wait) in steps {
                now += wait;
                match what {
                    0..3 => { lease.note(s(now), Use::Append); used = now; heard = now }
                    3 => { lease.note(s(now), Use::EventAck); heard = now }
                    4 => { lease.note(s(now), Use::ModelOutput); used = now }
                    5 => { lease.detach(s(now)); used = now; gone = gone.or(Some(now)) }
                    6 | 7 => { lease.attach(s(now)); used = now; heard = now; gone = None }
                    8 => { lease.begin(); busy += 1 }
                    _ => { lease.end(s(now)); busy = busy.saturating_sub(1); used = now }
                }
                let at = lease.next_deadline();
                if let Some(at) = at {
                    prop_assert!(at.is_zero() || lease.expired(at - Duration::from_nanos(1)).is_none());
                    prop_assert!(lease.expired(at).is_some());
                }
                for later in [now, now + 29, now + 30, now + 299, now + 300] {
                    let want = if gone.is_some_and(|g| later - g >= 30) {
                        Some(Expired::Grace)
                    } else if busy == 0 && later - used >= 300 {
                        Some(Expired::Idle)
                    } else if gone.is_none() && later - heard >= 300 {
                        Some(Expired::Silence)
                    } else {
                        None
                    };
                    prop_assert_eq!(lease.expired(s(later)), want);
                }
            }
        }
    }
}
