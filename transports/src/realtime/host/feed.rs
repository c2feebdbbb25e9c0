//! What waits to go into a graph: audio and commits in their order, bounded by the session's pending input.

use std::collections::VecDeque;

use omni_flow::{Signal, Stamp};

/// Samples of one piece: what is appended in smaller crumbs goes in as pieces of up to this, 20 ms.
const PIECE: usize = 320;

/// What goes into a graph, in order.
#[derive(Debug)]
pub(super) enum Feed {
    /// Audio, and how many bytes of pending input it holds.
    Audio(Vec<f32>, u64),
    /// The audio so far is one turn, with this at its end.
    Commit(Vec<f32>),
    /// A named signal for the rules of turns, as JSON without its place.
    Control(&'static str, serde_json::Map<String, serde_json::Value>),
    /// So many bytes of pending input are free again: their audio is void.
    Freed(u64),
    /// A question, and what it answers.
    Question(Stamp, Signal),
    /// The conversation is the client's.
    Own,
}

/// The queue in front of a graph. Its audio is bounded by the session that fills it; everything else is bounded by that
/// session's pending commits, by its one answer at a time, and by a clear taking the place of what it makes void.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waits: VecDeque<Feed>,
    /// Bytes that void audio held, not told yet.
    freed: u64,
}

impl Queue {
    pub(super) fn push(&mut self, feed: Feed) {
        match (feed, self.waits.back_mut()) {
            (Feed::Audio(more, n), Some(Feed::Audio(samples, held))) if samples.len() + more.len() <= PIECE => {
                samples.extend_from_slice(&more);
                *held += n;
            }
            // The newest rules and the newest clear are the ones that hold.
            (Feed::Control(name, data), Some(Feed::Control(before, old))) if *before == name => *old = data,
            (feed, _) => self.waits.push_back(feed),
        }
    }
    /// Audio that no commit has taken is void; the bytes that it held come out as [`Feed::Freed`].
    pub(super) fn clear(&mut self) {
        while let Some(Feed::Audio(_, n)) = self.waits.back() {
            self.freed += n;
            self.waits.pop_back();
        }
    }
    /// Every question that waits is void.
    pub(super) fn void(&mut self) {
        self.waits.retain(|f| !matches!(f, Feed::Question(..)));
    }
    pub(super) fn pop(&mut self) -> Option<Feed> {
        match std::mem::take(&mut self.freed) {
            0 => self.waits.pop_front(),
            freed => Some(Feed::Freed(freed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crumbs_become_pieces_and_keep_their_order() {
        let mut q = Queue::default();
        (0..1000).for_each(|_| q.push(Feed::Audio(vec![0.0; 20], 40)));
        q.push(Feed::Commit(Vec::new()));
        q.push(Feed::Audio(vec![0.0; 20], 40));
        let lens: Vec<_> = std::iter::from_fn(|| q.pop())
            .map(|f| match f {
                Feed::Audio(s, n) => (s.len(), n),
                _ => (0, 0),
            })
            .collect();
        assert_eq!((lens.len(), lens[0], lens[62]), (65, (320, 640), (160, 320)));
        assert_eq!(lens[63..], [(0, 0), (20, 40)]);
    }
    #[test]
    fn a_clear_takes_what_no_commit_has() {
        let mut q = Queue::default();
        q.push(Feed::Audio(vec![0.0; 20], 40));
        q.push(Feed::Commit(Vec::new()));
        q.push(Feed::Audio(vec![0.0; 16_000], 5));
        q.push(Feed::Audio(vec![0.0; 20], 40));
        q.clear();
        q.clear();
        assert!(matches!(q.pop(), Some(Feed::Freed(45))), "told once, and not lost");
        assert!(matches!((q.pop(), q.pop(), q.pop()), (Some(Feed::Audio(..)), Some(Feed::Commit(_)), None)));
    }
}
