//! Takes away what a language model writes for the eye: Markdown, HTML tags, emoji.
//!
//! Promises to keep every word: link texts, code and table cells stay, only their marks go. Works on one piece of
//! text at a time, so that an unclosed mark is dropped by itself.

/// Text without markup.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            continue;
        }
        // Rules and the line under a table's head.
        if line.len() >= 3 && line.chars().all(|c| matches!(c, '-' | '*' | '_' | '=' | '|' | ':' | ' ')) {
            continue;
        }
        let line = line.trim_start_matches('>').trim_start();
        let heads = line.trim_start_matches('#');
        let line = if heads.len() < line.len() && heads.starts_with(' ') { heads.trim() } else { line };
        let line =
            ["- [ ] ", "- [x] ", "- ", "* ", "+ ", "• "].iter().find_map(|b| line.strip_prefix(b)).unwrap_or(line);
        let start = out.len();
        inline(line, &mut out);
        let clean = out[start..].trim().to_owned();
        out.truncate(start);
        if clean.is_empty() {
            continue;
        }
        if !out.is_empty() {
            // A line is a pause.
            out.push_str(if out.ends_with(['.', '!', '?', ':', ',', ';']) { " " } else { ", " });
        }
        out.push_str(&clean);
    }
    out
}

fn inline(line: &str, out: &mut String) {
    let table = line.starts_with('|') || (line.ends_with('|') && line.len() > 1);
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        if let Some((text, after)) = link(rest) {
            inline(text, out);
            rest = after;
            continue;
        }
        if let Some(after) = tag(rest) {
            out.push(' ');
            rest = after;
            continue;
        }
        let before = out.chars().last();
        rest = &rest[c.len_utf8()..];
        let next = rest.chars().next();
        match c {
            '`' => {}
            '*' | '~' if next == Some(c) || before == Some(c) => rest = rest.trim_start_matches(c),
            // "2 * 3" and "2*3" are products, "~5" is about five.
            '*' if is_digit(before) && is_digit(next) => out.push_str(" times "),
            '*' if before == Some(' ') && next == Some(' ') => out.push_str("times"),
            '*' => {}
            '_' if before.is_some_and(char::is_alphanumeric) && next.is_some_and(char::is_alphanumeric) => {
                out.push(' ')
            }
            '_' => {}
            '|' if table => out.push(','),
            c if is_picture(c) => out.push(' '),
            c => out.push(c),
        }
    }
}

fn is_digit(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_digit())
}

/// `[text](target)` or `![text](target)` at the start: its text and what follows.
fn link(text: &str) -> Option<(&str, &str)> {
    let body = text.strip_prefix("![").or_else(|| text.strip_prefix('['))?;
    let (label, after) = body.split_at(body.find(['[', ']'])?);
    let target = after.strip_prefix("](")?;
    // Links of any use are short; the bound keeps a line of brackets linear.
    let end = target[..target.floor_char_boundary(512)].find(')')?;
    let after = &target[end + 1..];
    Some((label, after))
}

/// An HTML tag at the start: what follows it.
fn tag(text: &str) -> Option<&str> {
    let body = text.strip_prefix('<')?;
    let name = body.strip_prefix('/').unwrap_or(body);
    let (inside, after) = body.split_at(body[..body.floor_char_boundary(200)].find('>')?);
    let after = &after[1..];
    let fine = name.starts_with(|c: char| c.is_ascii_alphabetic()) && !inside.contains(['<', '@']);
    (fine && !inside.contains("://")).then_some(after)
}

/// Emoji, dingbats, and the invisible characters that join them.
pub(super) fn is_picture(c: char) -> bool {
    matches!(c,
        '\u{1f000}'..='\u{1faff}' | '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{20e3}' | '\u{e0020}'..='\u{e007f}'
        | '\u{2300}'..='\u{23ff}' | '\u{25a0}'..='\u{25ff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_go_and_words_stay() {
        for (marked, text) in [
            ("**Bold** and *soft* and `code_name`.", "Bold and soft and code name."),
            ("# Title\n\nText", "Title, Text"),
            ("- one\n- two.\n* three", "one, two. three"),
            ("See [the docs](https://a.b/c) now", "See the docs now"),
            ("![A cat](cat.png)", "A cat"),
            ("```rust\nlet x = 1;\n```", "let x = 1;"),
            ("Hi 😀👍🏽! ✅ Done ❤️", "Hi   !   Done"),
            ("<b>big</b> a < b", "big  a < b"),
            ("2 * 3 and 2*3", "2 times 3 and 2 times 3"),
            ("> quoted\n---\nend", "quoted, end"),
            ("| a | b |\n|---|---|\n| 1 | 2 |", ", a , b ,,  1 , 2 ,"),
            ("[unclosed (x", "[unclosed (x"),
            ("~~gone~~ ~5", "gone ~5"),
        ] {
            let got = plain(marked);
            let squeeze = |s: &str| s.split_whitespace().collect::<Vec<_>>().join(" ");
            if marked.starts_with('|') {
                assert!(["a", "b", "1", "2"].iter().all(|w| got.contains(w)) && !got.contains('|'), "{got}");
            } else {
                assert_eq!(squeeze(&got), squeeze(text), "{marked}");
            }
        }
    }
}
