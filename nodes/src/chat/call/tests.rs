//! Calls out of texts as models write them, and out of texts that only look alike, cut anywhere.

use proptest::prelude::*;

use super::*;

/// What comes out of `text` given in these parts, with neighbouring texts as one.
fn parse(format: CallFormat, parts: &[&str]) -> Vec<Parsed> {
    let mut parser = CallParser::new(format);
    let mut all: Vec<Parsed> = Vec::new();
    let mut found: Vec<Parsed> = parts.iter().flat_map(|p| parser.push(p)).collect();
    found.extend(parser.finish());
    for p in found {
        match (all.last_mut(), p) {
            (_, Parsed::Text(t)) if t.is_empty() => panic!("an empty text"),
            (Some(Parsed::Text(before)), Parsed::Text(t)) => before.push_str(&t),
            (_, p) => all.push(p),
        }
    }
    all
}

fn hermes(text: &str) -> Vec<Parsed> {
    parse(CallFormat::Hermes, &[text])
}

fn llama(text: &str) -> Vec<Parsed> {
    parse(CallFormat::Llama3, &[text])
}

fn text(t: &str) -> Parsed {
    Parsed::Text(t.into())
}

fn call(name: &str, arguments: &str) -> Parsed {
    Parsed::Call { name: name.into(), arguments: arguments.into() }
}

fn bad(p: &[Parsed]) -> &Malformed {
    match p {
        [Parsed::Malformed(m)] => m,
        other => panic!("{other:?}"),
    }
}

#[test]
fn calls_between_tags() {
    let one = "<tool_call>\n{\"name\": \"light\", \"arguments\": {\"room\": \"hall\", \"at\": 1.50}}\n</tool_call>";
    let light = call("light", "{\"room\": \"hall\", \"at\": 1.50}");
    assert_eq!(hermes(one), std::slice::from_ref(&light));
    assert_eq!(hermes(&format!("Sure. {one}\n{one} \n")), [text("Sure. "), light.clone(), light.clone()]);
    assert_eq!(hermes(&format!("\n\n{one} Done.")), [light.clone(), text(" Done.")]);
    // A list, several in a row, without arguments, arguments as text, without an end.
    let two = [call("a", "{}"), call("b", "{\"x\":1}")];
    for written in [
        r#"<tool_call>[{"name":"a"},{"name":"b","arguments":{"x":1}}]</tool_call>"#,
        r#"<tool_call>{"name":"a","arguments":null} {"name":"b","arguments":"{\"x\":1}"}</tool_call>"#,
        r#"<tool_call>{"name":"a","arguments":""}</tool_call><tool_call>{"name":"b","parameters":{"x":1}}"#,
        r#"<tool_call>{"name":"a"}<tool_call>{"name":"b","arguments":{"x":1}}</tool_call>"#,
        r#"<tool_call>{"function":"a"}; {"type":"function","function":{"name":"b","arguments":{"x":1}}}</tool_call>"#,
    ] {
        assert_eq!(hermes(written), two, "{written}");
    }
}

#[test]
fn calls_of_llama() {
    let light = call("light", "{\"room\": \"}{\\\"\"}");
    let written = r#"{"name": "light", "parameters": {"room": "}{\""}}"#;
    assert_eq!(llama(written), std::slice::from_ref(&light));
    assert_eq!(llama(&format!(" \n{written}; {written}\n")), [light.clone(), light.clone()]);
    assert_eq!(llama(&format!("<|python_tag|>{written}; {written}")), [light.clone(), light.clone()]);
    assert_eq!(llama(&format!("<tool_call>{written}</tool_call>")), std::slice::from_ref(&light));
    // Only an answer that begins so.
    assert_eq!(llama(&format!("So: {written}")), [text(&format!("So: {written}"))]);
    assert_eq!(hermes(written), [text(written)]);
    // Objects that are no calls.
    for other in ["{\"a\": 1} is JSON", "{", "{\"n", "{}", "{x}"] {
        assert_eq!(llama(other), [text(other)], "{other}");
    }
    let python = llama("<|python_tag|>brave_search.call(query=\"x\")");
    assert_eq!((bad(&python).raw.as_str(), &bad(&python).name), ("brave_search.call(query=\"x\")", &None));
}

