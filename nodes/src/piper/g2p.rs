//! English text → phonemes in espeak's symbols, which Piper voices are trained on.
//!
//! Promises that no word vanishes unseen: known words come from a lexicon, unknown Latin words are spelled out or
//! guessed by letter-to-sound rules (counted in `guessed`), words in other scripts are left out and listed in
//! `skipped`. Expects text that [`speakable`](crate::text::speakable) has prepared (numbers, symbols, markup).
//! Does not know other languages than English.

use misaki_rs::{G2P, Language};

use super::letters;

/// What a text sounds like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Phonemes {
    /// espeak symbols, words parted by spaces, with `. , ; : ? !` where they stood.
    pub symbols: String,
    /// Number of words that no lexicon knows and that were spelled out or guessed.
    pub guessed: usize,
    /// Words in scripts that cannot be spoken.
    pub skipped: Vec<String>,
}

/// The lexicon and its rules. Large (some 100 MB while in use): share one per process and dialect.
pub struct Phonemizer {
    g2p: G2P,
}

impl Phonemizer {
    /// Loads the lexicon of American or British English.
    pub fn new(british: bool) -> Self {
        Self { g2p: G2P::new(if british { Language::EnglishGB } else { Language::EnglishUS }) }
    }

    /// Phonemes of a text. Never fails: what cannot be spoken is in `skipped`.
    pub fn phonemes(&self, text: &str) -> Phonemes {
        let mut out = Phonemes::default();
        let clean = self.clean(text, &mut out.skipped);
        if clean.trim().is_empty() {
            return out;
        }
        let mut dialect = String::new();
        // Without a fallback inside, the lexicon cannot fail; a text it refuses is guessed word by word.
        match self.g2p.g2p(&clean) {
            Ok((_, tokens)) => {
                for token in &tokens {
                    match &token.phonemes {
                        Some(known) if !known.contains('❓') => dialect.push_str(known),
                        _ => self.guess(&token.text, &mut dialect, &mut out.guessed),
                    }
                    dialect.push_str(&token.whitespace);
                }
            }
            Err(_) => clean.split(' ').for_each(|word| {
                self.guess(word, &mut dialect, &mut out.guessed);
                dialect.push(' ');
            }),
        }
        out.symbols = to_espeak(&dialect);
        out
    }

    /// Keeps what the lexicon can read: ASCII letters, digits and punctuation, and accented words it lists.
    fn clean(&self, text: &str, skipped: &mut Vec<String>) -> String {
        let mut clean = String::with_capacity(text.len());
        for word in text.split_whitespace() {
            let plain: String = word.chars().filter_map(plain_punctuation).collect();
            let core = plain.trim_matches(|c: char| !c.is_alphanumeric());
            if core.is_ascii() || self.g2p.lexicon.is_known(&core.to_lowercase(), "NN") {
                clean.push_str(&plain);
            } else {
                let folded: String = plain.chars().flat_map(fold).collect();
                // A word is skipped when its own letters are gone, not when one of many is.
                let lost = plain.chars().filter(|c| c.is_alphanumeric() && fold(*c).next().is_none()).count();
                let total = plain.chars().filter(|c| c.is_alphanumeric()).count();
                if lost * 2 > total {
                    skipped.push(core.to_owned());
                    // The pause after it stays.
                    clean.truncate(clean.trim_end().len());
                    clean.extend(plain.chars().last().filter(|c| ",.;:?!".contains(*c)));
                } else {
                    clean.push_str(&folded);
                }
            }
            clean.push(' ');
        }
        clean
    }

    /// Speaks a word that the lexicon lacks, part by part: a known part as it is, others by spelling or rules.
    fn guess(&self, word: &str, out: &mut String, guessed: &mut usize) {
        let mut first = true;
        for part in letters::parts(word) {
            if !first {
                out.push(' ');
            }
            first = false;
            let known = (part.len() < word.len() && part.len() > 1)
                .then(|| self.g2p.g2p(part).ok())
                .flatten()
                .map(|(symbols, _)| symbols)
                .filter(|s| !s.contains('❓') && !s.trim().is_empty());
            match known {
                Some(symbols) => out.push_str(symbols.trim()),
                None => {
                    out.push_str(&letters::guess(part));
                    *guessed += 1;
                }
            }
        }
    }
}

/// Brings typographic punctuation to what the lexicon reads; brackets and quotes are not spoken.
fn plain_punctuation(c: char) -> Option<char> {
    Some(match c {
        '’' | '‘' | 'ʼ' | '`' => '\'',
        '“' | '”' | '"' | '«' | '»' | '[' | ']' | '(' | ')' | '{' | '}' | '<' | '>' | '*' | '_' | '|' | '\\' => {
            return None;
        }
        '–' | '—' | '―' => '—',
        '。' | '．' => '.',
        '，' | '、' => ',',
        '？' => '?',
        '！' => '!',
        '；' => ';',
        '：' => ':',
        c if c.is_control() => return None,
        c => c,
    })
}

