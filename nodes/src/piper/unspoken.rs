//! What of a text a voice cannot speak, in words for people: `Cyrillic ("Привет", "мир"), emoji ("😀")`.
//!
//! Scripts are told by the blocks of Unicode, which is enough to name what a reader sees. Marks of punctuation and
//! blanks of any script are nothing to speak and are not named.

use std::collections::BTreeMap;

/// Samples of a script that are shown.
const SAMPLES: usize = 2;
/// Longest sample, in characters.
const LONG: usize = 16;

/// Scripts and kinds of symbols by their first and last character. The first match holds.
const SCRIPTS: [(u32, u32, &str); 37] = [
    (0x0041, 0x024F, "Latin"),
    (0x0250, 0x02FF, "phonetic"),
    (0x0370, 0x03FF, "Greek"),
    (0x0400, 0x052F, "Cyrillic"),
    (0x0530, 0x058F, "Armenian"),
    (0x0590, 0x05FF, "Hebrew"),
    (0x0600, 0x06FF, "Arabic"),
    (0x0700, 0x074F, "Syriac"),
    (0x0750, 0x077F, "Arabic"),
    (0x0900, 0x097F, "Devanagari"),
    (0x0980, 0x09FF, "Bengali"),
    (0x0A00, 0x0A7F, "Gurmukhi"),
    (0x0A80, 0x0AFF, "Gujarati"),
    (0x0B80, 0x0BFF, "Tamil"),
    (0x0C00, 0x0C7F, "Telugu"),
    (0x0C80, 0x0CFF, "Kannada"),
    (0x0D00, 0x0D7F, "Malayalam"),
    (0x0E00, 0x0E7F, "Thai"),
    (0x0E80, 0x0EFF, "Lao"),
    (0x0F00, 0x0FFF, "Tibetan"),
    (0x1000, 0x109F, "Burmese"),
    (0x10A0, 0x10FF, "Georgian"),
    (0x1100, 0x11FF, "Hangul"),
    (0x1200, 0x139F, "Ethiopic"),
    (0x1780, 0x17FF, "Khmer"),
    (0x1E00, 0x1EFF, "Latin"),
    (0x1F00, 0x1FFF, "Greek"),
    (0x2190, 0x23FF, "symbols"),
    (0x2500, 0x2BFF, "symbols"),
    (0x3040, 0x309F, "Hiragana"),
    (0x30A0, 0x30FF, "Katakana"),
    (0x3400, 0x9FFF, "Han"),
    (0xAC00, 0xD7AF, "Hangul"),
    (0xF900, 0xFAFF, "Han"),
    (0xFB50, 0xFEFC, "Arabic"),
    (0x1F000, 0x1FAFF, "emoji"),
    (0x20000, 0x323AF, "Han"),
];

/// The script of a character, or the kind of a symbol; `None` for what is not spoken in any script.
fn script(c: char) -> Option<&'static str> {
    let found = SCRIPTS.iter().find(|(first, last, _)| (*first..=*last).contains(&u32::from(c)));
    match found {
        Some((_, _, "emoji" | "symbols")) => found.map(|s| s.2),
        _ if !c.is_alphanumeric() => None,
        Some((_, _, name)) => Some(name),
        None => Some("other"),
    }
}

/// The script that most of a word is in.
fn of_word(word: &str) -> Option<&'static str> {
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    word.chars().filter_map(script).for_each(|s| *counts.entry(s).or_default() += 1);
    counts.into_iter().max_by_key(|(_, n)| *n).map(|(s, _)| s)
}

/// What cannot be spoken, by script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unspoken(BTreeMap<&'static str, Vec<String>>);

impl Unspoken {
    /// Of the words that a voice left out of `text`; if nothing of the text is left, of all that it holds.
    pub fn of(text: &str, skipped: &[String], nothing_left: bool) -> Self {
        let mut all = Self::default();
        let words: Vec<&str> = match nothing_left {
            true => text.split_whitespace().collect(),
            false => skipped.iter().map(String::as_str).collect(),
        };
        for word in words {
            if let Some(script) = of_word(word) {
                let samples = all.0.entry(script).or_default();
                let sample: String = word.chars().take(LONG).collect();
                if samples.len() < SAMPLES && !samples.contains(&sample) {
                    samples.push(sample);
                }
            }
        }
        all
    }
    /// True if there is nothing of the kind.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Names of the scripts.
    pub fn scripts(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }
}

impl std::fmt::Display for Unspoken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, (script, samples)) in self.0.iter().enumerate() {
            let quoted: Vec<String> = samples.iter().map(|s| format!("\"{s}\"")).collect();
            write!(f, "{}{script} ({})", if i > 0 { ", " } else { "" }, quoted.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_named_with_samples() {
        let all = |text: &str| Unspoken::of(text, &[], true).to_string();
        assert_eq!(all("Привет, мир и все!"), "Cyrillic (\"Привет,\", \"мир\")");
        assert_eq!(all("😀 👍🏽"), "emoji (\"😀\", \"👍🏽\")");
        assert_eq!(all("你好 こんにちは ★"), "Han (\"你好\"), Hiragana (\"こんにちは\"), symbols (\"★\")");
        assert_eq!(all("مرحبا"), "Arabic (\"مرحبا\")");
        assert_eq!(all("… -- !? *** \n"), "");
        assert_eq!(all(&"д".repeat(100)), format!("Cyrillic (\"{}\")", "д".repeat(16)));
    }
    #[test]
    fn of_a_mixed_text_only_what_was_left_out_is_named() {
        let some = Unspoken::of("Say Привет now 😀.", &["Привет".to_owned()], false);
        assert_eq!(some.to_string(), "Cyrillic (\"Привет\")");
        assert_eq!(some.scripts().collect::<Vec<_>>(), ["Cyrillic"]);
        assert!(Unspoken::of("Hello.", &[], false).is_empty());
    }
    #[test]
    fn the_blocks_are_in_order() {
        assert!(SCRIPTS.is_sorted_by(|a, b| a.1 < b.0) && SCRIPTS.iter().all(|s| s.0 < s.1));
    }
}
