//! The filter for padding frames, applied before anything is counted.
//!
//! Code models mark "nothing here" by frames that are all zero, or by values outside the codebook (special tokens). Such
//! frames must never reach a decoder or count towards a chunk.

/// Recognises frames of codes that carry no audio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaddingFilter {
    codebook: u32,
}

impl PaddingFilter {
    /// A filter for codes 0 … `codebook − 1`.
    pub const fn new(codebook: u32) -> Self {
        Self { codebook }
    }
    /// Whether one frame (one code per codebook) is real: not all zero, no value negative or outside the codebook. An
    /// empty frame is padding.
    pub fn is_frame(&self, frame: &[i64]) -> bool {
        frame.iter().any(|&c| c != 0) && frame.iter().all(|&c| c >= 0 && c < i64::from(self.codebook))
    }
    /// Keeps the real frames of `codes`, which lie one after the other with `width` codes each, and returns how many
    /// frames were removed. A rest shorter than a frame is removed and counted as one; `width` 0 removes everything.
    pub fn retain(&self, codes: &mut Vec<i64>, width: usize) -> usize {
        if width == 0 {
            let removed = codes.len();
            codes.clear();
            return removed;
        }
        let (mut kept, mut removed) = (0, 0);
        for start in (0..codes.len()).step_by(width) {
            let end = start.saturating_add(width);
            if end <= codes.len() && self.is_frame(&codes[start..end]) {
                codes.copy_within(start..end, kept);
                kept += width;
            } else {
                removed += 1;
            }
        }
        codes.truncate(kept);
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_negative_and_out_of_book_frames_go() {
        let filter = PaddingFilter::new(2048);
        let mut codes = vec![0, 0, 0, 0, 1, 2, 3, 4, 2150, 0, 0, 0, 5, 6, 7, 8];
        assert_eq!(filter.retain(&mut codes, 4), 2);
        assert_eq!(codes, [1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(!filter.is_frame(&[1, -1]));
        assert!(!filter.is_frame(&[2048, 1]));
        assert!(filter.is_frame(&[2047, 0]));
        assert!(!filter.is_frame(&[]));
    }
    #[test]
    fn a_cut_frame_is_not_a_frame() {
        let filter = PaddingFilter::new(10);
        let mut codes = vec![1, 2, 3];
        assert_eq!(filter.retain(&mut codes, 2), 1);
        assert_eq!(codes, [1, 2]);
        assert_eq!(filter.retain(&mut codes, 0), 2);
        assert!(codes.is_empty());
    }
}
