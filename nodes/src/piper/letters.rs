//! Letter-to-sound rules for English words that no lexicon has: names, brands, invented words, acronyms.
//!
//! Promises a pronounceable guess for every run of ASCII letters, in the lexicon's dialect, with one main stress;
//! acronyms are spelled letter by letter. Does not promise the right one.

/// Names of the letters a to z.
const NAMES: [&str; 26] = [
    "ˈA",
    "bˈi",
    "sˈi",
    "dˈi",
    "ˈi",
    "ˈɛf",
    "ʤˈi",
    "ˈAʧ",
    "ˈI",
    "ʤˈA",
    "kˈA",
    "ˈɛl",
    "ˈɛm",
    "ˈɛn",
    "ˈO",
    "pˈi",
    "kjˈu",
    "ˈɑɹ",
    "ˈɛs",
    "tˈi",
    "jˈu",
    "vˈi",
    "dˈʌbᵊlju",
    "ˈɛks",
    "wˈI",
    "zˈi",
];

const DIGITS: [&str; 10] = ["zˈɪɹO", "wˈʌn", "tˈu", "θɹˈi", "fˈɔɹ", "fˈIv", "sˈɪks", "sˈɛvən", "ˈAt", "nˈIn"];

/// Letter groups and their sound, longest first within a first letter; uppercase-free ASCII.
/// `^` before a group: only at the start of a word; `$` after it: only at the end.
const RULES: &[(&str, &str)] = &[
    ("augh", "ɔ"),
    ("ai", "A"),
    ("ay", "A"),
    ("au", "ɔ"),
    ("aw", "ɔ"),
    ("all$", "ɔl"),
    ("alk", "ɔk"),
    ("ar", "ɑɹ"),
    ("age$", "ɪʤ"),
    ("able$", "əbᵊl"),
    ("a$", "ə"),
    ("aa", "ɑ"),
    ("ae", "i"),
    ("ch", "ʧ"),
    ("chr", "kɹ"),
    ("ck", "k"),
    ("cc", "k"),
    ("ce$", "s"),
    ("cial", "ʃəl"),
    ("cian", "ʃən"),
    ("cious", "ʃəs"),
    ("dge", "ʤ"),
    ("dg", "ʤ"),
    ("eau", "O"),
    ("ee", "i"),
    ("ea", "i"),
    ("ei", "A"),
    ("eigh", "A"),
    ("ew", "u"),
    ("ey$", "i"),
    ("ey", "A"),
    ("er", "əɹ"),
    ("ear", "ɪɹ"),
    ("ed$", "d"),
    ("es$", "z"),
    ("tes$", "tᵻz"),
    ("eu", "ju"),
    ("ght", "t"),
    ("gh$", ""),
    ("gh", "ɡ"),
    ("gn$", "n"),
    ("^gn", "n"),
    ("ggi", "ɡɪ"),
    ("igh", "I"),
    ("ing$", "ɪŋ"),
    ("ink", "ɪŋk"),
    ("ie$", "i"),
    ("ie", "i"),
    ("ir", "ɜɹ"),
    ("ious", "iəs"),
    ("ique", "ik"),
    ("i$", "i"),
    ("ism$", "ɪzᵊm"),
    ("ive$", "ɪv"),
    ("^kn", "n"),
    ("le$", "ᵊl"),
    ("^mn", "n"),
    ("mb$", "m"),
    ("ng$", "ŋ"),
    ("nk", "ŋk"),
    ("oo", "u"),
    ("ou", "W"),
    ("ough", "O"),
    ("ous$", "əs"),
    ("ow$", "O"),
    ("ow", "W"),
    ("oi", "Y"),
    ("oy", "Y"),
    ("oa", "O"),
    ("oe", "O"),
    ("or", "ɔɹ"),
    ("o$", "O"),
    ("our", "ɔɹ"),
    ("^ps", "s"),
    ("ph", "f"),
    ("qu", "kw"),
    ("que$", "k"),
    ("q", "k"),
    ("rh", "ɹ"),
    ("sch", "sk"),
    ("sh", "ʃ"),
    ("sion", "ʒən"),
    ("ssion", "ʃən"),
    ("ss", "s"),
    ("stle$", "sᵊl"),
    ("tch", "ʧ"),
    ("th", "θ"),
    ("tion", "ʃən"),
    ("tial", "ʃəl"),
    ("tious", "ʃəs"),
    ("ture$", "ʧəɹ"),
    ("ur", "ɜɹ"),
    ("ue$", "u"),
    ("ui", "u"),
    ("u$", "u"),
    ("wh", "w"),
    ("^wr", "ɹ"),
    ("^x", "z"),
    ("^y", "j"),
    ("y$", "i"),
    ("zz", "ts"),
    ("^zh", "ʒ"),
    ("a", "æ"),
    ("b", "b"),
    ("c", "k"),
    ("d", "d"),
    ("e", "ɛ"),
    ("f", "f"),
    ("g", "ɡ"),
    ("h", "h"),
    ("i", "ɪ"),
    ("j", "ʤ"),
    ("k", "k"),
    ("l", "l"),
    ("m", "m"),
    ("n", "n"),
    ("o", "ɑ"),
    ("p", "p"),
    ("r", "ɹ"),
    ("s", "s"),
    ("t", "t"),
    ("u", "ʌ"),
    ("v", "v"),
    ("w", "w"),
    ("x", "ks"),
    ("y", "ɪ"),
    ("z", "z"),
];

