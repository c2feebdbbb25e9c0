//! Writes text out as it is said: numbers, times, dates, money, units, symbols, addresses; markup and emoji go.
//!
//! Promises that the result has no digits of the ASCII set left and that a word which is none of these shapes stays
//! as it is. English only. Works on one piece at a time and keeps its punctuation, which makes the voice pause.

use super::markup::plain;
use super::numbers::{all_digits, digits, ordinal, year};
use super::shapes::{plain_number, shape, time};
use super::units::{abbreviation, before_number, is_wordlike, month, multiple, symbol, unit};
use super::web::address;

/// Text as it is said. Empty when nothing in it can be spoken.
///
/// ```
/// # use omni_flow_nodes::text::speakable;
/// assert_eq!(speakable("At **22:30** it was 3.5 km."), "At twenty two thirty it was three point five kilometers.");
/// ```
pub fn speakable(text: &str) -> String {
    let clean = plain(text);
    let words: Vec<&str> = clean.split_whitespace().collect();
    let mut out: Vec<String> = Vec::with_capacity(words.len());
    let mut at = 0;
    while at < words.len() {
        let (said, used) = say(&words, at);
        at += used;
        if said.chars().any(char::is_alphanumeric) {
            out.push(said);
        } else if let (Some(last), Some(mark)) = (out.last_mut(), said.chars().find(|c| ",.;:?!—…".contains(*c))) {
            // A mark that stands alone is a pause after the word before it.
            if last.ends_with(char::is_alphanumeric) {
                last.push(if mark == '—' { ',' } else { mark });
            }
        } else if let (Some(last), true) = (out.last_mut(), said.contains(['-', '–']))
            && last.ends_with(char::is_alphanumeric)
        {
            last.push(',');
        }
    }
    out.join(" ")
}

