//! Stop strings in a stream of text.
//!
//! Text before the earliest stop string is given out, nothing of the stop string is, wherever pieces are cut. Text that
//! may still become a stop string waits; at most one byte less than the longest stop string waits.

/// Watches one answer.
#[derive(Debug, Clone, Default)]
pub struct StopMatcher {
    stops: Vec<String>,
    held: String,
    hit: bool,
}

impl StopMatcher {
    /// Empty stop strings are ignored.
    pub fn new(stops: &[String]) -> Self {
        Self { stops: stops.iter().filter(|s| !s.is_empty()).cloned().collect(), ..Self::default() }
    }

    /// Adds text, returns what is safe to give out. After a hit nothing comes out any more.
    pub fn push(&mut self, text: &str) -> String {
        if self.hit {
            return String::new();
        }
        self.held.push_str(text);
        if let Some(at) = self.stops.iter().filter_map(|s| self.held.find(s)).min() {
            self.hit = true;
            self.held.truncate(at);
            return std::mem::take(&mut self.held);
        }
        let keep = self.stops.iter().map(|s| overlap(&self.held, s)).max().unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - keep);
        std::mem::replace(&mut self.held, rest)
    }

    /// The answer is over without a stop string: what waited is text.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Whether a stop string was met.
    pub fn hit(&self) -> bool {
        self.hit
    }
}

/// Bytes of the longest end of `text` that begins `stop` and is not all of it.
fn overlap(text: &str, stop: &str) -> usize {
    (1..stop.len().min(text.len() + 1))
        .rev()
        .find(|&n| stop.is_char_boundary(n) && text.as_bytes().ends_with(&stop.as_bytes()[..n]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn across_borders() {
        let mut m = StopMatcher::new(&["\nUser:".into(), "".into()]);
        assert_eq!(m.push("Hi.\nUs"), "Hi.");
        assert_eq!(m.push("ually\nUser"), "\nUsually");
        assert_eq!(m.push(": more"), "");
        assert!(m.hit());
        assert_eq!(m.push("x"), "");
        assert_eq!(m.finish(), "");
    }

    proptest! {
        #[test]
        fn equals_a_search_in_the_whole(text in "[abé]{0,30}", stops in proptest::collection::vec("[abé]{0,4}", 0..4),
            cuts in proptest::collection::vec(0usize..5, 0..20)) {
            // The earliest end of a match decides in a stream; with equal ends the earliest start does.
            let chars: Vec<char> = text.chars().collect();
            let (mut m, mut out, mut at, mut fed) = (StopMatcher::new(&stops), String::new(), 0, String::new());
            for c in cuts.into_iter().chain([chars.len()]) {
                let end = (at + c).min(chars.len());
                let piece: String = chars[at..end].iter().collect();
                at = end;
                if !m.hit() { fed.push_str(&piece); }
                out.push_str(&m.push(&piece));
                prop_assert!(fed.starts_with(&out));
            }
            let want = stops.iter().filter(|s| !s.is_empty()).filter_map(|s| fed.find(s.as_str())).min();
            prop_assert_eq!(m.hit(), want.is_some());
            out.push_str(&m.finish());
            prop_assert_eq!(&out, want.map_or(&fed[..], |w| &fed[..w]));
        }
    }
}
