//! Cuts a stream of text into pieces that can be spoken: the first clause early, then sentence by sentence.
//!
//! Promises the same pieces for every way in which the text arrives; that the pieces joined are the text, but for
//! white space at the cuts; that no piece is longer than `max_chars` and no character is split. Knows abbreviations,
//! initials, decimals, ellipses, closing quotes, lists, and the stops of Chinese and Japanese.
//! Does not look at meaning: "at 5 p.m. Rome" is one guess among two.

/// Where pieces may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentencesConfig {
    /// The first piece may end at a comma once it has this many characters...
    pub first_chars: usize,
    /// ...and this many words.
    pub first_words: usize,
    /// Later pieces may end at a comma once they have this many characters.
    pub clause_chars: usize,
    /// Longest piece in characters, at least 8; then it is cut at a comma, a space, or anywhere.
    pub max_chars: usize,
}

impl Default for SentencesConfig {
    fn default() -> Self {
        Self { first_chars: 16, first_words: 3, clause_chars: 160, max_chars: 320 }
    }
}

/// Why a piece ended where it did; a voice pauses accordingly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// A full stop, a question or exclamation mark, a line break or the end of the text.
    Sentence,
    /// A comma, semicolon, colon or dash.
    Clause,
    /// The longest length was reached.
    Cut,
}

/// Some text to be spoken in one go; never empty, no white space at its ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The text as it came.
    pub text: String,
    /// Why it ends here.
    pub stop: Stop,
}

/// The machine of one stream of text.
#[derive(Debug, Clone)]
pub struct Sentences {
    config: SentencesConfig,
    /// Text not yet given out; never begins with white space.
    held: String,
    first: bool,
}

/// Characters looked at behind a stop before it is taken as one whatever follows.
const LOOK: usize = 16;

impl Sentences {
    /// A machine at the start of an answer.
    pub fn new(config: SentencesConfig) -> Self {
        let config = SentencesConfig { max_chars: config.max_chars.max(8), ..config };
        Self { config, held: String::new(), first: true }
    }

    /// Takes more text and returns the pieces that are sure now.
    pub fn push(&mut self, text: &str) -> Vec<Piece> {
        self.held.push_str(text);
        self.cut(false)
    }

    /// Ends the answer: returns the rest and stands at the start of the next answer.
    pub fn finish(&mut self) -> Vec<Piece> {
        let pieces = self.cut(true);
        self.reset();
        pieces
    }

    /// Forgets what is held, as a fence asks.
    pub fn reset(&mut self) {
        self.held.clear();
        self.first = true;
    }

    /// Characters held back at most; more means that a piece is given out.
    pub fn bound(&self) -> usize {
        self.config.max_chars + 3 * LOOK
    }

    fn cut(&mut self, ended: bool) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut from = 0;
        loop {
            let rest = &self.held[from..];
            from += rest.len() - rest.trim_start().len();
            let rest = &self.held[from..];
            let Some((end, stop)) = next_stop(rest, self.config, self.first, ended) else { break };
            let text = rest[..end].trim_end().to_owned();
            from += end;
            self.first = false;
            pieces.push(Piece { text, stop });
        }
        self.held.drain(..from);
        pieces
    }
}

/// The end of the first piece of `text`, or `None` while more text could change it.
fn next_stop(text: &str, config: SentencesConfig, first: bool, ended: bool) -> Option<(usize, Stop)> {
    let (mut chars, mut words, mut in_word) = (0, 0, false);
    // Best places to cut a piece that becomes too long.
    let (mut comma, mut space) = (0, 0);
    // Where a run of stops that was judged already ends.
    let mut judged = 0;
    for (at, c) in text.char_indices() {
        if chars == config.max_chars {
            let soft = if comma > 0 { comma } else { space };
            return Some((if soft > 0 { soft } else { at }, Stop::Cut));
        }
        let end = at + c.len_utf8();
        chars += 1;
        if c.is_whitespace() {
            space = at;
            in_word = false;
        } else if !in_word {
            in_word = true;
            words += 1;
        }
        match c {
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => return Some((at, Stop::Sentence)),
            _ if at < judged => {}
            '.' | '!' | '?' | '…' | '。' | '！' | '？' | '．' => match judge(text, at, ended) {
                Verdict::More => return None,
                Verdict::Stop(end) => return Some((end, Stop::Sentence)),
                Verdict::Go(end) => judged = end,
            },
            ',' | ';' | ':' | '—' | '–' | '，' | '、' | '；' | '：' => {
                let wide = !c.is_ascii() && c != '–';
                let next = text[end..].chars().next();
                if next.is_none() && !ended {
                    // A clause ends here only if a space follows; wait, unless the piece is too short anyway.
                    return None;
                }
                if !(wide || next.is_none_or(char::is_whitespace)) {
                    continue;
                }
                comma = end;
                let long = chars >= config.clause_chars
                    // Scripts without spaces have no words to count.
                    || (first && chars >= config.first_chars && (words >= config.first_words || !c.is_ascii()));
                // The last clause of an answer goes with its end.
                if long && !(ended && text[end..].trim().is_empty()) {
                    return Some((end, Stop::Clause));
                }
            }
            _ => {}
        }
    }
    (ended && chars > 0).then_some((text.len(), Stop::Sentence))
}

