//! Addresses of the web and of mail in words.

/// How an address is said, or `None` if the word is none.
pub(super) fn address(word: &str) -> Option<String> {
    let (rest, scheme) = match word.split_once("://") {
        Some((scheme, rest)) if scheme.bytes().all(|b| b.is_ascii_alphabetic()) => (rest, true),
        _ => (word, false),
    };
    if rest.is_empty() || rest.len() > 500 {
        return None;
    }
    if !scheme && !looks_like_host(rest) {
        return None;
    }
    // Queries are not worth hearing.
    let shown = rest.split(['?', '#']).next().unwrap_or(rest).trim_end_matches('/');
    let shown = shown.strip_prefix("www.").unwrap_or(shown);
    let mut out = String::new();
    for c in shown.chars() {
        match c {
            '.' => out.push_str(" dot "),
            '@' => out.push_str(" at "),
            '/' => out.push_str(" slash "),
            '-' => out.push_str(" dash "),
            '_' => out.push_str(" underscore "),
            ':' => out.push_str(" colon "),
            '~' => out.push_str(" tilde "),
            '%' | '=' | '&' | '+' => out.push(' '),
            c => out.push(c),
        }
    }
    let words: Vec<String> = out.split_whitespace().map(say_part).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// `name.tld`, perhaps with a path or a mailbox.
fn looks_like_host(text: &str) -> bool {
    const ENDINGS: &[&str] = &[
        "com", "org", "net", "edu", "gov", "io", "ai", "dev", "app", "co", "uk", "de", "fr", "it", "es", "eu", "us",
        "ca", "ch", "nl", "se", "no", "jp", "cn", "in", "au", "br", "info", "me", "tv", "xyz", "rs",
    ];
    let host = text.split(['/', '?', '#']).next().unwrap_or("");
    let (mailbox, host) = host.split_once('@').map_or((None, host), |(m, h)| (Some(m), h));
    let host = host.split(':').next().unwrap_or("");
    let mut labels = host.split('.').rev();
    let ending = labels.next().unwrap_or("");
    let rest: Vec<&str> = labels.collect();
    let label = |l: &&str| !l.is_empty() && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let known = mailbox.is_some() || ENDINGS.contains(&ending.to_ascii_lowercase().as_str());
    // "end.It" is two sentences without a space, "U.S" an abbreviation.
    let capital = mailbox.is_none() && ending.starts_with(|c: char| c.is_ascii_uppercase());
    let letters = ending.len() >= 2 && ending.bytes().all(|b| b.is_ascii_alphabetic());
    known
        && letters
        && !capital
        && mailbox != Some("")
        && !rest.is_empty()
        && rest.iter().all(label)
        && rest.iter().any(|l| (l.len() > 1 || mailbox.is_some()) && l.bytes().any(|b| b.is_ascii_alphabetic()))
}

fn say_part(part: &str) -> String {
    if super::numbers::all_digits(part) && part.len() > 4 { super::numbers::digits(part) } else { part.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_said_and_words_are_not() {
        for (word, said) in [
            ("https://www.example.com/docs/?q=1", "example dot com slash docs"),
            ("example.org", "example dot org"),
            ("anna-b@mail.example.com", "anna dash b at mail dot example dot com"),
            ("http://localhost:8080", "localhost colon 8080"),
        ] {
            assert_eq!(address(word).as_deref(), Some(said), "{word}");
        }
        for word in ["e.g", "3.5", "U.S", "end.It", "@name", "a@b", "hello", "://", "1.io"] {
            assert_eq!(address(word), None, "{word}");
        }
    }
}
