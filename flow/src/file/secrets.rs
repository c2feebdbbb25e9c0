//! Secrets: refused as literals, referred to as `${env:NAME}`, never shown.

use super::span::Sources;
use super::tree::{Tree, Value, kebab};

/// True if values under this key are secrets.
pub(crate) fn is_secret(key: &str) -> bool {
    let key = kebab(&key.to_lowercase());
    const WORDS: [&str; 8] =
        ["api-key", "api-keys", "token", "secret", "password", "auth-token", "access-token", "private-key"];
    WORDS.iter().any(|w| key == *w || key.strip_suffix(w).is_some_and(|r| r.ends_with('-') && *w != "token"))
}

/// What a value refers to.
pub(crate) enum Reference<'a> {
    /// `${env:NAME}`.
    Env(&'a str),
    /// `${file:PATH}`.
    File(&'a str),
}

/// The reference that a text is, if it is one as a whole.
pub(crate) fn reference(text: &str) -> Option<Reference<'_>> {
    let inner = text.strip_prefix("${")?.strip_suffix('}')?;
    let (what, name) = inner.split_once(':')?;
    let name = name.trim();
    match what.trim() {
        "env" if !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => {
            Some(Reference::Env(name))
        }
        "file" if !name.is_empty() => Some(Reference::File(name)),
        _ => None,
    }
}

/// Masks all literal secrets, and all values of `env` maps, in the texts that messages show.
pub(crate) fn mask(tree: &Tree, sources: &mut Sources) {
    match &tree.value {
        Value::Scalar(_) => {}
        Value::Seq(items) => items.iter().for_each(|t| mask(t, sources)),
        Value::Map(entries) => {
            for e in entries {
                if is_secret(&e.key) || e.key == "env" {
                    mask_all(&e.value, sources);
                } else {
                    mask(&e.value, sources);
                }
            }
        }
    }
}

fn mask_all(tree: &Tree, sources: &mut Sources) {
    match &tree.value {
        Value::Scalar(s) if reference(&s.text).is_none() && !tree.is_null() => sources.mask(tree.span),
        Value::Scalar(_) => {}
        Value::Seq(items) => items.iter().for_each(|t| mask_all(t, sources)),
        Value::Map(entries) => entries.iter().for_each(|e| mask_all(&e.value, sources)),
    }
}

/// The text with everything starred out that may be a secret, whatever can be made of the rest: for texts that cannot be
/// parsed, and for values that a second one replaces. A star per byte, so that all places still hold.
pub(crate) fn veil(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Below a secret key without a value on its line: the key's indentation.
    let mut below: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        if below.is_some_and(|at| !line.trim().is_empty() && (indent > at || line.trim_start().starts_with("- "))) {
            let start = if line.trim_start().starts_with("- ") { indent + 2 } else { indent };
            out.push_str(&line[..start]);
            stars(&line[start..], &mut out);
            continue;
        }
        if !line.trim().is_empty() {
            below = None;
        }
        if veil_line(line, &mut out) {
            below = Some(indent);
        }
    }
    out
}

/// One line; true if its secret stands on the lines below it.
fn veil_line(line: &str, out: &mut String) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let (mut done, mut at) = (0, 0);
    while let Some(sep) = line[at..].find([':', '=']).map(|i| at + i) {
        at = sep + 1;
        let before = line[done..sep].trim_end().trim_end_matches(['"', '\'']);
        let key = &before
            [before.rfind(|c| !word(c)).map_or(0, |i| i + before[i..].chars().next().map_or(1, char::len_utf8))..];
        if line[sep..].starts_with("://") {
            // A password in a URL.
            let rest = &line[sep + 3..];
            let end = rest.find(['/', ' ', '"', '\'', '\n']).unwrap_or(rest.len());
            if let Some(host) = rest[..end].rfind('@') {
                out.push_str(&line[done..sep + 3]);
                stars(&rest[..host], out);
                (done, at) = (sep + 3 + host, sep + 3 + host);
            }
            continue;
        }
        if !is_secret(key) {
            continue;
        }
        let rest = &line[at..];
        let value = rest.trim_start();
        let start = at + (rest.len() - value.len());
        if value.is_empty() || value.starts_with(['|', '>', '#']) {
            out.push_str(&line[done..]);
            return true;
        }
        let len = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => value[1..].find(quote).map_or(value.len(), |i| i + 2),
            Some('[' | '{') => value.len(),
            _ => [", ", " #", " }", "}\n", "}}"].iter().filter_map(|e| value.find(e)).min().unwrap_or(value.len()),
        };
        out.push_str(&line[done..start]);
        if value.starts_with('[') {
            value[..len].split_inclusive(['[', ',', ']']).for_each(|item| veil_value(item, out));
        } else {
            veil_value(&value[..len], out);
        }
        (done, at) = (start + len, start + len);
    }
    out.push_str(&line[done..]);
    false
}

