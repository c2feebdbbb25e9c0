//! SentencePiece-like byte-pair tokenizer: the pair with the best score merges first; bytes stand in for the unknown.
//!
//! Time is O(n log n) in the characters of one piece of text.

use std::{cmp::Ordering, collections::BinaryHeap, collections::HashMap};

use super::tokenizer::byte_piece;

/// Tables of one vocabulary.
#[derive(Debug)]
pub struct SentencePiece {
    ids: HashMap<String, (u32, f32)>,
    bytes: HashMap<u8, u32>,
    unknown: u32,
    space_prefix: bool,
}

impl SentencePiece {
    /// `usable` says which ids may come out of plain text.
    pub fn new(
        tokens: &[&str],
        scores: &[f32],
        unknown: u32,
        space_prefix: bool,
        usable: impl Fn(usize) -> bool,
    ) -> Self {
        let mut ids = HashMap::new();
        let mut bytes = HashMap::new();
        for (i, t) in tokens.iter().enumerate().filter(|(i, _)| usable(*i)) {
            match byte_piece(t) {
                Some(b) => drop(bytes.insert(b, i as u32)),
                None => drop(ids.insert(t.to_string(), (i as u32, scores.get(i).copied().unwrap_or(f32::MIN)))),
            }
        }
        Self { ids, bytes, unknown, space_prefix }
    }

    /// Appends the ids of `text`; `first` is set for the beginning of a prompt.
    pub fn encode(&self, text: &str, first: bool, out: &mut Vec<u32>) {
        let mut text = text.replace(' ', "\u{2581}");
        if first && self.space_prefix {
            text.insert(0, '\u{2581}');
        }
        // Symbols are a linked list over byte ranges of `text`; an emptied range is a merged one.
        let mut spans: Vec<(usize, usize)> = text.char_indices().map(|(i, c)| (i, i + c.len_utf8())).collect();
        let n = spans.len();
        let mut next: Vec<usize> = (1..=n).collect();
        let mut prev: Vec<usize> = (0..n).map(|i| i.wrapping_sub(1)).collect();
        let mut heap = BinaryHeap::new();
        let pair = |spans: &[(usize, usize)], a: usize, b: usize| {
            let whole = (spans[a].0, spans[b].1);
            self.ids.get(&text[whole.0..whole.1]).map(|&(_, score)| Pair { score, left: a, right: b, whole })
        };
        heap.extend((1..n).filter_map(|i| pair(&spans, i - 1, i)));
        while let Some(Pair { left, right, whole, .. }) = heap.pop() {
            let live = spans[left].0 < spans[left].1 && spans[right].0 < spans[right].1;
            if !live || spans[left].0 != whole.0 || spans[right].1 != whole.1 || spans[left].1 != spans[right].0 {
                continue;
            }
            spans[left].1 = whole.1;
            spans[right] = (0, 0);
            next[left] = next[right];
            if next[left] < n {
                prev[next[left]] = left;
                heap.extend(pair(&spans, left, next[left]));
            }
            if prev[left] < n {
                heap.extend(pair(&spans, prev[left], left));
            }
        }
        let mut i = 0;
        while i < n {
            let piece = &text[spans[i].0..spans[i].1];
            match self.ids.get(piece) {
                Some(&(id, _)) => out.push(id),
                None => match piece.bytes().map(|b| self.bytes.get(&b).copied()).collect::<Option<Vec<_>>>() {
                    Some(bytes) => out.extend(bytes),
                    None => out.push(self.unknown),
                },
            }
            i = next[i];
        }
    }
}

#[derive(Debug)]
struct Pair {
    score: f32,
    left: usize,
    right: usize,
    whole: (usize, usize),
}

impl Ord for Pair {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.left.cmp(&self.left))
    }
}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pair {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_score_merges_first_and_bytes_stand_in() {
        let tokens = ["<unk>", "a", "b", "ab", "\u{2581}", "\u{2581}ab", "<0xC3>", "<0xA9>", "abab"];
        let scores = [0.0, -9.0, -9.0, -2.0, -9.0, -1.0, 0.0, 0.0, -0.5];
        let sp = SentencePiece::new(&tokens, &scores, 0, false, |i| i > 0);
        let ids = |t: &str| {
            let mut out = vec![];
            sp.encode(t, true, &mut out);
            out
        };
        assert_eq!(ids("ab ab"), [3, 5]);
        assert_eq!(ids("abab"), [8]);
        assert_eq!(ids("aé"), [1, 6, 7]);
        assert_eq!(ids("z"), [0]);
        assert_eq!(ids(""), [0u32; 0]);
        let sp = SentencePiece::new(&tokens, &scores, 0, true, |i| i > 0);
        let mut out = vec![];
        sp.encode("ab", true, &mut out);
        assert_eq!(out, [5]);
    }
}
