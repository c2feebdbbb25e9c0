//! Small values that a session and a response share: modalities, a voice, a token limit.

use serde_json::Value;

use crate::realtime::wire::code::Refusal;
use crate::realtime::wire::fields::Fields;

/// What an answer is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Modality {
    /// Text, or the text of what is spoken.
    Text,
    /// Speech.
    Audio,
}

impl Modality {
    /// The string on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Modality::Text => "text",
            Modality::Audio => "audio",
        }
    }
}

/// A list of modalities: not empty, each once.
///
/// # Errors
/// Anything else.
pub fn list(f: &mut Fields, name: &str) -> Result<Option<Vec<Modality>>, Refusal> {
    let Some(given) = f.list(name)? else { return Ok(None) };
    let mut all = Vec::new();
    for one in &given {
        let one = match one.as_str() {
            Some("text") => Modality::Text,
            Some("audio") => Modality::Audio,
            _ => return Err(Refusal::bad(f.path(name), "modalities are \"text\" and \"audio\"")),
        };
        if !all.contains(&one) {
            all.push(one);
        }
    }
    if all.is_empty() {
        return Err(Refusal::bad(f.path(name), "at least one of \"text\" and \"audio\" must be asked for"));
    }
    Ok(Some(all))
}

/// A voice: its name, or an object with its `id`.
///
/// # Errors
/// Another type.
pub fn voice(f: &mut Fields, name: &str) -> Result<Option<String>, Refusal> {
    match f.value(name) {
        None => Ok(None),
        Some(Value::String(voice)) => Ok(Some(voice)),
        Some(Value::Object(map)) => Fields::at(f.path(name), map).need_string("id").map(Some),
        Some(_) => Err(Refusal::bad(f.path(name), "a voice is a name, or an object with an id")),
    }
}

/// The token limit under the first of its three names that stands there: absent, `Some(None)` for no limit, or a number.
///
/// # Errors
/// Neither an integer of at least 1, `"inf"` nor `null`.
pub fn max_tokens(f: &mut Fields) -> Result<Option<Option<u64>>, Refusal> {
    let mut first = None;
    for name in ["max_response_output_tokens", "max_output_tokens", "max_tokens"] {
        let Some(value) = f.raw(name) else { continue };
        let limit = match &value {
            Value::Null => None,
            Value::String(s) if s == "inf" => None,
            other => match other.as_u64().filter(|n| *n > 0) {
                Some(limit) => Some(limit),
                None => return Err(Refusal::bad(f.path(name), "a token limit is an integer of at least 1 or \"inf\"")),
            },
        };
        if first.is_none() {
            first = Some(limit);
        }
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(value: Value) -> Fields {
        match value {
            Value::Object(map) => Fields::top(map),
            _ => panic!("not an object"),
        }
    }

    #[test]
    fn the_first_token_limit_wins_and_null_is_no_limit() {
        let read = |v| max_tokens(&mut fields(v));
        assert_eq!(read(json!({})), Ok(None));
        assert_eq!(read(json!({"max_output_tokens": null})), Ok(Some(None)));
        assert_eq!(read(json!({"max_tokens": 5, "max_output_tokens": "inf"})), Ok(Some(None)));
        assert_eq!(read(json!({"max_tokens": 5, "max_response_output_tokens": 7})), Ok(Some(Some(7))));
        for wrong in [json!(0), json!(-1), json!(1.5), json!("many"), json!(true)] {
            assert!(read(json!({ "max_tokens": wrong })).is_err());
        }
    }

    #[test]
    fn a_list_of_modalities_holds_each_once() {
        let got = list(&mut fields(json!({"m": ["audio", "audio", "text"]})), "m");
        assert_eq!(got, Ok(Some(vec![Modality::Audio, Modality::Text])));
        assert!(list(&mut fields(json!({"m": []})), "m").is_err());
        assert!(list(&mut fields(json!({"m": "audio"})), "m").is_err());
    }
}
