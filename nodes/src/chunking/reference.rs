//! Reference material of a voice, put before chunk 0 and nowhere else.
//!
//! A decoder warms its history on the last few reference frames and drops their samples; later chunks rely on the
//! decoder's own state. Frames may come before the first chunk is made and are kept until then, never more than the
//! bound.

use std::collections::VecDeque;

/// Reference frames kept when the port says nothing (`ref_context_frames`).
pub const DEFAULT_REFERENCE_FRAMES: usize = 25;

/// Holds the last `bound` reference frames of a request until chunk 0 takes them.
#[derive(Clone, Debug)]
pub struct ReferenceFrames<T> {
    bound: usize,
    held: VecDeque<T>,
    taken: bool,
}

impl<T> ReferenceFrames<T> {
    /// Keeps at most `bound` frames.
    pub const fn new(bound: usize) -> Self {
        Self { bound, held: VecDeque::new(), taken: false }
    }
    /// Offers one frame; the oldest goes when there are more than the bound. False if chunk 0 has left already, so that
    /// the frame came too late to be of use.
    pub fn offer(&mut self, frame: T) -> bool {
        if self.taken {
            return false;
        }
        self.held.push_back(frame);
        if self.held.len() > self.bound {
            self.held.pop_front();
        }
        true
    }
    /// Puts the reference frames before the frames of a chunk and returns the chunk's `left_context`: how many of its
    /// frames the decoder must decode but not let sound. Only the first call that has frames adds any.
    pub fn prepend(&mut self, chunk: &mut Vec<T>) -> usize {
        if self.taken || chunk.is_empty() {
            return 0;
        }
        self.taken = true;
        let count = self.held.len();
        chunk.splice(0..0, std::mem::take(&mut self.held));
        count
    }
}

impl<T> Default for ReferenceFrames<T> {
    fn default() -> Self {
        Self::new(DEFAULT_REFERENCE_FRAMES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_frames_go_before_chunk_zero_only() {
        let mut reference = ReferenceFrames::new(3);
        for f in 0..5 {
            assert!(reference.offer(f));
        }
        let mut none: Vec<i32> = vec![];
        assert_eq!(reference.prepend(&mut none), 0, "an empty chunk is not chunk 0");
        let mut chunk = vec![100, 101, 102, 103];
        assert_eq!(reference.prepend(&mut chunk), 3);
        assert_eq!(chunk, [2, 3, 4, 100, 101, 102, 103]);
        let mut next = vec![104];
        assert_eq!(reference.prepend(&mut next), 0);
        assert_eq!(next, [104]);
        assert!(!reference.offer(9));
    }
    #[test]
    fn a_bound_of_zero_adds_nothing() {
        let mut reference = ReferenceFrames::new(0);
        reference.offer(1);
        let mut chunk = vec![7];
        assert_eq!(reference.prepend(&mut chunk), 0);
        assert_eq!(chunk, [7]);
    }
}