/// A reference is told and what is around a value; the value is not.
fn veil_value(text: &str, out: &mut String) {
    let around = |c: char| matches!(c, '[' | ']' | ',' | ' ' | '"' | '\'' | '\r' | '\n');
    let bare = text.trim_matches(around);
    if reference(bare).is_some() || ["null", "~", ""].contains(&bare) {
        return out.push_str(text);
    }
    let start = text.len() - text.trim_start_matches(around).len();
    out.push_str(&text[..start]);
    stars(bare, out);
    out.push_str(&text[start + bare.len()..]);
}

fn stars(text: &str, out: &mut String) {
    for c in text.chars() {
        let shown = if matches!(c, '\n' | '\r' | '"' | '\'') { c } else { '*' };
        out.extend(std::iter::repeat_n(shown, c.len_utf8()));
    }
}

/// A value as it may be shown: what stands under a secret key or in an `env` map, and passwords in URLs, are stars.
pub(crate) fn shown(key: &str, value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value as Json;
    let hidden = key.split('.').any(|k| is_secret(k) || k == "env");
    match value {
        Json::Array(items) => Json::Array(items.into_iter().map(|v| shown(key, v)).collect()),
        Json::Object(map) => Json::Object(
            map.into_iter().map(|(k, v)| (k.clone(), shown(&if hidden { key.to_owned() } else { k }, v))).collect(),
        ),
        Json::String(text) if hidden && reference(&text).is_none() => Json::String("***".to_owned()),
        Json::String(text) if text.contains("://") => Json::String(veil(&text)),
        Json::Number(_) | Json::Bool(_) if hidden => Json::String("***".to_owned()),
        other => other,
    }
}

/// A copy with each `${env:NAME}` replaced by the variable's value; what is not set goes to `missing`.
pub(crate) fn resolve(
    t: &Tree,
    env: &std::collections::BTreeMap<String, String>,
    missing: &mut Vec<(super::Span, String)>,
) -> Tree {
    let value = match &t.value {
        Value::Scalar(s) => match reference(&s.text) {
            Some(Reference::Env(name)) => match env.get(name) {
                Some(v) => return Tree::scalar(v.clone(), true, t.span),
                None => {
                    missing.push((t.span, name.to_owned()));
                    return t.clone();
                }
            },
            _ => return t.clone(),
        },
        Value::Seq(items) => Value::Seq(items.iter().map(|i| resolve(i, env, missing)).collect()),
        Value::Map(m) => {
            Value::Map(m.iter().map(|e| super::Entry { value: resolve(&e.value, env, missing), ..e.clone() }).collect())
        }
    };
    Tree { value, span: t.span }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_may_be_a_secret_is_starred_out_of_any_text() {
        for (text, veiled) in [
            ("api-key: sk-1", "api-key: ****"),
            ("  api_key: sk-1: foo\n", "  api_key: *********\n"),
            ("api-key: \"sk-1", "api-key: \"****"),
            ("{ api-key: sk-1, model: m }", "{ api-key: ****, model: m }"),
            ("{\"l\":{\"api-key\":\"sk-1\",}}", "{\"l\":{\"api-key\":\"****\",}}"),
            ("nodes.l.api-key=sk-1", "nodes.l.api-key=****"),
            ("api-key: ${env:KEY}", "api-key: ${env:KEY}"),
            ("api-key: sk-1 # mine", "api-key: **** # mine"),
            ("password: |\n  a b\nmodel: m", "password: |\n  ***\nmodel: m"),
            ("api-keys:\n- sk-1\n- sk-2\nx: y", "api-keys:\n- ****\n- ****\nx: y"),
            ("api-keys: [sk-1, \"${env:K}\", sk-2]", "api-keys: [****, \"${env:K}\", ****]"),
            ("url: http://me:pw@host/x?a=b", "url: http://*****@host/x?a=b"),
            ("model: m\ntokens: 4", "model: m\ntokens: 4"),
        ] {
            assert_eq!(veil(text), veiled);
        }
    }
    #[test]
    fn values_are_shown_without_secrets() {
        let json = serde_json::json!({"api-key": "sk-1", "base-url": "http://u:p@h", "n": 1, "keys": [{"token": 7}],
            "env": {"A": "b", "C": "${env:C}"}});
        let shown_ = serde_json::json!({"api-key": "***", "base-url": "http://***@h", "n": 1, "keys": [{"token": "***"}],
            "env": {"A": "***", "C": "${env:C}"}});
        assert_eq!(shown("nodes.l", json), shown_);
        assert_eq!(shown("nodes.l.api-key", "sk-1".into()), "***");
        assert_eq!(shown("nodes.l.env.A", "b".into()), "***");
        assert_eq!(shown("nodes.l.api-key", "${env:K}".into()), "${env:K}");
    }
    proptest! {
        #[test]
        fn places_hold_in_any_text(text in "(api-key|token|:|=|://|@| |\n|\"|'|ä|\\||-|x|\\$\\{env:A\\}){0,30}") {
            let veiled = veil(&text);
            prop_assert_eq!(veiled.len(), text.len());
            prop_assert_eq!(veiled.matches('\n').count(), text.matches('\n').count());
            for (i, c) in veiled.char_indices().filter(|(_, c)| *c != '*') {
                prop_assert_eq!(text[i..].chars().next(), Some(c));
            }
        }
    }
}