enum Verdict {
    /// The text up to here is a sentence.
    Stop(usize),
    /// No sentence ends here; go on behind this place.
    Go(usize),
    /// Depends on what comes.
    More,
}

/// Whether the stop at `at` ends a sentence.
fn judge(text: &str, at: usize, ended: bool) -> Verdict {
    let more = || if ended { Verdict::Stop(text.len()) } else { Verdict::More };
    let (run, run_len, run_open) =
        span(&text[at..], |c| matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？' | '．'));
    let after_run = at + run;
    let (close, _, close_open) = span(&text[after_run..], is_closer);
    let behind = after_run + close;
    if run_open || close_open {
        return more();
    }
    let stops = &text[at..after_run];
    let Some(next) = text[behind..].chars().next() else { return more() };
    if stops.chars().any(|c| matches!(c, '。' | '！' | '？' | '．')) {
        return Verdict::Stop(behind);
    }
    if !next.is_whitespace() {
        // "3.5", "example.com", "?x=1"; but a sentence in another script may follow without a space.
        return if is_wide(next) { Verdict::Stop(behind) } else { Verdict::Go(behind) };
    }
    let ellipsis = stops.contains('…') || (run_len > 1 && stops.bytes().all(|b| b == b'.'));
    let word = last_word(&text[..at]);
    let kind = if stops == "." { kind(word, text[..at].len() == word.len()) } else { Kind::Plain };
    if matches!(kind, Kind::Never) {
        return Verdict::Go(behind);
    }
    if !ellipsis && close == 0 && matches!(kind, Kind::Plain) {
        return Verdict::Stop(behind);
    }
    let mut follow = text[behind..].chars();
    for _ in 0..LOOK {
        match follow.next() {
            None => return more(),
            Some('\n') => return Verdict::Stop(behind),
            Some(c) if c.is_whitespace() => {}
            Some(c) => {
                let goes_on = match kind {
                    Kind::BeforeNumber => c.is_ascii_digit(),
                    _ => c.is_lowercase() || matches!(c, ',' | ';' | ':'),
                };
                return if goes_on { Verdict::Go(behind) } else { Verdict::Stop(behind) };
            }
        }
    }
    Verdict::Stop(behind)
}

/// Length in bytes and characters of the run of `is` at the start, and whether the text ends inside it.
/// A run of more than [`LOOK`] characters is taken as ended.
fn span(text: &str, is: impl Fn(char) -> bool) -> (usize, usize, bool) {
    let mut count = 0;
    for (at, c) in text.char_indices() {
        if !is(c) || count == LOOK {
            return (at, count, false);
        }
        count += 1;
    }
    (text.len(), count, count < LOOK)
}

fn is_closer(c: char) -> bool {
    matches!(c, '"' | '\'' | ')' | ']' | '}' | '”' | '’' | '»' | '」' | '』' | '）' | '*' | '_' | '`')
}

fn is_wide(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{ff00}'..='\u{ffef}')
}

/// The word in front of a stop, without what opens it.
fn last_word(text: &str) -> &str {
    let from = text.rfind(char::is_whitespace).map_or(0, |i| i + text[i..].chars().next().map_or(1, char::len_utf8));
    text[from..].trim_start_matches(|c: char| !c.is_alphanumeric())
}

enum Kind {
    /// An ordinary word.
    Plain,
    /// A title or the like: more always follows.
    Never,
    /// An abbreviation that may end a sentence; what follows decides.
    Perhaps,
    /// An abbreviation only in front of a number.
    BeforeNumber,
}

fn kind(word: &str, whole_piece: bool) -> Kind {
    const NEVER: &[&str] = &[
        "mr", "mrs", "ms", "dr", "prof", "rev", "hon", "gen", "col", "sgt", "capt", "lt", "gov", "sen", "rep", "pres",
        "mt", "vs", "cf", "approx", "e.g", "i.e", "eg", "ie", "viz", "resp", "ca", "messrs", "mme", "st", "incl",
    ];
    const PERHAPS: &[&str] =
        &["etc", "al", "a.m", "p.m", "inc", "ltd", "corp", "jr", "sr", "dept", "est", "ave", "blvd", "ph.d"];
    const NUMBER: &[&str] = &[
        "no", "nos", "vol", "fig", "figs", "p", "pp", "ch", "sec", "eq", "jan", "feb", "mar", "apr", "jun", "jul",
        "aug", "sep", "sept", "oct", "nov", "dec",
    ];
    // A list number is a piece with what it numbers.
    if whole_piece && !word.is_empty() && word.len() <= 3 && word.bytes().all(|b| b.is_ascii_digit()) {
        return Kind::Never;
    }
    if word.len() > 8 || word.is_empty() {
        return Kind::Plain;
    }
    let lower = word.to_lowercase();
    if NEVER.contains(&lower.as_str()) {
        return Kind::Never;
    }
    if PERHAPS.contains(&lower.as_str()) {
        return Kind::Perhaps;
    }
    if NUMBER.contains(&lower.as_str()) {
        return Kind::BeforeNumber;
    }
    let mut letters = word.split('.');
    let single = letters.all(|l| l.chars().count() == 1 && l.chars().all(char::is_alphabetic));
    match (single, word.contains('.')) {
        // U.S., i.e., A.I.
        (true, true) => Kind::Perhaps,
        // An initial, but not "So am I."
        (true, false) if word != "I" && word.chars().all(char::is_uppercase) => Kind::Never,
        _ => Kind::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(text: &str) -> Vec<String> {
        let mut machine = Sentences::new(SentencesConfig { first_chars: 1000, ..Default::default() });
        let mut pieces = machine.push(text);
        pieces.extend(machine.finish());
        pieces.into_iter().map(|p| p.text).collect()
    }

    #[test]
    fn sentences_end_where_a_reader_would_end_them() {
        for (text, pieces) in [
            ("Rome is old. It is big.", &["Rome is old.", "It is big."][..]),
            ("Dr. Smith met Mr. J. R. Jones. They spoke.", &["Dr. Smith met Mr. J. R. Jones.", "They spoke."]),
            ("It costs 3.5 dollars. Or 1,000.50 yen.", &["It costs 3.5 dollars.", "Or 1,000.50 yen."]),
            ("Use tools, e.g. hammers, etc. and go. Now.", &["Use tools, e.g. hammers, etc. and go.", "Now."]),
            ("Tools etc. Then we went.", &["Tools etc.", "Then we went."]),
            ("Wait... what? Really?! Yes.", &["Wait... what?", "Really?!", "Yes."]),
            ("Well… Maybe. No", &["Well…", "Maybe.", "No"]),
            (
                "He said \"Go!\" and left. (She did not.) Fine.",
                &["He said \"Go!\" and left.", "(She did not.)", "Fine."],
            ),
            ("\"Go.\" She went.", &["\"Go.\"", "She went."]),
            ("See example.com now. Yes.", &["See example.com now.", "Yes."]),
            (
                "Items:\n- one\n- two\n\n1. First thing. 2. Second",
                &["Items:", "- one", "- two", "1. First thing.", "2. Second"],
            ),
            ("In the U.S. army. In the U.K. now.", &["In the U.S. army.", "In the U.K. now."]),
            ("The answer is no. See no. 5 there.", &["The answer is no.", "See no. 5 there."]),
            ("So am I. You too.", &["So am I.", "You too."]),
            ("你好。今天好吗？很好！", &["你好。", "今天好吗？", "很好！"]),
            ("Meet at 5 p.m. tomorrow. Bye.", &["Meet at 5 p.m. tomorrow.", "Bye."]),
            ("**Bold.** Next.", &["**Bold.**", "Next."]),
            ("   ", &[]),
            ("", &[]),
            ("...", &["..."]),
        ] {
            assert_eq!(whole(text), pieces, "{text}");
        }
    }

    #[test]
    fn the_first_clause_comes_early() {
        let mut machine = Sentences::new(SentencesConfig::default());
        assert_eq!(machine.push("The capital of Italy,"), []);
        let first = machine.push(" ");
        assert_eq!(first, [Piece { text: "The capital of Italy,".into(), stop: Stop::Clause }]);
        assert_eq!(
            machine.push("as you may know, is Rome. "),
            [Piece { text: "as you may know, is Rome.".into(), stop: Stop::Sentence }]
        );
        assert_eq!(machine.finish(), []);
        // Too short for a piece of its own.
        let mut pieces = machine.push("Yes, it is. ");
        pieces.extend(machine.finish());
        assert_eq!(pieces.len(), 1);
    }

    #[test]
    fn a_fence_forgets() {
        let mut machine = Sentences::new(SentencesConfig::default());
        machine.push("An answer that nobody");
        machine.reset();
        assert_eq!(machine.finish(), []);
    }

    #[test]
    fn a_line_of_a_mebibyte_is_cut() {
        for unit in ["x", "é", "。x", ".", "Dr. ", "etc.\u{a0}", "\"", ", ", "a "] {
            let line = unit.repeat((1 << 20) / unit.len());
            let mut machine = Sentences::new(SentencesConfig::default());
            let mut pieces = machine.push(&line);
            assert!(machine.held.chars().count() <= machine.bound(), "{unit:?} holds {}", machine.held.len());
            pieces.extend(machine.finish());
            assert!(pieces.iter().all(|p| p.text.chars().count() <= 320 + 2 * LOOK && !p.text.is_empty()), "{unit:?}");
        }
    }

    fn strip(text: &str) -> String {
        text.chars().filter(|c| !c.is_whitespace()).collect()
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_pieces(
            words in prop::collection::vec(prop_oneof![
                Just("Dr."), Just("3.5"), Just("etc."), Just("U.S."), Just("Hello"), Just("world,"), Just("it's"),
                Just("end."), Just("\"quote.\""), Just("what?!"), Just("…"), Just("...."), Just("\n"), Just("1."),
                Just("你好。"), Just("，"), Just("😀"), Just("(a)"), Just("—"), Just("x:y"), Just("no."), Just(" "),
            ], 0..60),
            glue in prop::collection::vec(prop_oneof![Just(" "), Just(""), Just("  ")], 60),
            cuts in prop::collection::vec(1usize..7, 1..40),
            max in 8usize..60,
        ) {
            let text: String = words.iter().zip(&glue).flat_map(|(w, g)| [*w, *g]).collect();
            let config = SentencesConfig { max_chars: max, clause_chars: max / 2, ..Default::default() };
            let mut one = Sentences::new(config);
            let mut expected = one.push(&text);
            expected.extend(one.finish());
            let mut machine = Sentences::new(config);
            let mut pieces = Vec::new();
            let all: Vec<char> = text.chars().collect();
            let (mut at, mut cuts) = (0, cuts.into_iter().cycle());
            while at < all.len() {
                let next = (at + cuts.next().unwrap_or(1)).min(all.len());
                pieces.extend(machine.push(&all[at..next].iter().collect::<String>()));
                at = next;
                prop_assert!(machine.held.chars().count() <= machine.bound());
            }
            pieces.extend(machine.finish());
            prop_assert_eq!(&pieces, &expected);
            let joined: String = pieces.iter().map(|p| strip(&p.text)).collect();
            prop_assert_eq!(joined, strip(&text));
            for piece in &pieces {
                prop_assert!(!piece.text.is_empty() && piece.text.trim() == piece.text);
                prop_assert!(piece.text.chars().count() <= max + 2 * LOOK);
            }
        }

        #[test]
        fn no_text_is_lost(text in "\\PC{0,200}", at in 0usize..200) {
            let mut machine = Sentences::new(SentencesConfig { max_chars: 20, ..Default::default() });
            let cut = text.char_indices().nth(at).map_or(text.len(), |(i, _)| i);
            let mut pieces = machine.push(&text[..cut]);
            pieces.extend(machine.push(&text[cut..]));
            pieces.extend(machine.finish());
            prop_assert_eq!(pieces.iter().map(|p| strip(&p.text)).collect::<String>(), strip(&text));
        }
    }
}