#[test]
fn what_was_meant_as_a_call_is_told_with_its_text() {
    let m = |t: &str| bad(&hermes(&format!("<tool_call>{t}</tool_call>"))).clone();
    assert_eq!(m(" {\"name\": \"a\", ").raw, "{\"name\": \"a\",");
    assert!(m("{\"name\": \"a\", ").why.contains("not JSON"));
    assert!(m("{\"arguments\": {}}").why.contains("names no tool"));
    assert!(m("{\"name\": \" \"}").why.contains("names no tool"));
    assert!(m("{\"name\": 3}").why.contains("no call"));
    assert!(m("7").why.contains("no call"));
    assert!(m("").why.contains("empty"));
    let args = m("{\"name\": \"a\", \"arguments\": [1]}");
    assert_eq!((args.name.as_deref(), args.raw.as_str()), (Some("a"), "{\"name\": \"a\", \"arguments\": [1]}"));
    assert_eq!(m("{\"name\": \"a\", \"arguments\": \"{\"}").name.as_deref(), Some("a"));
    assert_eq!(bad(&hermes("<tool_call>")).raw, "");
    assert_eq!(bad(&llama("{\"name\": \"a\", \"para")).raw, "{\"name\": \"a\", \"para");
    assert!(bad(&llama("{\"name\": 3}")).why.contains("no call"));
    // What follows a malformed call is read as ever.
    let all = hermes("<tool_call>x</tool_call> and <tool_call>{\"name\":\"a\"}</tool_call>");
    assert!(matches!(all[..], [Parsed::Malformed(_), Parsed::Text(_), Parsed::Call { .. }]), "{all:?}");
}

#[test]
fn what_only_looks_like_a_call_is_text() {
    for t in
        ["a < b", "<tool", "x <tool_cal", "<tool_calls>", "</tool_call>", "<|python_ta", "<|python|>", "<<<", " hi"]
    {
        assert_eq!(hermes(t), [text(t)], "{t}");
        assert_eq!(llama(t), [text(t)], "{t}");
    }
    assert_eq!(hermes(" \n "), []);
    // It is given as soon as it is sure.
    let mut parser = CallParser::new(CallFormat::Hermes);
    assert_eq!(parser.push("One <tool"), [text("One ")]);
    assert_eq!(parser.push("s> two"), [text("<tools> two")]);
    assert_eq!(parser.push(" "), [text(" ")]);
    assert_eq!(parser.finish(), []);
}

#[test]
fn an_answer_that_must_call_begins_as_one() {
    let named = ToolChoice::Named("light".into());
    for (format, key) in [(CallFormat::Hermes, "arguments"), (CallFormat::Llama3, "parameters")] {
        let opening = format.opening(&named).unwrap();
        assert!(opening.contains(key), "{opening}");
        assert_eq!(parse(format, &[&opening, "{\"on\": true}}"]), [call("light", "{\"on\": true}")]);
        let opening = format.opening(&ToolChoice::Required).unwrap();
        assert_eq!(parse(format, &[&opening, "light\"}"]), [call("light", "{}")]);
        assert_eq!(format.opening(&ToolChoice::Auto), None);
    }
}

/// Parts of answers: texts, calls, and what is nearly one of them.
fn part() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "Hello",
        " ",
        "\n",
        "é<",
        "<tool",
        "<tool_call>",
        "</tool_call>",
        "<tool_call>{\"name\":\"a\",\"arguments\":{\"x\":\"}<é\"}}</tool_call>",
        "<tool_call>{\"name\":\"b\"",
        "{\"name\":\"c\",\"parameters\":{}}",
        "{\"name\":",
        "{\"y\":1}",
        "{",
        "}",
        ";",
        "\"",
        "\\",
        "<|python_tag|>",
        "<|py",
        "_call>",
    ])
}

proptest! {
    #[test]
    fn the_cuts_decide_nothing(parts in prop::collection::vec(part(), 0..9), cuts in prop::collection::vec(0usize..9, 0..40),
        llama in any::<bool>()) {
        let format = if llama { CallFormat::Llama3 } else { CallFormat::Hermes };
        let whole = parts.concat();
        let want = parse(format, &[&whole]);
        let chars: Vec<String> = whole.chars().map(String::from).collect();
        let single: Vec<&str> = chars.iter().map(String::as_str).collect();
        prop_assert_eq!(&parse(format, &single), &want);
        let (mut cut, mut at) = (Vec::new(), 0);
        for n in cuts {
            let to = (at + n).min(chars.len());
            cut.push(chars[at..to].concat());
            at = to;
        }
        cut.push(chars[at..].concat());
        let cut: Vec<&str> = cut.iter().map(String::as_str).collect();
        prop_assert_eq!(&parse(format, &cut), &want);
    }

    #[test]
    fn texts_and_calls_come_out_as_they_went_in(parts in prop::collection::vec(prop_oneof![
        "[a-zé ]{0,6}[a-z.<]".prop_map(Ok), ("[a-z]{1,5}", "[a-zé\"}{<]{0,6}").prop_map(Err)], 0..8)) {
        let (mut whole, mut want): (String, Vec<Parsed>) = Default::default();
        for part in parts {
            match part {
                Ok(t) => {
                    whole.push_str(&t);
                    match want.last_mut() {
                        Some(Parsed::Text(before)) => before.push_str(&t),
                        _ => want.push(text(&t)),
                    }
                }
                Err((name, value)) => {
                    let arguments = serde_json::json!({ "v": value }).to_string();
                    whole.push_str(&format!("<tool_call>{{\"name\":\"{name}\",\"arguments\":{arguments}}}</tool_call>"));
                    want.push(call(&name, &arguments));
                }
            }
        }
        prop_assert_eq!(hermes(&whole), want);
    }
}
