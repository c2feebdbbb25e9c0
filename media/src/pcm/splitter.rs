//! Pieces of any length to whole frames; the bytes of a cut frame wait for the next piece.

/// The per-stream state of a byte source that may cut anywhere. Nothing is ever padded inside a stream. Memory: less than
/// one frame.
///
/// One splitter belongs to one stream. At the end of that stream, at a fence of its lane and at a reconnect, call
/// [`FrameSplitter::clear`]; not at a boundary that only a listener draws (end of an utterance, an interrupted reply).
#[derive(Clone, Debug)]
pub struct FrameSplitter {
    frame: usize,
    spare: Vec<u8>,
    dropped: u64,
}

impl FrameSplitter {
    /// For frames of so many bytes; 0 is taken as 1.
    pub fn new(frame_bytes: usize) -> Self {
        Self { frame: frame_bytes.max(1), spare: Vec::new(), dropped: 0 }
    }

    /// Appends the whole frames of `spare + bytes` to `out` and keeps the rest.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut bytes = bytes;
        if !self.spare.is_empty() {
            let (head, rest) = bytes.split_at(bytes.len().min(self.frame - self.spare.len()));
            self.spare.extend_from_slice(head);
            if self.spare.len() < self.frame {
                return;
            }
            out.append(&mut self.spare);
            bytes = rest;
        }
        let (whole, cut) = bytes.split_at(bytes.len() - bytes.len() % self.frame);
        out.extend_from_slice(whole);
        self.spare.extend_from_slice(cut);
    }

    /// Drops what waits, counts it, and says how much it was. The next byte starts a new frame.
    pub fn clear(&mut self) -> usize {
        let dropped = self.spare.len();
        self.spare.clear();
        self.dropped += dropped as u64;
        dropped
    }

    /// Bytes that wait for the rest of their frame.
    pub fn pending(&self) -> usize {
        self.spare.len()
    }

    /// Bytes that [`FrameSplitter::clear`] has dropped so far.
    pub fn dropped_bytes(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ramp() -> Vec<u8> {
        (0..1000i16).flat_map(|v| (v * 31).to_le_bytes()).collect()
    }

    fn split(input: &[u8], frame: usize, sizes: impl Iterator<Item = usize>) -> (Vec<u8>, FrameSplitter) {
        let (mut splitter, mut out, mut rest) = (FrameSplitter::new(frame), Vec::new(), input);
        for size in sizes {
            if rest.is_empty() {
                break;
            }
            let (piece, next) = rest.split_at(size.min(rest.len()));
            splitter.push(piece, &mut out);
            assert_eq!(out.len() % frame, 0, "only whole frames come out");
            rest = next;
        }
        (out, splitter)
    }

    #[test]
    fn a_ramp_in_odd_pieces_stays_the_ramp() {
        assert_eq!(split(&ramp(), 2, (1..).step_by(2)).0, ramp());
        assert_eq!(split(&ramp(), 2, std::iter::repeat(333)).0, ramp());
        assert_eq!(split(&ramp(), 2, std::iter::repeat(1)).0, ramp());
    }

    #[test]
    fn the_end_of_a_stream_drops_and_counts_the_odd_byte_and_the_next_starts_clean() {
        let (_, mut splitter) = split(&ramp()[..7], 2, std::iter::repeat(3));
        assert_eq!((splitter.clear(), splitter.dropped_bytes()), (1, 1));
        let mut out = Vec::new();
        splitter.push(&[1, 2], &mut out);
        assert_eq!(out, [1, 2]);
        assert_eq!((splitter.clear(), splitter.dropped_bytes()), (0, 1));
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_prefix_of_whole_frames(
            input in prop::collection::vec(any::<u8>(), 0..600),
            frame in 1usize..13,
            sizes in prop::collection::vec(1usize..40, 1..40),
        ) {
            let (out, splitter) = split(&input, frame, sizes.into_iter().chain(std::iter::repeat(7)));
            let whole = input.len() - input.len() % frame;
            prop_assert_eq!(&out[..], &input[..whole]);
            prop_assert_eq!(splitter.pending(), input.len() - whole);
        }
    }
}
