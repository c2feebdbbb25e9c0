//! Any change of a right graph is read or refused, without a panic, and findings lie within their texts.

use proptest::prelude::*;

fn valid(text: &str) -> Result<(), TestCaseError> {
    let all = match super::check(text) {
        Ok((plan, w)) => {
            prop_assert!(!plan.svg().is_empty() && !plan.mermaid().is_empty());
            w
        }
        Err(d) => {
            prop_assert!(d.has_errors());
            d
        }
    };
    for d in all.iter() {
        for s in d.span.into_iter().chain(d.labels.iter().map(|(s, _)| *s)) {
            let source = all.sources().get(s.file).expect("a source");
            let (a, b) = (s.start as usize, s.end as usize);
            prop_assert!(source.text.get(a..b).is_some(), "{d:?}");
            let line = source.text[..a].matches('\n').count() + 1;
            prop_assert_eq!(line, s.line as usize);
            let column = source.text[..a].rsplit('\n').next().unwrap_or("").chars().count() + 1;
            prop_assert_eq!(column, s.column as usize);
        }
    }
    prop_assert!(all.is_empty() || !all.render(false).is_empty());
    let _ = all.to_json();
    Ok(())
}

const BITS: [&str; 24] = [
    "\n", " ", "\t", ":", "{", "}", "[", "]", ",", "&a ", "*a", "*short", "!!str ", "!x ", "'", "\"", "#", "- ", "? ",
    "---\n", "...\n", "<<: ", "é", "~",
];

proptest! {
    #[test]
    fn bytes_changed(at in prop::collection::vec((0usize..2000, 0usize..BITS.len(), 0usize..6), 1..5)) {
        let mut text = super::VOICE.to_owned();
        for (i, bit, cut) in at {
            let places: Vec<usize> = text.char_indices().map(|(i, _)| i).collect();
            let start = i % places.len();
            let end = (start + cut).min(places.len() - 1);
            text.replace_range(places[start]..places[end], BITS[bit]);
        }
        valid(&text)?;
    }
    #[test]
    fn lines_and_words_moved(a in 0usize..40, b in 0usize..40, words in any::<bool>()) {
        let sep = if words { ' ' } else { '\n' };
        let mut parts: Vec<&str> = super::VOICE.split(sep).collect();
        let n = parts.len();
        parts.swap((a * 7) % n, (b * 5) % n);
        if a % 3 == 0 { let p = parts[b % n]; parts.push(p); }
        valid(&parts.join(&sep.to_string()))?;
    }
    #[test]
    fn any_text_at_all(s in "[ -~\n\t\u{e9}\u{1F600}]{0,80}") {
        valid(&s)?;
    }
}
