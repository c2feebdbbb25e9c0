//! Where text that arrives in pieces can be cut into what is spoken at once.

/// How text is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Granularity {
    /// Not before its end.
    #[default]
    None,
    /// After each sentence.
    Sentence,
    /// After each clause.
    Clause,
}

/// Takes the first finished unit from `text`. A mark ends a unit where white space follows, so that `3.14` stays whole and
/// the next piece may still decide.
pub(super) fn unit(text: &mut String, granularity: Granularity) -> Option<String> {
    let ends = |c: char| match granularity {
        Granularity::None => false,
        Granularity::Sentence => matches!(c, '.' | '!' | '?' | '…'),
        Granularity::Clause => matches!(c, '.' | '!' | '?' | '…' | ',' | ';' | ':'),
    };
    // These end a sentence whatever follows: their scripts have no spaces.
    let alone = |c: char| match granularity {
        Granularity::None => false,
        Granularity::Sentence => matches!(c, '。' | '！' | '？' | '\n'),
        Granularity::Clause => matches!(c, '。' | '！' | '？' | '\n' | '、' | '，' | '；'),
    };
    let (mut ended, mut said) = (false, false);
    let mut cut = None;
    for (i, c) in text.char_indices() {
        if ended && c.is_whitespace() && said {
            cut = Some(i);
            break;
        }
        // Closing quotes and brackets belong to the sentence before.
        ended = ends(c) || (ended && matches!(c, '"' | '\'' | ')' | '”' | '’' | '»'));
        said |= c.is_alphanumeric();
        if alone(c) && said {
            cut = Some(i + c.len_utf8());
            break;
        }
    }
    let rest = text.split_off(cut?);
    let unit = std::mem::replace(text, rest).trim().to_owned();
    Some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(text: &str, granularity: Granularity) -> (Vec<String>, String) {
        // In pieces of one character, as slowly as text can come.
        let (mut waits, mut got) = (String::new(), Vec::new());
        for c in text.chars() {
            waits.push(c);
            got.extend(std::iter::from_fn(|| unit(&mut waits, granularity)));
        }
        (got, waits)
    }

    #[test]
    fn units_end_where_one_can_breathe() {
        let text = "Pi is 3.14, or so. \"Yes!\" he said。もう一度。... Well";
        let (sentences, rest) = units(text, Granularity::Sentence);
        assert_eq!(sentences, ["Pi is 3.14, or so.", "\"Yes!\"", "he said。", "もう一度。"]);
        assert_eq!(rest, "... Well");
        let (clauses, _) = units(text, Granularity::Clause);
        assert_eq!(clauses[..2], ["Pi is 3.14,", "or so."]);
        assert_eq!(units(text, Granularity::None), (vec![], text.to_owned()));
    }
}
