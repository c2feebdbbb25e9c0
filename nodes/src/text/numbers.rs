//! Numbers in English words: cardinals, ordinals, years, decimals, single digits.
//!
//! Promises words for every string of digits, however long; what has no common name is read digit by digit.

const ONES: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
const BIG: [(u64, &str); 5] = [
    (1_000_000_000_000_000, "quadrillion"),
    (1_000_000_000_000, "trillion"),
    (1_000_000_000, "billion"),
    (1_000_000, "million"),
    (1_000, "thousand"),
];

/// A whole number.
pub(super) fn cardinal(n: u64) -> String {
    for (size, name) in BIG {
        if n >= size {
            let rest = n % size;
            let head = format!("{} {name}", cardinal(n / size));
            return if rest == 0 { head } else { format!("{head} {}", cardinal(rest)) };
        }
    }
    if n >= 100 {
        let head = format!("{} hundred", ONES[(n / 100) as usize]);
        return if n.is_multiple_of(100) { head } else { format!("{head} {}", cardinal(n % 100)) };
    }
    if n >= 20 {
        let head = TENS[(n / 10) as usize];
        return if n.is_multiple_of(10) { head.into() } else { format!("{head} {}", ONES[(n % 10) as usize]) };
    }
    ONES[n as usize].into()
}

/// First, twenty third, hundredth.
pub(super) fn ordinal(n: u64) -> String {
    let words = cardinal(n);
    let (head, last) = words.rsplit_once(' ').map_or(("", words.as_str()), |(h, l)| (h, l));
    let last = match last {
        "one" => "first".into(),
        "two" => "second".into(),
        "three" => "third".into(),
        "five" => "fifth".into(),
        "eight" => "eighth".into(),
        "nine" => "ninth".into(),
        "twelve" => "twelfth".into(),
        l => l.strip_suffix('y').map_or_else(|| format!("{l}th"), |stem| format!("{stem}ieth")),
    };
    if head.is_empty() { last } else { format!("{head} {last}") }
}

/// A year from 1000 to 2999 as it is said: nineteen eighty four, two thousand five, twenty ten.
pub(super) fn year(n: u64) -> String {
    let (high, low) = (n / 100, n % 100);
    match (high, low) {
        (_, 0) if n.is_multiple_of(1000) => cardinal(n),
        (_, 0) => format!("{} hundred", cardinal(high)),
        (20, 1..=9) => format!("two thousand {}", cardinal(low)),
        (_, 1..=9) => format!("{} oh {}", cardinal(high), cardinal(low)),
        _ => format!("{} {}", cardinal(high), cardinal(low)),
    }
}

/// Digits one by one; other characters are left out.
pub(super) fn digits(text: &str) -> String {
    let words = text.chars().filter_map(|c| c.to_digit(10)).map(|d| ONES[d as usize]);
    words.collect::<Vec<_>>().join(" ")
}

/// A number without sign: `1,234`, `3.50`, `.5`. `None` if the text is something else.
pub(super) fn number(text: &str) -> Option<String> {
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(w, f)| (w, Some(f)));
    let whole = match fraction {
        Some(f) if f.is_empty() || !all_digits(f) => return None,
        Some(_) if whole.is_empty() => "zero".to_owned(),
        _ => integer(whole)?,
    };
    Some(fraction.map_or(whole.clone(), |f| format!("{whole} point {}", digits(f))))
}

/// A whole number with or without commas between thousands.
pub(super) fn integer(text: &str) -> Option<String> {
    let plain = ungrouped(text)?;
    if plain.len() > 1 && plain.starts_with('0') {
        return Some(digits(&plain));
    }
    match plain.parse::<u64>() {
        Ok(n) if n < 1_000_000_000_000_000_000 => Some(cardinal(n)),
        _ => Some(digits(&plain)),
    }
}

/// The digits of a whole number; `None` for wrong grouping or anything else.
pub(super) fn ungrouped(text: &str) -> Option<String> {
    let mut groups = text.split(',');
    let first = groups.next().filter(|g| all_digits(g))?;
    let mut plain = first.to_owned();
    for group in groups {
        if first.len() > 3 || group.len() != 3 || !all_digits(group) {
            return None;
        }
        plain.push_str(group);
    }
    Some(plain)
}

/// Whether the text is one or more ASCII digits.
pub(super) fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// A denominator: half, third, quarter, fifths.
pub(super) fn parts(n: u64, many: bool) -> String {
    match (n, many) {
        (2, false) => "half".into(),
        (2, true) => "halves".into(),
        (4, false) => "quarter".into(),
        (4, true) => "quarters".into(),
        (_, false) => ordinal(n),
        (_, true) => format!("{}s", ordinal(n)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_numbers() {
        for (n, words) in [
            (0, "zero"),
            (13, "thirteen"),
            (40, "forty"),
            (99, "ninety nine"),
            (100, "one hundred"),
            (342, "three hundred forty two"),
            (1_000_005, "one million five"),
            (2_000_000_000, "two billion"),
        ] {
            assert_eq!(cardinal(n), words);
        }
        let names = [1, 2, 3, 5, 12, 20, 21, 100].map(ordinal);
        assert_eq!(
            names,
            ["first", "second", "third", "fifth", "twelfth", "twentieth", "twenty first", "one hundredth"]
        );
        let years = [1984, 2000, 2005, 2010, 1900, 1905].map(year);
        assert_eq!(
            years,
            [
                "nineteen eighty four",
                "two thousand",
                "two thousand five",
                "twenty ten",
                "nineteen hundred",
                "nineteen oh five"
            ]
        );
        assert_eq!(cardinal(u64::MAX).split(' ').next(), Some("eighteen"));
    }

    #[test]
    fn strings_of_digits() {
        assert_eq!(number("1,234.50").as_deref(), Some("one thousand two hundred thirty four point five zero"));
        assert_eq!(number(".5").as_deref(), Some("zero point five"));
        assert_eq!(number("007").as_deref(), Some("zero zero seven"));
        assert_eq!(number(&"9".repeat(30)).map(|w| w.split(' ').count()), Some(30));
        for bad in ["", ".", "5.", "1,23", "1234,567", "1.2.3", "a", "1,", "１"] {
            assert_eq!(number(bad), None, "{bad}");
        }
    }
}