/// Splits a word where its spelling does: at what is no letter or digit, between letters and digits, before a
/// capital that follows a small letter, and before the last capital of a run that small letters follow.
pub(super) fn parts(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
        if rest.is_empty() {
            return None;
        }
        let bytes = rest.as_bytes();
        let mut end = 1;
        while end < bytes.len() {
            let (a, b) = (bytes[end - 1], bytes[end]);
            let apostrophe = b == b'\'' && matches!(bytes.get(end + 1..), Some(b"s" | b"S"));
            let next_small = bytes.get(end + 1).is_some_and(u8::is_ascii_lowercase);
            // "Brien's" is one part, "O'Brien" two.
            let split = !(a == b'\'' || b.is_ascii_alphanumeric() || apostrophe)
                || a.is_ascii_digit() != b.is_ascii_digit()
                || (a.is_ascii_lowercase() && b.is_ascii_uppercase())
                // "GPUs" stays whole, "HTTPServer" does not.
                || (a.is_ascii_uppercase() && b.is_ascii_uppercase() && next_small && bytes.len() > end + 2);
            if split {
                break;
            }
            end += 1;
        }
        let (part, tail) = rest.split_at(end);
        rest = tail;
        Some(part)
    })
}

/// A guess at one part of a word.
pub(super) fn guess(part: &str) -> String {
    if part.bytes().all(|b| b.is_ascii_digit()) {
        return spelled(part);
    }
    let (stem, ending) = match part.split_once('\'') {
        Some((stem, "s" | "S")) => (stem, ending_s(stem)),
        Some((stem, _)) => (stem, ""),
        None => match part.strip_suffix('s') {
            Some(stem) if stem.len() > 1 && is_upper(stem) => (stem, ending_s(stem)),
            _ => (part, ""),
        },
    };
    let lower = stem.to_ascii_lowercase();
    let vowels = lower.bytes().filter(|b| b"aeiouy".contains(b)).count();
    let acronym = is_upper(stem) && stem.len() <= 5;
    let mut out = if acronym || vowels == 0 || stem.len() == 1 { spelled(&lower) } else { by_rules(&lower) };
    if !out.contains('ˈ') {
        // Only silent vowels: "bbe".
        out = spelled(&lower);
    }
    out.push_str(ending);
    out
}

fn is_upper(word: &str) -> bool {
    word.bytes().all(|b| b.is_ascii_uppercase())
}

fn ending_s(stem: &str) -> &'static str {
    match stem.bytes().last().map(|b| b.to_ascii_lowercase()) {
        Some(b'p' | b't' | b'k' | b'f') if !is_upper(stem) => "s",
        Some(b's' | b'x' | b'z') => "ᵻz",
        _ => "z",
    }
}

fn spelled(word: &str) -> String {
    let names = word.bytes().filter_map(|b| match b {
        b'0'..=b'9' => Some(DIGITS[usize::from(b - b'0')]),
        b'a'..=b'z' => Some(NAMES[usize::from(b - b'a')]),
        b'A'..=b'Z' => Some(NAMES[usize::from(b - b'A')]),
        _ => None,
    });
    names.collect::<Vec<_>>().join(" ")
}