/// A Latin letter without its marks, as spelled in English; nothing for other scripts.
fn fold(c: char) -> impl Iterator<Item = char> {
    let s = match c {
        c if c.is_ascii() => return Fold::One(Some(c)),
        '—' | '…' => return Fold::One(Some(c)),
        'À'..='Å' | 'Ā' | 'Ă' | 'Ą' => "A",
        'à'..='å' | 'ā' | 'ă' | 'ą' => "a",
        'Æ' => "Ae",
        'æ' => "ae",
        'Ç' | 'Ć' | 'Č' | 'Ĉ' | 'Ċ' => "C",
        'ç' | 'ć' | 'č' | 'ĉ' | 'ċ' => "c",
        'Ď' | 'Đ' | 'Ð' => "D",
        'ď' | 'đ' | 'ð' => "d",
        'È'..='Ë' | 'Ē' | 'Ĕ' | 'Ė' | 'Ę' | 'Ě' => "E",
        'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => "e",
        'Ĝ' | 'Ğ' | 'Ġ' | 'Ģ' => "G",
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => "g",
        'Ì'..='Ï' | 'Ī' | 'İ' | 'Į' => "I",
        'ì'..='ï' | 'ī' | 'ı' | 'į' => "i",
        'Ķ' => "K",
        'ķ' => "k",
        'Ł' | 'Ĺ' | 'Ļ' | 'Ľ' => "L",
        'ł' | 'ĺ' | 'ļ' | 'ľ' => "l",
        'Ñ' | 'Ń' | 'Ņ' | 'Ň' => "N",
        'ñ' | 'ń' | 'ņ' | 'ň' => "n",
        'Ò'..='Ö' | 'Ø' | 'Ō' | 'Ő' => "O",
        'ò'..='ö' | 'ø' | 'ō' | 'ő' => "o",
        'Œ' => "Oe",
        'œ' => "oe",
        'Ŕ' | 'Ř' => "R",
        'ŕ' | 'ř' => "r",
        'Ś' | 'Ş' | 'Š' | 'Ș' => "S",
        'ś' | 'ş' | 'š' | 'ș' => "s",
        'ß' => "ss",
        'Ţ' | 'Ť' | 'Ț' => "T",
        'ţ' | 'ť' | 'ț' => "t",
        'þ' | 'Þ' => "th",
        'Ù'..='Ü' | 'Ū' | 'Ů' | 'Ű' | 'Ų' => "U",
        'ù'..='ü' | 'ū' | 'ů' | 'ű' | 'ų' => "u",
        'Ý' | 'Ÿ' => "Y",
        'ý' | 'ÿ' => "y",
        'Ź' | 'Ż' | 'Ž' => "Z",
        'ź' | 'ż' | 'ž' => "z",
        _ => "",
    };
    Fold::Many(s.chars())
}

enum Fold {
    One(Option<char>),
    Many(std::str::Chars<'static>),
}

impl Iterator for Fold {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match self {
            Self::One(c) => c.take(),
            Self::Many(chars) => chars.next(),
        }
    }
}

/// The lexicon's dialect (one letter per diphthong, no length marks) in espeak's symbols.
fn to_espeak(dialect: &str) -> String {
    let symbols: Vec<char> = dialect.chars().collect();
    let mut out = String::with_capacity(dialect.len() + dialect.len() / 2);
    // Whether the vowel that comes next carries a stress mark.
    let mut stressed = false;
    let mut i = 0;
    while let Some(&c) = symbols.get(i) {
        let next = symbols.get(i + 1).copied().unwrap_or(' ');
        let after = symbols.get(i + 2).copied().unwrap_or(' ');
        i += 1;
        let long = match c {
            'A' => "eɪ",
            'I' => "aɪ",
            'W' => "aʊ",
            'Y' => "ɔɪ",
            'O' => "oʊ",
            'Q' => "əʊ",
            'ʤ' => "dʒ",
            'ʧ' => "tʃ",
            'T' => "ɾ",
            'ᵊ' => "ə",
            'i' if stressed => "iː",
            'u' => "uː",
            'ɔ' => "ɔː",
            'ɑ' => "ɑː",
            'ɜ' if next == 'ɹ' => {
                i += usize::from(!is_vowel(after));
                "ɜː"
            }
            'ə' if next == 'ɹ' && !is_stress(after) => {
                i += usize::from(!is_vowel(after));
                "ɚ"
            }
            'ʔ' if next == 'n' => {
                i += 1;
                "ʔn\u{329}"
            }
            // Length marks are written above; a second one would be noise.
            'ː' if out.ends_with('ː') => "",
            '—' => ",",
            '…' => ".",
            '\'' | '"' | '“' | '”' | '(' | ')' | '-' | '_' | '/' => "",
            '\n' | '\t' => " ",
            _ => {
                out.push(c);
                stressed = is_stress(c) || (stressed && !is_vowel(c) && c != ' ');
                continue;
            }
        };
        if long == "," && out.ends_with(' ') {
            out.pop();
        }
        out.push_str(long);
        stressed &= !is_vowel(c) && c != ' ';
    }
    let words: Vec<&str> = out.split(' ').filter(|w| !w.is_empty()).collect();
    words.join(" ")
}

