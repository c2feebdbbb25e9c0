//! Tool calls put together from the pieces in which a server streams them.
//!
//! A piece says which call it belongs to by its index, or, from servers that leave it out or say 0 to all, by its id.
//! Each piece of arguments is told as it comes, once the call has a name; a call is over when the answer is.

use std::collections::VecDeque;

use serde_json::Value;

use super::super::{call::arguments, event::CallEvent};

/// Most calls of one answer, and most bytes of their arguments together.
const MOST: usize = 128;
const MOST_BYTES: usize = 1 << 20;

/// The calls of one answer.
#[derive(Debug, Default)]
pub(super) struct CallAssembler {
    calls: Vec<Call>,
}

#[derive(Debug, Default)]
struct Call {
    key: Option<u64>,
    id: Option<String>,
    name: Option<String>,
    arguments: String,
    /// Bytes of the arguments that have been told.
    told: usize,
}

impl CallAssembler {
    /// Takes `delta.tool_calls` of one event.
    ///
    /// # Errors
    /// In words, if there is too much of it or it is no list.
    pub(super) fn push(&mut self, pieces: &Value, out: &mut VecDeque<CallEvent>) -> Result<(), String> {
        if pieces.is_null() {
            return Ok(());
        }
        let pieces = pieces.as_array().ok_or("`tool_calls` is no list")?;
        for piece in pieces {
            let given = |path: &str| piece.pointer(path).and_then(Value::as_str).filter(|s| !s.is_empty());
            let index = self.place(piece.get("index").and_then(Value::as_u64), given("/id"));
            if index >= MOST {
                return Err(format!("more than {MOST} tool calls in one answer"));
            }
            if index == self.calls.len() {
                self.calls.push(Call { key: piece.get("index").and_then(Value::as_u64), ..Call::default() });
            }
            let call = &mut self.calls[index];
            call.id = call.id.take().or_else(|| given("/id").map(str::to_owned));
            call.name = call.name.take().or_else(|| given("/function/name").map(str::to_owned));
            match piece.pointer("/function/arguments") {
                Some(Value::String(text)) => call.arguments.push_str(text),
                // Some servers give the object itself.
                Some(object @ Value::Object(_)) => call.arguments.push_str(&object.to_string()),
                _ => {}
            }
            if self.calls.iter().map(|c| c.arguments.len()).sum::<usize>() > MOST_BYTES {
                return Err(format!("more than {MOST_BYTES} bytes of tool calls in one answer"));
            }
            let call = &mut self.calls[index];
            if call.name.is_some() && call.told < call.arguments.len() {
                let delta = call.arguments[call.told..].to_owned();
                call.told = call.arguments.len();
                out.push_back(CallEvent { arguments_delta: Some(delta), ..call.event(index) });
            }
        }
        Ok(())
    }

    /// The answer is over: the end of each call.
    pub(super) fn finish(&mut self, out: &mut VecDeque<CallEvent>) {
        for (index, call) in std::mem::take(&mut self.calls).into_iter().enumerate() {
            let mut event = CallEvent { done: true, ..call.event(index) };
            match arguments(&call.arguments) {
                Some(whole) if call.name.is_some() => event.arguments = Some(whole),
                whole => {
                    let why = if whole.is_some() { "it names no tool" } else { "its arguments are no JSON object" };
                    event.error = Some(why.to_owned());
                    event.arguments = Some(call.arguments);
                }
            }
            out.push_back(event);
        }
    }

    /// Which call a piece belongs to; one more than there are begins a new one.
    fn place(&self, key: Option<u64>, id: Option<&str>) -> usize {
        let other = |c: &Call| id.is_some_and(|id| c.id.as_deref().is_some_and(|own| own != id));
        let found = match key {
            Some(_) => self.calls.iter().rposition(|c| c.key == key),
            None if id.is_some() => self.calls.iter().rposition(|c| c.id.as_deref() == id),
            None => self.calls.len().checked_sub(1),
        };
        found.filter(|i| !other(&self.calls[*i])).unwrap_or(self.calls.len())
    }
}

