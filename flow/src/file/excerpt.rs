//! The lines of a graph file that a finding shows, in the form that the renderer takes.
//!
//! Promises that a finding stays short whatever it is about: a line of more than [`WIDE`] columns is cut to windows around
//! the places that are marked in it, with `…` where something was left out, and marks still stand under their text (in
//! columns of a terminal, so wide characters and tabs count as they are seen). Line and column numbers are those of the
//! file. Control characters are shown as `�`, so that a file cannot steer the terminal of its reader.

use std::collections::BTreeMap;
use std::ops::Range;

use codespan_reporting::files::{Error, Files};
use unicode_width::UnicodeWidthChar as _;

use super::span::{Sources, Span};

/// Columns of the longest line that is shown whole.
const WIDE: usize = 160;
/// Columns kept before a marked place, of the place itself, and after it.
const BEFORE: usize = 40;
const MARKED: usize = 50;
const AFTER: usize = 24;
/// Columns of a tab at most, as the renderer counts them.
const TAB: usize = 4;
/// Longest message, hint or name in characters.
const LONG: usize = 400;

/// The lines around some places.
pub(super) struct Excerpt<'a>(BTreeMap<usize, Part<'a>>);

/// Those of one source.
struct Part<'a> {
    name: &'a str,
    text: String,
    /// Places in `text` with their columns in the file.
    columns: Vec<(usize, usize)>,
    /// By index in the file: where the line stands in `text`, with its line feed.
    lines: BTreeMap<usize, Range<usize>>,
}

impl<'a> Excerpt<'a> {
    /// The excerpt for `spans`, and where each of them stands in its source's excerpt.
    pub fn new(sources: &'a Sources, spans: &[Span]) -> (Self, Vec<Range<usize>>) {
        let mut at = vec![0..0; spans.len()];
        let mut parts: BTreeMap<usize, Part<'a>> = BTreeMap::new();
        let mut order: Vec<usize> = (0..spans.len()).collect();
        order.sort_by_key(|i| (spans[*i].file, spans[*i].line, spans[*i].start));
        for same in order.chunk_by(|a, b| (spans[*a].file, spans[*a].line) == (spans[*b].file, spans[*b].line)) {
            let first = spans[same[0]];
            let Some(source) = sources.get(first.file) else { continue };
            let text: &str = &source.text;
            let part = parts.entry(first.file as usize).or_insert_with(|| Part::new(&source.name));
            let index = (first.line as usize).saturating_sub(1);
            let start = text.floor_char_boundary(first.start as usize);
            let begin = text[..start].rfind('\n').map_or(0, |i| i + 1);
            let (line, rest) = text[begin..].split_once('\n').map_or((&text[begin..], None), |(l, r)| (l, Some(r)));
            let line = line.trim_end_matches('\r');
            let within = |byte: u32| line.floor_char_boundary((byte as usize).saturating_sub(begin));
            let marks: Vec<Range<usize>> =
                same.iter().map(|i| within(spans[*i].start)..within(spans[*i].end)).collect();
            let places = part.add(index, line, &marks);
            for (i, place) in same.iter().zip(places) {
                part.columns.push((place.start, spans[*i].column as usize));
                at[*i] = place;
            }
            // The renderer shows the line between two that are marked.
            if let Some(next) = rest.filter(|_| !part.lines.contains_key(&(index + 1))) {
                let marked = order.iter().any(|i| spans[*i].file == first.file && spans[*i].line == first.line + 1);
                if !marked {
                    let next = next.split('\n').next().unwrap_or("");
                    part.add(index + 1, next.trim_end_matches('\r'), &[]);
                }
            }
        }
        (Self(parts), at)
    }

    fn part(&self, id: usize) -> Result<&Part<'a>, Error> {
        self.0.get(&id).ok_or(Error::FileMissing)
    }
}

impl<'a> Part<'a> {
    fn new(name: &'a str) -> Self {
        Self { name, text: String::new(), columns: Vec::new(), lines: BTreeMap::new() }
    }
    /// Appends a line, cut if it is long; gives the places of `marks` in the excerpt.
    fn add(&mut self, index: usize, line: &str, marks: &[Range<usize>]) -> Vec<Range<usize>> {
        let begin = self.text.len();
        let mut places = vec![begin..begin; marks.len()];
        let (kept, mut at) = (windows(line, marks), 0);
        for window in &kept {
            if window.start > at {
                self.text.push('…');
            }
            at = window.end;
            let base = self.text.len();
            let shown = |byte: usize| base + plain(&line[window.start..byte.clamp(window.start, window.end)]).len();
            for (mark, place) in marks.iter().zip(&mut places) {
                if (window.start..=window.end).contains(&mark.start) {
                    *place = shown(mark.start)..shown(mark.end);
                }
            }
            self.text.push_str(&plain(&line[window.clone()]));
        }
        if at < line.len() {
            self.text.push('…');
        }
        self.text.push('\n');
        self.lines.insert(index, begin..self.text.len());
        places
    }
}