fn is_vowel(c: char) -> bool {
    "AIWYOQaeiouæɑɐɒɔəɚɛɜɪʊʌᵊᵻ".contains(c)
}

fn is_stress(c: char) -> bool {
    matches!(c, 'ˈ' | 'ˌ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    static US: LazyLock<Phonemizer> = LazyLock::new(|| Phonemizer::new(false));

    #[test]
    fn the_dialect_becomes_espeak() {
        for (dialect, espeak) in [
            ("həlˈO wˈɜɹld", "həlˈoʊ wˈɜːld"),
            ("sˈi hˈæpi pˈipᵊl", "sˈiː hˈæpi pˈiːpəl"),
            ("wˈɔTəɹ bˈɛɾəɹ", "wˈɔːɾɚ bˈɛɾɚ"),
            ("mˈɛməɹi fˈɜɹi", "mˈɛmɚɹi fˈɜːɹi"),
            ("ɹəpˈɔɹt kˈɑɹ", "ɹəpˈɔːɹt kˈɑːɹ"),
            ("bˈʌʔn ʤˈuɪʃ ʧˈY", "bˈʌʔn\u{329} dʒˈuːɪʃ tʃˈɔɪ"),
            ("jˈɛs — nˈO…", "jˈɛs, nˈoʊ."),
            ("“hˈI” (ðˈɛɹ)", "hˈaɪ ðˈɛɹ"),
        ] {
            assert_eq!(to_espeak(dialect), espeak, "{dialect}");
        }
    }

    #[test]
    fn known_words_come_from_the_lexicon() {
        let p = US.phonemes("The capital of Italy is Rome.");
        assert_eq!(p.symbols, "ðə kˈæpəɾəl ʌv ˈɪɾəli ɪz ɹˈoʊm.");
        assert_eq!((p.guessed, p.skipped.len()), (0, 0));
        // A word in context and typographic apostrophes.
        assert_ne!(US.phonemes("I read it yesterday.").symbols, US.phonemes("I will read it.").symbols);
        assert_eq!(US.phonemes("It’s “fine”.").symbols, US.phonemes("It's fine.").symbols);
    }

    #[test]
    fn acronyms_are_spelled_unless_they_are_words() {
        let gpu = US.phonemes("GPU").symbols;
        assert!(gpu.starts_with("dʒˌiː") && gpu.ends_with("jˈuː"), "{gpu}");
        assert_eq!(US.phonemes("NASA").symbols, "nˈæsə");
        let mixed = US.phonemes("vLLM").symbols;
        assert!(mixed.matches("ɛl").count() >= 2 && mixed.ends_with("ɛm"), "{mixed}");
    }

    #[test]
    fn unknown_words_are_guessed_and_counted() {
        let p = US.phonemes("Blorfing zanquist, qzxwv!");
        assert!(p.guessed >= 3 && p.skipped.is_empty(), "{p:?}");
        assert!(p.symbols.split(' ').count() >= 3, "{p:?}");
        assert!(!p.symbols.contains('❓'));
    }

    #[test]
    fn other_scripts_are_listed_and_the_rest_is_spoken() {
        let p = US.phonemes("He said Привет, then 你好 to Łódź.");
        assert_eq!(p.skipped, ["Привет", "你好"]);
        assert!(p.symbols.contains("sˈɛd,") && p.symbols.ends_with('.'), "{}", p.symbols);
        assert_eq!(US.phonemes("你好").skipped.len(), 1);
        assert_eq!(US.phonemes("   ").symbols, "");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn every_text_gives_only_symbols_of_the_set(text in "[a-zA-Zé'’ .,!?\\-—\\[\\]()/&%0-9😀你]{0,40}") {
            let p = US.phonemes(&text);
            for c in p.symbols.chars() {
                prop_assert!(!c.is_uppercase() && c != '❓' && !"\"“”()[]—…ʤʧᵊ".contains(c), "{c:?} in {}", p.symbols);
            }
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,30}") {
            let _ = US.phonemes(&text);
        }
    }
}
