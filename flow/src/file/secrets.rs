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
    File,
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
        "file" if !name.is_empty() => Some(Reference::File),
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
