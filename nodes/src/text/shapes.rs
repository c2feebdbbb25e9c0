//! Shapes of digits and marks in one word that mean something as a whole: times, dates, phone numbers, ranges,
//! fractions, money, versions. Each function says how its shape is said, or `None` if the word has another.

use super::numbers::{all_digits, cardinal, digits, integer, number, ordinal, parts, ungrouped, year};
use super::units::{money, month_name, multiple, unit};

/// Any of the shapes, in the order in which they exclude each other.
pub(super) fn shape(core: &str) -> Option<String> {
    // Shapes are short; a long word of digits is read as a number elsewhere.
    if core.len() > 64 {
        return None;
    }
    signed(core)
        .or_else(|| time(core))
        .or_else(|| date(core))
        .or_else(|| phone(core))
        .or_else(|| range(core))
        .or_else(|| fraction(core))
        .or_else(|| amount(core))
        .or_else(|| nth(core))
        .or_else(|| decade(core))
        .or_else(|| version(core))
        .or_else(|| measure(core))
}

/// A plain number, read as a year if it looks like one.
pub(super) fn plain_number(core: &str) -> Option<String> {
    as_year(core).or_else(|| number(core))
}

/// A number between 1100 and 2099 written in four digits.
fn as_year(core: &str) -> Option<String> {
    if core.len() != 4 || !all_digits(core) {
        return None;
    }
    core.parse().ok().filter(|n| (1100..2100).contains(n)).map(year)
}

/// `-5`, `−3.2°C`, `+7`, `-$20`, `~30`.
fn signed(core: &str) -> Option<String> {
    let mut chars = core.chars();
    let word = match chars.next()? {
        '-' | '−' | '–' => "minus",
        '+' => "plus",
        '±' => "plus or minus",
        '~' | '≈' => "about",
        '<' => "less than",
        '>' => "more than",
        '≤' => "at most",
        '≥' => "at least",
        '#' | '№' => "number",
        '×' => "times",
        _ => return None,
    };
    let rest = chars.as_str();
    if word == "plus" && rest.len() >= 8 && all_digits(rest) {
        return Some(format!("plus {}", digits(rest)));
    }
    let first = rest.chars().next()?;
    if !(first.is_ascii_digit() || first == '.' || money(first).is_some()) {
        return None;
    }
    // "+1-555-123-4567" is one phone number.
    let said = number(rest).or_else(|| shape(rest))?;
    Some(format!("{word} {said}"))
}

/// `22:30`, `3:05pm`, `7am`, `12:00:30`.
pub(super) fn time(core: &str) -> Option<String> {
    let lower = core.to_ascii_lowercase();
    let (clock, half) = ["am", "a.m", "a.m."]
        .iter()
        .find_map(|s| lower.strip_suffix(s).map(|c| (c, " A M")))
        .or_else(|| ["pm", "p.m", "p.m."].iter().find_map(|s| lower.strip_suffix(s).map(|c| (c, " P M"))))
        .unwrap_or((lower.as_str(), ""));
    let mut fields = clock.split(':');
    let hour = fields.next().filter(|h| h.len() <= 2 && all_digits(h))?.parse::<u64>().ok().filter(|h| *h < 25)?;
    let rest: Vec<u64> = fields
        .map(|f| (f.len() == 2 && all_digits(f)).then(|| f.parse::<u64>().ok()).flatten().filter(|n| *n < 60))
        .collect::<Option<_>>()?;
    let said = match (rest.as_slice(), half.is_empty()) {
        ([], false) => cardinal(hour),
        ([0], true) if hour == 0 => "midnight".into(),
        ([0], true) if hour <= 12 => format!("{} o'clock", cardinal(hour)),
        ([0], true) => format!("{} hundred", cardinal(hour)),
        ([0], false) => cardinal(hour),
        ([m], _) if *m < 10 => format!("{} oh {}", cardinal(hour), cardinal(*m)),
        ([m], _) => format!("{} {}", cardinal(hour), cardinal(*m)),
        ([m, s], _) => format!("{} {} and {} seconds", cardinal(hour), cardinal(*m), cardinal(*s)),
        _ => return None,
    };
    Some(format!("{said}{half}"))
}