/// How the word at `at` is said, with the words after it that belong to it, and how many words that are.
fn say(words: &[&str], at: usize) -> (String, usize) {
    let (lead, core, tail) = split(words[at]);
    let next = |n: usize| words.get(at + n).map_or(("", "", ""), |w| split(w));
    let finish = |said: &str, tail: &str| format!("{lead}{said}{tail}");
    if core.is_empty() {
        // "+", "&" or "=" between words; otherwise a mark.
        return (symbol(words[at]).map_or_else(|| words[at].to_owned(), str::to_owned), 1);
    }
    let bare = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let digit_next = tail.trim_start_matches('.').is_empty() && bare(next(1).1);

    // Words.
    if let Some(said) = symbol(core) {
        return (finish(said, tail), 1);
    }
    let dotted = format!("{}{}", core.to_lowercase(), if tail.starts_with('.') { "." } else { "" });
    let rest = tail.strip_prefix('.').unwrap_or(tail);
    // The stop of an abbreviation at the end of the text is a full stop as well.
    let last = at + 1 == words.len();
    let end = if last && tail.starts_with('.') { tail } else { rest };
    if core == "St" && tail.starts_with('.') {
        let name = next(1).1.starts_with(|c: char| c.is_uppercase()) && rest.is_empty();
        return (finish(if name { "Saint" } else { "Street" }, if name { rest } else { end }), 1);
    }
    if let Some(said) = abbreviation(&dotted) {
        return (finish(said, end), 1);
    }
    if digit_next && let Some(said) = before_number(&dotted) {
        return (finish(said, rest), 1);
    }
    if let Some(name) = month(core).filter(|m| *m == core || tail.starts_with('.') || digit_next) {
        return month_day(name, lead, words, at);
    }
    if !core.bytes().any(|b| b.is_ascii_digit())
        && !core.contains(['.', '/', '@', '#', '&', '+', '=', '_', '½', '¼', '¾', '⅓', '⅔'])
    {
        return (words[at].to_owned(), 1);
    }
    if let Some(said) = address(core) {
        return (finish(&spoken(&said), tail), 1);
    }

    // A phone number in several words: (555) 123-4567.
    if lead == "(" && core.len() == 3 && all_digits(core) && tail == ")" {
        let (_, more, more_tail) = next(1);
        if more.len() == 8 && more.split_once('-').is_some_and(|(a, b)| a.len() == 3 && all_digits(a) && all_digits(b))
        {
            return (format!("{}, {}{more_tail}", digits(core), shape(more).unwrap_or_default()), 2);
        }
    }
    // A time and its half of the day: 3:05 pm.
    if tail.is_empty() && bare(core) && (core.contains(':') || core.len() <= 2) {
        let (_, half, half_tail) = next(1);
        let lower = half.to_ascii_lowercase();
        if (matches!(lower.as_str(), "am" | "pm" | "a.m" | "p.m") && half != "am"
            || (core.contains(':') && lower == "am"))
            && let Some(said) = time(&format!("{core}{lower}"))
        {
            let rest = if lower.contains('.') && at + 2 < words.len() {
                half_tail.strip_prefix('.').unwrap_or(half_tail)
            } else {
                half_tail
            };
            return (finish(&said, rest), 2);
        }
    }
    // A number and its unit, multiple or fraction in the next word.
    if tail.is_empty() && core.bytes().last().is_some_and(|b| b.is_ascii_digit()) {
        let (unit_lead, symbol, unit_tail) = next(1);
        if unit_lead.is_empty() {
            if unit(symbol).is_some()
                && !is_wordlike(symbol)
                && let Some(said) = shape(&format!("{core}{symbol}"))
            {
                return (finish(&said, unit_tail), 2);
            }
            if symbol.chars().count() == 1
                && super::units::money(symbol.chars().next().unwrap_or(' ')).is_some()
                && let Some(said) = shape(&format!("{core}{symbol}"))
            {
                return (finish(&said, unit_tail), 2);
            }
            if symbol.len() > 2
                && multiple(symbol).is_some()
                && let Some(said) =
                    core.strip_prefix(['$', '€', '£', '¥', '₹']).and_then(|_| shape(&money_of(core, symbol)))
            {
                return (finish(&said, unit_tail), 2);
            }
            if all_digits(core)
                && symbol
                    .split_once('/')
                    .is_some_and(|(a, b)| all_digits(a) && all_digits(b) && a.len() < 3 && b.len() < 3)
                && let (Some(whole), Some(part)) = (plain_number(core), shape(symbol))
            {
                return (finish(&format!("{whole} and {}", part.replacen("one half", "a half", 1)), unit_tail), 2);
            }
        }
    }
    (finish(&word(core), tail), 1)
}

/// The way a word with digits or marks in it is said.
fn word(core: &str) -> String {
    if let Some(said) = plain_number(core).or_else(|| shape(core)) {
        return said;
    }
    if let Some((stem, "s")) = core.rsplit_once(['\'', '’'])
        && let Some(said) = plain_number(stem)
    {
        return format!("{said}'s");
    }
    spoken(core)
}

