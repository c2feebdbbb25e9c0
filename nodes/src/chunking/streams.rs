//! How many streams of a node hold frames, over all sessions: the load that a dynamic first chunk is chosen by.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Load;

/// The streams of one node of a graph. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Streams(Arc<AtomicU32>);

/// A stream that holds frames. Dropped, it holds none any more.
#[derive(Debug)]
pub struct Active(Streams);

impl Streams {
    /// Counts a stream that begins to hold frames; with it comes the load that it found, out of `slots` streams.
    pub fn begin(&self, slots: usize) -> (Active, Load) {
        let active = self.0.fetch_add(1, Ordering::Relaxed);
        (Active(self.clone()), Load { active, slots: u32::try_from(slots).unwrap_or(u32::MAX) })
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_finds_those_that_are_still_there() {
        let all = Streams::default();
        let (a, load) = all.begin(4);
        assert_eq!(load, Load { active: 0, slots: 4 });
        let (_b, load) = all.clone().begin(4);
        assert_eq!(load.active, 1);
        drop(a);
        assert_eq!(all.begin(4).1.active, 1);
    }
}