/// `2024-05-17`, `5/17/2024` (month first, unless it cannot be), `17.5.2024`.
fn date(core: &str) -> Option<String> {
    let separator = ['-', '/', '.'].into_iter().find(|c| core.matches(*c).count() == 2)?;
    let fields: Vec<&str> = core.split(separator).collect();
    if !fields.iter().all(|f| all_digits(f) && f.len() <= 4) {
        return None;
    }
    let n: Vec<u64> = fields.iter().map(|f| f.parse().ok()).collect::<Option<_>>()?;
    let (y, m, d) = match (separator, fields[0].len(), fields[2].len()) {
        ('-' | '/', 4, _) => (n[0], n[1], n[2]),
        ('/', _, 4) if n[0] <= 12 => (n[2], n[0], n[1]),
        ('/' | '.' | '-', _, 4) => (n[2], n[1], n[0]),
        _ => return None,
    };
    if !(1..=31).contains(&d) || !(1000..3000).contains(&y) {
        return None;
    }
    Some(format!("{} {}, {}", month_name(m)?, ordinal(d), year(y)))
}

/// `555-123-4567`, `123-4567`, `1.800.555.0199`: groups of two to four digits, seven or more in all.
fn phone(core: &str) -> Option<String> {
    let separator = ['-', '.'].into_iter().find(|c| core.contains(*c))?;
    let groups: Vec<&str> = core.split(separator).collect();
    let total: usize = groups.iter().map(|g| g.len()).sum();
    let (first, rest) = groups.split_first()?;
    let fine =
        all_digits(first) && first.len() <= 4 && rest.iter().all(|g| all_digits(g) && (2..=4).contains(&g.len()));
    // Two groups of four are years.
    let enough = (7..=15).contains(&total) && (groups.len() > 2 || (first.len() == 3 && separator == '-'));
    (fine && enough).then(|| groups.iter().map(|g| digits(g)).collect::<Vec<_>>().join(", "))
}

/// `5-10`, `1990–1995`, `3.5-4%`.
fn range(core: &str) -> Option<String> {
    let (a, b) = core.split_once(['-', '–', '—'])?;
    if !a.starts_with(|c: char| c.is_ascii_digit() || money(c).is_some()) {
        return None;
    }
    if let (Some(a), Some(b)) = (as_year(a), as_year(b)) {
        return Some(format!("{a} to {b}"));
    }
    let end = |t: &str| number(t).or_else(|| amount(t)).or_else(|| time(t)).or_else(|| measure(t));
    Some(format!("{} to {}", end(a)?, end(b)?))
}

/// `1/2`, `3/4`, `24/7`, `½`, `2½`.
fn fraction(core: &str) -> Option<String> {
    const SIGNS: [(char, &str); 8] = [
        ('½', "one half"),
        ('⅓', "one third"),
        ('⅔', "two thirds"),
        ('¼', "one quarter"),
        ('¾', "three quarters"),
        ('⅕', "one fifth"),
        ('⅛', "one eighth"),
        ('⅜', "three eighths"),
    ];
    if let Some((sign, said)) = SIGNS.iter().find(|(s, _)| core.ends_with(*s)) {
        let whole = core.strip_suffix(*sign)?;
        return if whole.is_empty() {
            Some((*said).into())
        } else {
            Some(format!("{} and {}", number(whole)?, said.replacen("one half", "a half", 1)))
        };
    }
    let (a, b) = core.split_once('/')?;
    let (top, bottom) = (integer(a)?, integer(b)?);
    let (n, d): (u64, u64) = (a.parse().ok()?, b.parse().ok()?);
    if n == 24 && d == 7 {
        return Some("twenty four seven".into());
    }
    Some(if n > 0 && n < d && (2..=20).contains(&d) {
        format!("{top} {}", parts(d, n != 1))
    } else {
        format!("{top} over {bottom}")
    })
}