/// Splits what no shape fits into letters, numbers and named marks.
fn spoken(core: &str) -> String {
    let mut out = String::with_capacity(core.len());
    let mut rest = core;
    while let Some(c) = rest.chars().next() {
        let run = if c.is_ascii_digit() {
            rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())
        } else {
            rest.find(|n: char| n.is_ascii_digit() || is_mark(n)).unwrap_or(rest.len()).max(c.len_utf8())
        };
        let (part, after) = rest.split_at(run);
        let before = out.chars().last();
        let said = if c.is_ascii_digit() {
            if part.len() > 9 { digits(part) } else { plain_number(part).unwrap_or_else(|| digits(part)) }
        } else {
            mark(part, before, after.chars().next()).map_or_else(|| part.to_owned(), str::to_owned)
        };
        // Letters and digits part; text and ordinary letters stay together.
        if (c.is_ascii_digit() || is_mark(c) || before.is_some_and(|b| b == '\u{1}'))
            && before.is_some_and(|b| !b.is_whitespace())
            && !said.starts_with([' ', ',', '.', '\'', '’', '-'])
        {
            out.push(' ');
        }
        out.push_str(&said);
        if (c.is_ascii_digit() || is_mark(c)) && after.starts_with(char::is_alphabetic) {
            out.push(' ');
        }
        rest = after;
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_mark(c: char) -> bool {
    matches!(c, '/' | '@' | '#' | '&' | '+' | '=' | '_' | '%' | '.' | '^' | '$' | '€' | '£')
}

/// A mark inside a word; a full stop stays a stop between letters ("U.S").
fn mark(text: &str, before: Option<char>, after: Option<char>) -> Option<&'static str> {
    let letters = before.is_some_and(char::is_alphabetic) && after.is_some_and(char::is_alphabetic);
    Some(match text {
        "/" | "_" => " ",
        "." if letters => " ",
        "." if after.is_some() => "point",
        "." => "",
        "@" => "at",
        "#" if before.is_some_and(char::is_alphabetic) => "sharp",
        "#" => "hashtag",
        "&" => "and",
        "+" => "plus",
        "=" => "equals",
        "%" => "percent",
        "^" => "to the power of",
        "$" => "dollar",
        "€" => "euro",
        "£" => "pound",
        _ => return None,
    })
}

/// `$5` and `million` as the one word that money is read from.
fn money_of(core: &str, multiple: &str) -> String {
    format!("{core}{multiple}")
}

/// A month, the day after it and the year after that.
fn month_day(name: &str, lead: &str, words: &[&str], at: usize) -> (String, usize) {
    let (_, core, tail) = split(words[at]);
    let abbreviated = core != name;
    let own_tail = if abbreviated { tail.strip_prefix('.').unwrap_or(tail) } else { tail };
    let day = |word: &str| -> Option<u64> {
        let figures = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        (figures.len() <= 2 && all_digits(figures))
            .then(|| figures.parse().ok())
            .flatten()
            .filter(|d| (1..=31).contains(d))
    };
    if own_tail.is_empty()
        && let Some(word) = words.get(at + 1)
    {
        let (_, core, day_tail) = split(word);
        if let Some(d) = day(core) {
            let mut said = format!("{lead}{name} {}{day_tail}", ordinal(d));
            if matches!(day_tail, "," | "")
                && let Some(word) = words.get(at + 2)
            {
                let (_, figures, year_tail) = split(word);
                if figures.len() == 4
                    && all_digits(figures)
                    && let Ok(y) = figures.parse::<u64>()
                    && (1000..3000).contains(&y)
                {
                    said.push_str(&format!(" {}{year_tail}", year(y)));
                    return (said, 3);
                }
            }
            return (said, 2);
        }
    }
    (format!("{lead}{name}{own_tail}"), 1)
}