impl<'a> Files<'a> for Excerpt<'_> {
    type FileId = usize;
    type Name = &'a str;
    type Source = &'a str;

    fn name(&'a self, id: usize) -> Result<&'a str, Error> {
        Ok(self.part(id)?.name)
    }
    fn source(&'a self, id: usize) -> Result<&'a str, Error> {
        Ok(&self.part(id)?.text)
    }
    fn line_index(&'a self, id: usize, byte: usize) -> Result<usize, Error> {
        let part = self.part(id)?;
        let line = part.lines.iter().find(|(_, r)| r.contains(&byte));
        line.map(|(i, _)| *i).ok_or(Error::IndexTooLarge { given: byte, max: part.text.len() })
    }
    fn line_range(&'a self, id: usize, line: usize) -> Result<Range<usize>, Error> {
        let lines = &self.part(id)?.lines;
        let max = lines.last_key_value().map_or(0, |(i, _)| *i);
        lines.get(&line).cloned().ok_or(Error::LineTooLarge { given: line, max })
    }
    fn column_number(&'a self, id: usize, _: usize, byte: usize) -> Result<usize, Error> {
        Ok(self.part(id)?.columns.iter().find(|(at, _)| *at == byte).map_or(1, |(_, column)| *column))
    }
}

/// What of a line is shown, as ranges of bytes in order: all of it, or windows around the marks, or its beginning.
fn windows(line: &str, marks: &[Range<usize>]) -> Vec<Range<usize>> {
    let whole = ahead(line, 0, WIDE);
    if whole == line.len() {
        return std::iter::once(0..whole).collect();
    }
    let around = |mark: &Range<usize>| {
        let end = ahead(line, mark.start, MARKED).min(mark.end.max(mark.start));
        back(line, mark.start, BEFORE)..ahead(line, end, AFTER)
    };
    let mut all: Vec<Range<usize>> = marks.iter().map(around).collect();
    all.sort_by_key(|w| w.start);
    let mut kept: Vec<Range<usize>> = Vec::new();
    for w in all {
        match kept.last_mut().filter(|last| w.start <= last.end) {
            Some(last) => last.end = last.end.max(w.end),
            None => kept.push(w),
        }
    }
    if kept.is_empty() {
        kept.push(0..ahead(line, 0, WIDE));
    }
    kept
}

/// The byte that is `columns` columns after `from`, or the end. What has no width of its own stays with what it marks.
fn ahead(line: &str, from: usize, columns: usize) -> usize {
    let (mut wide, mut at) = (0, from);
    for c in line[from..].chars().take(TAB * columns) {
        wide += width(c);
        if wide > columns {
            return at;
        }
        at += c.len_utf8();
    }
    at
}

/// The byte that is `columns` columns before `from`, or 0; never within a character and its marks.
fn back(line: &str, from: usize, columns: usize) -> usize {
    let (mut wide, mut at, mut whole) = (0, from, from);
    for c in line[..from].chars().rev().take(TAB * columns) {
        wide += width(c);
        if wide > columns {
            break;
        }
        at -= c.len_utf8();
        if width(c) > 0 {
            whole = at;
        }
    }
    whole
}

fn width(c: char) -> usize {
    if c == '\t' { TAB } else { c.width().unwrap_or(1) }
}

/// Text without characters that steer a terminal.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// A message with its middle left out if it is longer than any reader wants.
pub(super) fn brief(text: String) -> String {
    let mut marks = text.char_indices().map(|(i, _)| i).skip(LONG);
    let Some(_) = marks.next() else { return text };
    let head = text.char_indices().nth(LONG * 3 / 4).map_or(0, |(i, _)| i);
    let tail = text.char_indices().rev().nth(LONG / 4 - 1).map_or(0, |(i, _)| i);
    format!("{} … {}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::super::span::{Index, Layer};
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str, wanted: &[&str]) -> (Vec<String>, Vec<String>) {
        let mut sources = Sources::default();
        sources.add("g", text, Layer::File);
        let index = Index::new(text);
        let span = |w: &&str| {
            let at = text.find(*w).unwrap() as u32;
            index.span(0, at, at + w.len() as u32)
        };
        let spans: Vec<Span> = wanted.iter().map(span).collect();
        let (excerpt, at) = Excerpt::new(&sources, &spans);
        let part = excerpt.part(0).unwrap();
        for (span, place) in spans.iter().zip(&at) {
            let line = excerpt.line_index(0, place.start).unwrap();
            assert_eq!(line + 1, span.line as usize);
            assert_eq!(excerpt.column_number(0, line, place.start).unwrap(), span.column as usize);
        }
        (part.text.lines().map(str::to_owned).collect(), at.into_iter().map(|r| part.text[r].to_owned()).collect())
    }

    #[test]
    fn short_lines_are_shown_whole() {
        let (lines, marked) = of("a: 1\nb: 2\nc: 3\n", &["2"]);
        assert_eq!((lines, marked), (vec!["b: 2".to_owned(), "c: 3".to_owned()], vec!["2".to_owned()]));
    }
    #[test]
    fn a_long_line_is_cut_around_what_is_marked() {
        let text = format!("{}HERE{}\n{}", "x".repeat(500_000), "y".repeat(500_000), "z".repeat(500_000));
        let (lines, marked) = of(&text, &["HERE"]);
        assert_eq!(lines[0], format!("…{}HERE{}…", "x".repeat(40), "y".repeat(24)));
        assert_eq!(lines[1], format!("{}…", "z".repeat(160)));
        assert_eq!(marked, ["HERE"]);
    }
    #[test]
    fn far_places_of_one_line_have_windows_of_their_own() {
        let text = format!("FIRST{}LAST", "-".repeat(1000));
        let (lines, marked) = of(&text, &["LAST", "FIRST"]);
        assert_eq!(lines[0], format!("FIRST{}…{}LAST", "-".repeat(24), "-".repeat(40)));
        assert_eq!(marked, ["LAST", "FIRST"]);
    }
    #[test]
    fn wide_characters_count_two_and_marks_none() {
        let text = format!("{}HERE{}", "語".repeat(200), "e\u{301}".repeat(200));
        let (lines, marked) = of(&text, &["HERE"]);
        assert_eq!(lines[0], format!("…{}HERE{}…", "語".repeat(20), "e\u{301}".repeat(24)));
        assert_eq!(marked, ["HERE"]);
    }
    #[test]
    fn a_long_place_is_marked_at_its_beginning_and_controls_are_not_printed() {
        let text = format!("key: {}", "v".repeat(300));
        let (lines, marked) = of(&text, &[&"v".repeat(300)]);
        assert_eq!(lines[0].chars().count(), 5 + 50 + 24 + 1);
        assert_eq!(marked[0].len(), 74, "as far as it is shown");
        assert_eq!(of("a: \u{1b}[31mred\r\n", &["red"]).0, ["a: \u{fffd}[31mred", ""]);
    }
    #[test]
    fn a_message_keeps_its_ends() {
        assert_eq!(brief("short".into()), "short");
        let long = brief(format!("{}END", "é".repeat(1 << 20)));
        assert!(long.starts_with("éé") && long.ends_with("END") && long.chars().count() == LONG + 3, "{long}");
    }

    proptest! {
        #[test]
        fn every_place_of_every_line_is_found_again(
            line in "(\t|[ -~]|[é語😀\u{301}\u{7}]){0,400}", a in 0usize..400, b in 0usize..400, c in 0usize..400
        ) {
            let at = |n: usize| line.floor_char_boundary(n.min(line.len()));
            let marks = [at(a)..at(a.max(b)), at(c)..at(c)];
            let mut part = Part::new("x");
            let places = part.add(0, &line, &marks);
            let most = TAB * (2 * (BEFORE + MARKED + AFTER) + WIDE);
            prop_assert!(part.text.chars().count() <= most, "{}", part.text);
            for (mark, place) in marks.iter().zip(places) {
                let shown = &part.text[place.start..place.end];
                prop_assert!(plain(&line[mark.clone()]).starts_with(shown), "{shown:?} of {:?}", &line[mark.clone()]);
                let before = plain(&line[..mark.start]);
                let tail: String = part.text[..place.start].chars().rev().take_while(|c| *c != '…').collect();
                prop_assert!(before.ends_with(&tail.chars().rev().collect::<String>()));
            }
        }
    }
}