/// `$5.20`, `€3M`, `5€`, `£1`.
fn amount(core: &str) -> Option<String> {
    let first = core.chars().next()?;
    let last = core.chars().last()?;
    let (symbol, body) = match (money(first), money(last)) {
        (Some(_), _) => (first, &core[first.len_utf8()..]),
        (_, Some(_)) => (last, &core[..core.len() - last.len_utf8()]),
        _ => return None,
    };
    let (one, many, cent, cents) = money(symbol)?;
    let figures = body.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let suffix = &body[figures.len()..];
    if !suffix.is_empty() {
        return Some(format!("{} {} {many}", number(figures)?, multiple(suffix)?));
    }
    match figures.split_once('.') {
        Some((whole, part)) if part.len() == 2 && all_digits(part) => {
            let whole_n: u64 = if whole.is_empty() { 0 } else { ungrouped(whole)?.parse().ok()? };
            let part_n: u64 = part.parse().ok()?;
            let head = format!("{} {}", cardinal(whole_n), if whole_n == 1 { one } else { many });
            let tail = format!("{} {}", cardinal(part_n), if part_n == 1 { cent } else { cents });
            Some(match (whole_n, part_n) {
                (_, 0) => head,
                (0, _) => tail,
                _ => format!("{head} and {tail}"),
            })
        }
        _ => Some(format!("{} {}", number(figures)?, if figures == "1" { one } else { many })),
    }
}

/// `1st`, `22nd`.
fn nth(core: &str) -> Option<String> {
    let lower = core.to_ascii_lowercase();
    let figures = ["st", "nd", "rd", "th"].iter().find_map(|s| lower.strip_suffix(s))?;
    ungrouped(figures)?.parse().ok().filter(|n| *n < 1_000_000_000).map(ordinal)
}

/// `1990s`, `'90s`, `80s`.
fn decade(core: &str) -> Option<String> {
    let figures = core.strip_suffix("'s").or_else(|| core.strip_suffix('s'))?.trim_start_matches(['\'', '’']);
    let n: u64 = all_digits(figures).then(|| figures.parse().ok()).flatten()?;
    let fine =
        n.is_multiple_of(10) && ((figures.len() == 2 && n >= 20) || (figures.len() == 4 && (1100..2100).contains(&n)));
    let said = if figures.len() == 2 { cardinal(n) } else { year(n) };
    fine.then(|| said.strip_suffix('y').map_or_else(|| format!("{said}s"), |stem| format!("{stem}ies")))
}

/// `1.2.3`, `v2.0`: figures with points between.
fn version(core: &str) -> Option<String> {
    let (v, figures) = core.strip_prefix(['v', 'V']).map_or(("", core), |f| ("version ", f));
    let fields: Vec<&str> = figures.split('.').collect();
    let fine = fields.iter().all(|f| all_digits(f)) && (fields.len() > 2 || !v.is_empty());
    fine.then(|| {
        let said: Vec<String> = fields.iter().filter_map(|f| integer(f)).collect();
        format!("{v}{}", said.join(" point "))
    })
}

/// `5kg`, `3.5GHz`, `50%`, `20°C`, `1920x1080`, `10k`.
fn measure(core: &str) -> Option<String> {
    let end = core.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',')))?;
    let (figures, symbol) = core.split_at(end);
    let said = number(figures)?;
    if let Some((one, many)) = unit(symbol) {
        return Some(format!("{said} {}", if figures == "1" { one } else { many }));
    }
    if let Some(rest) = symbol.strip_prefix(['x', '×']).filter(|r| all_digits(r)) {
        return Some(format!("{said} by {}", number(rest)?));
    }
    if let Some(rest) =
        symbol.strip_prefix(['+', '=', '*', '^']).filter(|r| r.starts_with(|c: char| c.is_ascii_digit()))
    {
        let word = match symbol.as_bytes()[0] {
            b'+' => "plus",
            b'=' => "equals",
            b'*' => "times",
            _ => "to the power of",
        };
        return Some(format!("{said} {word} {}", number(rest).or_else(|| measure(rest))?));
    }
    if symbol == "+" {
        return Some(format!("{said} plus"));
    }
    multiple(symbol).filter(|_| matches!(symbol, "k" | "K" | "M" | "bn")).map(|m| format!("{said} {m}"))
}
