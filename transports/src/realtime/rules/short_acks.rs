//! Short acknowledgements ("yes", "go on"): words under an answer that are no turn (Realtime protocol, overlap).

/// Words that acknowledge and are no turn, compared by their letters and digits alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortAcks {
    words: Vec<String>,
    longest: usize,
}

/// The built-in acknowledgements.
const WORDS: [&str; 20] = [
    "yes",
    "yeah",
    "yep",
    "ok",
    "okay",
    "right",
    "continue",
    "go on",
    "keep going",
    "please continue",
    "嗯",
    "嗯嗯",
    "对",
    "对的",
    "好",
    "好的",
    "继续",
    "继续说",
    "可以",
    "是的",
];

impl Default for ShortAcks {
    fn default() -> Self {
        let mut made = Self { words: Vec::new(), longest: 0 };
        made.extend(WORDS);
        made
    }
}

impl ShortAcks {
    /// The built-in ones, and these.
    pub fn with<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let mut made = Self::default();
        made.extend(words);
        made
    }
    /// Adds acknowledgements; what has neither letter nor digit is left out.
    pub fn extend<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) {
        for word in words {
            let word: String = letters(word).collect();
            if !word.is_empty() && !self.words.contains(&word) {
                self.longest = self.longest.max(word.chars().count());
                self.words.push(word);
            }
        }
    }

    /// Whether a transcript is one of them.
    pub fn has(&self, transcript: &str) -> bool {
        // One letter more than the longest is enough to tell, however long the transcript.
        let heard: String = letters(transcript).take(self.longest + 1).collect();
        self.words.contains(&heard)
    }
}

fn letters(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().flat_map(char::to_lowercase).filter(|c| c.is_alphanumeric())
}
