//! When a session counts as idle: nothing has moved on any of its edges, nobody computes for it and its owner has not
//! spoken up for it, for as long as `session.idle-ttl` says.

use std::time::Duration;

use crate::Mono;

/// What was last seen of a session. Pure: it is told what is and when.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    seen: u64,
    since: Option<Mono>,
}

impl Idle {
    /// A look at `now`: `moved` counts all that ever happened in the session, `busy` says that something is being
    /// computed. True if it has been idle for `ttl`.
    pub(crate) fn look(&mut self, now: Mono, moved: u64, busy: bool, ttl: Duration) -> bool {
        let since = match self.since {
            Some(since) if !busy && moved == self.seen => since,
            _ => now,
        };
        (self.seen, self.since) = (moved, Some(since));
        now.since(since) >= ttl
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_ttl_without_anything_is_idle() {
        let (ttl, at) = (Duration::from_secs(10), |s: u64| Mono(s * 1_000_000_000));
        let mut idle = Idle::default();
        assert!(!idle.look(at(100), 5, false, ttl), "the first look begins it");
        assert!(!idle.look(at(109), 5, false, ttl));
        assert!(idle.look(at(110), 5, false, ttl));
        assert!(!idle.look(at(111), 6, false, ttl), "something moved");
        assert!(!idle.look(at(120), 6, true, ttl), "somebody computes");
        assert!(!idle.look(at(129), 6, false, ttl));
        assert!(idle.look(at(130), 6, false, ttl));
    }
}