/// Applies the rules from left to right; the longest that fits wins.
fn by_rules(word: &str) -> String {
    let bytes = word.as_bytes();
    let mut sounds: Vec<&'static str> = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let rest = &word[i..];
        // A doubled consonant sounds once.
        if i > 0 && bytes[i] == bytes[i - 1] && !b"aeioucgsz".contains(&bytes[i]) {
            i += 1;
            continue;
        }
        let (b, next) = (bytes[i], bytes.get(i + 1).copied().unwrap_or(b' '));
        let last = i + 1 == bytes.len();
        if b == b'e' && last && i > 1 {
            break;
        }
        let soft = matches!(next, b'e' | b'i' | b'y');
        let consonant = bytes.get(i + 1).is_some_and(|c| !b"aeiouywxr".contains(c));
        let magic = consonant && bytes.get(i + 2) == Some(&b'e') && bytes.len() == i + 3;
        let (sound, used) = match b {
            b'a' if magic => ("A", 1),
            b'e' if magic && i > 0 => ("i", 1),
            b'i' if magic => ("I", 1),
            b'o' if magic => ("O", 1),
            b'u' if magic => ("u", 1),
            b'y' if magic || (last && i < 4 && !word[..i].contains(['a', 'e', 'i', 'o', 'u'])) => ("I", 1),
            b'c' if soft => ("s", 1),
            b'g' if soft && i > 0 && bytes[i - 1] != b'g' && next != b'i' => ("ʤ", 1),
            _ => rule(rest, i == 0),
        };
        sounds.push(sound);
        i += used.max(1);
    }
    with_stress(&sounds)
}

fn rule(rest: &str, start: bool) -> (&'static str, usize) {
    let fits = |pattern: &str| {
        let (body, at_start) = pattern.strip_prefix('^').map_or((pattern, false), |b| (b, true));
        let (body, at_end) = body.strip_suffix('$').map_or((body, false), |b| (b, true));
        let ok = rest.starts_with(body) && (!at_start || start) && (!at_end || rest.len() == body.len());
        ok.then_some(body.len())
    };
    let best = RULES.iter().filter_map(|(pattern, sound)| Some((*sound, fits(pattern)?, pattern.len())));
    best.max_by_key(|&(_, used, bound)| (used, bound)).map_or(("", 1), |(sound, used, _)| (sound, used))
}

/// Puts the main stress on the first full vowel; before `-tion` and its like on the vowel in front of it.
fn with_stress(sounds: &[&'static str]) -> String {
    let vowel = |s: &&str| s.chars().next().is_some_and(|c| "AIWYOæɑɔəɛɜɪʊʌiu".contains(c));
    let full = |s: &&str| vowel(s) && !s.starts_with('ə');
    let ending = sounds.iter().position(|s| s.ends_with("ʃən") || s.ends_with("ʃəl") || s.ends_with("ʒən"));
    let at = ending
        .and_then(|end| sounds[..end].iter().rposition(&full))
        .or_else(|| sounds.iter().position(full))
        .or_else(|| sounds.iter().position(vowel));
    let mut out = String::new();
    for (i, sound) in sounds.iter().enumerate() {
        if Some(i) == at {
            out.push('ˈ');
        }
        out.push_str(sound);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_split_where_their_spelling_does() {
        let split = |w| parts(w).collect::<Vec<_>>();
        assert_eq!(split("iPhone"), ["i", "Phone"]);
        assert_eq!(split("HTTPServer"), ["HTTP", "Server"]);
        assert_eq!(split("GPUs"), ["GPUs"]);
        assert_eq!(split("omni-flow_2x"), ["omni", "flow", "2", "x"]);
        assert_eq!(split("O'Brien's"), ["O", "Brien's"]);
        assert_eq!(split("--"), Vec::<&str>::new());
    }

    #[test]
    fn rules_give_what_a_reader_would_say() {
        for (word, sound) in [
            ("blorf", "blˈɔɹf"),
            ("zane", "zˈAn"),
            ("phight", "fˈIt"),
            ("quib", "kwˈɪb"),
            ("wrack", "ɹˈæk"),
            ("gnash", "nˈæʃ"),
            ("dention", "dˈɛnʃən"),
            ("cylex", "sˈɪlɛks"),
            ("fly", "flˈI"),
            ("bobby", "bˈɑbi"),
        ] {
            assert_eq!(guess(word), sound, "{word}");
        }
    }

    #[test]
    fn acronyms_and_vowelless_words_are_spelled() {
        assert_eq!(guess("GPU"), "ʤˈi pˈi jˈu");
        assert_eq!(guess("GPUs"), "ʤˈi pˈi jˈuz");
        assert_eq!(guess("kbd"), "kˈA bˈi dˈi");
        assert_eq!(guess("42"), "fˈɔɹ tˈu");
    }

    #[test]
    fn every_word_of_letters_has_a_sound() {
        for a in b'a'..=b'z' {
            for b in b'a'..=b'z' {
                for tail in ["", "e", "th", "ing"] {
                    let word = format!("{}{}{tail}", a as char, b as char);
                    assert!(guess(&word).contains('ˈ'), "{word} → {}", guess(&word));
                }
            }
        }
    }
}
