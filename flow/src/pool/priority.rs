//! How urgent a unit of work is.

use std::time::Duration;

use crate::Mono;

/// What a unit of work is for. A smaller class goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Class {
    /// It leads to the first chunk of an answer: somebody is waiting in silence.
    First,
    /// It feeds a listener that already plays.
    Playing,
    /// Nobody waits for it.
    #[default]
    Background,
}

/// Where a unit of work stands among others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Priority {
    /// What it is for.
    pub class: Class,
    /// Distance of its node from the session's source. Among first chunks, the node nearer the listener goes first: it
    /// is the one that ends somebody's silence soonest.
    pub depth: u32,
    /// When the work should begin so that the listener of this stream does not run out of audio. Used in class
    /// [`Class::Playing`]; `None` goes last there.
    pub deadline: Option<Mono>,
    /// Since when the work has been ready. Its age counts from here.
    pub since: Mono,
}

impl Priority {
    /// Work towards the first chunk of an answer, ready since `since`, at `depth` nodes from the source.
    pub const fn first(depth: u32, since: Mono) -> Self {
        Self { class: Class::First, depth, deadline: None, since }
    }
    /// Work for a listener who runs dry unless it begins by `deadline`.
    pub const fn playing(deadline: Mono, since: Mono) -> Self {
        Self { class: Class::Playing, depth: 0, deadline: Some(deadline), since }
    }
    /// Work that nobody waits for.
    pub const fn background(since: Mono) -> Self {
        Self { class: Class::Background, depth: 0, deadline: None, since }
    }
}

/// When age overrules class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// An entry that this many picks have passed over is overdue (`scheduler.starvation_picks`).
    pub picks: u64,
    /// An entry that has been ready for this long is overdue (`scheduler.starvation_ms`).
    pub age: Duration,
}

impl Default for Limits {
    /// 32 picks, 100 ms.
    fn default() -> Self {
        Self { picks: 32, age: Duration::from_millis(100) }
    }
}