/// Opening marks, the word, closing marks.
fn split(word: &str) -> (&str, &str, &str) {
    let core = word.trim_start_matches(['(', '[', '{', '"', '\'', '“', '‘', '«', '¿', '¡']);
    // "'90s" keeps its apostrophe: it belongs to the number, and the sound is the same.
    let lead = &word[..word.len() - core.len()];
    let inner = core.trim_end_matches(|c: char| {
        matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | ')' | ']' | '}' | '"' | '\'' | '”' | '’' | '»' | '…' | '—')
    });
    (lead, inner, &core[inner.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_written_out() {
        for (text, said) in [
            ("I have 3 cats and 1,234 dogs.", "I have three cats and one thousand two hundred thirty four dogs."),
            ("Pi is 3.14, not -2.", "Pi is three point one four, not minus two."),
            ("The 1st, 22nd and 113th.", "The first, twenty second and one hundred thirteenth."),
            ("In 1984 and 2005, 2024.", "In nineteen eighty four and two thousand five, twenty twenty four."),
            ("At 22:30 or 3:05 pm, 7am.", "At twenty two thirty or three oh five P M, seven A M."),
            ("Now 12:00 and 9:30 a.m. today", "Now twelve o'clock and nine thirty A M today"),
            ("On Jan. 5, 2024 we met.", "On January fifth, twenty twenty four we met."),
            ("March 3rd came; May I go?", "March third came; May I go?"),
            (
                "Due 2024-05-17 or 12/31/1999.",
                "Due May seventeenth, twenty twenty four or December thirty first, nineteen ninety nine.",
            ),
            ("$5.20, €3 and £1.01!", "five dollars and twenty cents, three euros and one pound and one penny!"),
            ("$5 million, $2.5M, 20€", "five million dollars, two point five million dollars, twenty euros"),
            ("50% of 5 kg at 3.5GHz", "fifty percent of five kilograms at three point five gigahertz"),
            (
                "1 km, 100 km/h, 20°C, 5 °F",
                "one kilometer, one hundred kilometers per hour, twenty degrees Celsius, five degrees Fahrenheit",
            ),
            ("Add 1/2 or 3/4 cup, 2 1/2 in all", "Add one half or three quarters cup, two and a half in all"),
            ("½ and 2½", "one half and two and a half"),
            ("Pages 5-10, 1990–1995.", "Pages five to ten, nineteen ninety to nineteen ninety five."),
            ("Call 555-123-4567 now", "Call five five five, one two three, four five six seven now"),
            ("Call (555) 123-4567.", "Call five five five, one two three, four five six seven."),
            (
                "Dr. Smith vs. Mr. Jones, e.g. here, etc.",
                "Doctor Smith versus Mister Jones, for example here, et cetera.",
            ),
            ("St. Paul on Main St. today", "Saint Paul on Main Street today"),
            ("R&D: you & me @ home + 2 = 3", "R and D: you and me at home plus two equals three"),
            ("See https://example.com/a or me@x.org.", "See example dot com slash a or me at x dot org."),
            ("**Hi** 😀, `x_1`!", "Hi, x one!"),
            ("the 1990s and '80s", "the nineteen nineties and 'eighties"),
            ("GPT4, B2B and v1.2", "GPT four, B two B and version one point two"),
            ("Version 1.2.3 of 16GB", "Version one point two point three of sixteen gigabytes"),
            ("No. 5 and #7, no. Yes", "number five and number seven, no. Yes"),
            ("Well - yes — no", "Well, yes, no"),
            ("1920x1080 and 2x", "one thousand nine hundred twenty by one thousand eighty and two times"),
            ("1984's best and/or 007", "nineteen eighty four's best and or zero zero seven"),
            ("Use C++ or C#.", "Use C plus plus or C sharp."),
            ("I am 5 am I", "I am five am I"),
            ("- one\n- two", "one, two"),
            ("😀", ""),
            ("***", ""),
            ("", ""),
        ] {
            assert_eq!(speakable(text), said, "{text}");
        }
    }

    #[test]
    fn ordinary_text_stays() {
        for text in ["It's a well-known fact, isn't it?", "“So,” she said (softly)…", "Naïve Łódź 你好 Привет."]
        {
            assert_eq!(speakable(text), text);
        }
    }

    #[test]
    fn a_long_line_is_read_in_linear_time() {
        let said = speakable(&"9".repeat(1 << 20));
        assert!(said.starts_with("nine nine"));
        assert!(!speakable(&"1/2-3.4:5,6".repeat(50_000)).is_empty());
    }

    proptest! {
        #[test]
        fn no_digit_is_left(text in "[0-9a-zA-Z $€%.,:/+#&@°x'’½()-]{0,40}") {
            let said = speakable(&text);
            prop_assert!(!said.bytes().any(|b| b.is_ascii_digit()), "{text:?} → {said:?}");
            let letters = |s: &str| s.chars().filter(|c| c.is_ascii_alphanumeric()).count();
            prop_assert!(letters(&text) == 0 || !said.is_empty(), "{text:?} → {said:?}");
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,60}") {
            let _ = speakable(&text);
        }
    }
}