impl Call {
    fn event(&self, index: usize) -> CallEvent {
        CallEvent { index, call_id: self.id.clone(), name: self.name.clone(), ..CallEvent::default() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What comes of these events, and the ends of the calls as (index, id, name, arguments, error).
    fn run(events: &[Value]) -> Vec<CallEvent> {
        let (mut all, mut out) = (CallAssembler::default(), VecDeque::new());
        events.iter().for_each(|e| all.push(e, &mut out).unwrap());
        all.finish(&mut out);
        out.into()
    }

    fn ends(events: &[Value]) -> Vec<(usize, String, String, String)> {
        let text = |t: Option<String>| t.unwrap_or_default();
        run(events)
            .into_iter()
            .filter(|e| e.done && e.error.is_none())
            .map(|e| (e.index, text(e.call_id), text(e.name), text(e.arguments)))
            .collect()
    }

    fn end(index: usize, id: &str, name: &str, arguments: &str) -> (usize, String, String, String) {
        (index, id.into(), name.into(), arguments.into())
    }

    #[test]
    fn pieces_become_calls() {
        let events = [
            json!([{ "index": 0, "id": "a", "type": "function", "function": { "name": "f", "arguments": "" } }]),
            json!([{ "index": 0, "function": { "arguments": "{\"x\"" } }]),
            json!([{ "index": 1, "id": "b", "function": { "name": "g", "arguments": "{}" } },
                   { "index": 0, "function": { "arguments": ":1}" } }]),
        ];
        assert_eq!(ends(&events), [end(0, "a", "f", "{\"x\":1}"), end(1, "b", "g", "{}")]);
        let told: Vec<(usize, String)> =
            run(&events).into_iter().filter_map(|e| Some((e.index, e.arguments_delta?))).collect();
        assert_eq!(told, [(0, "{\"x\"".into()), (1, "{}".into()), (0, ":1}".into())]);
    }

    #[test]
    fn servers_that_count_badly_are_understood() {
        let whole = |index: Value, id: Value, name: &str| json!([{ "index": index, "id": id, "function": { "name": name, "arguments": "{}" } }]);
        // The same index for all, no index, the object itself, no arguments, no id.
        let zero = [whole(json!(0), json!("a"), "f"), whole(json!(0), json!("b"), "g")];
        assert_eq!(ends(&zero), [end(0, "a", "f", "{}"), end(1, "b", "g", "{}")]);
        let none = [whole(Value::Null, json!("a"), "f"), whole(Value::Null, json!("b"), "g")];
        assert_eq!(ends(&none), [end(0, "a", "f", "{}"), end(1, "b", "g", "{}")]);
        let object = json!([{ "id": "a", "function": { "name": "f", "arguments": { "x": 1 } } }]);
        assert_eq!(ends(&[object]), [end(0, "a", "f", "{\"x\":1}")]);
        assert_eq!(ends(&[json!([{ "function": { "name": "f" } }])]), [end(0, "", "f", "{}")]);
        assert_eq!(ends(&[Value::Null]), []);
    }

    #[test]
    fn what_is_no_call_is_told_with_what_came() {
        let last = |e: Value| run(&[e]).pop().unwrap();
        let nameless = last(json!([{ "index": 0, "id": "a", "function": { "arguments": "{\"x\":1}" } }]));
        assert_eq!((nameless.name, nameless.arguments.as_deref()), (None, Some("{\"x\":1}")));
        assert!(nameless.error.unwrap().contains("names no tool"));
        let cut = last(json!([{ "index": 0, "id": "a", "function": { "name": "f", "arguments": "{\"x\"" } }]));
        assert_eq!((cut.name.as_deref(), cut.arguments.as_deref()), (Some("f"), Some("{\"x\"")));
        assert!(cut.error.unwrap().contains("no JSON object"));
        assert!(CallAssembler::default().push(&json!(3), &mut VecDeque::new()).is_err());
    }

    #[test]
    fn it_holds_no_more_than_it_may() {
        let (mut all, mut out) = (CallAssembler::default(), VecDeque::new());
        let piece = |i: usize, text: &str| json!([{ "index": i, "function": { "name": "f", "arguments": text } }]);
        for i in 0..MOST {
            all.push(&piece(i, "{}"), &mut out).unwrap();
        }
        assert!(all.push(&piece(MOST, "{}"), &mut out).is_err());
        let mut all = CallAssembler::default();
        assert!(all.push(&piece(0, &"x".repeat(MOST_BYTES)), &mut out).is_ok());
        assert!(all.push(&piece(0, "x"), &mut out).is_err());
    }
}
