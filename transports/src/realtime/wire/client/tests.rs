//! Reading whole messages.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn read(value: Value) -> Result<ClientEvent, Rejected> {
    parse(&value.to_string(), MOST_BYTES).map(|i| i.event)
}
fn refused(value: Value) -> (Code, Option<String>) {
    let rejected = read(value).unwrap_err();
    (rejected.refusal.code, rejected.refusal.param)
}

#[test]
fn every_event_is_read() {
    let commit = |response_create| ClientEvent::Commit(Commit { is_final: true, response_create, is_speech: None });
    let text = || ClientEvent::TextAppend { text: "x".into() };
    let close = |reason: &str| ClientEvent::Close { reason: reason.into() };
    let ack = ClientEvent::PlaybackAck(PlaybackAck {
        played_ms: 120.5,
        committed_ms: 120.5,
        response_id: Some("r9".into()),
        item_id: None,
        truncate: false,
    });
    let table = [
        (json!({"type": "session.heartbeat"}), ClientEvent::Heartbeat),
        (json!({"type": "session.event_ack", "server_event_seq": 0}), ClientEvent::EventAck(0)),
        (json!({"type": "session.close"}), close("client_close")),
        (json!({"type": "close_session", "reason": "bye"}), close("bye")),
        (json!({"type": "close"}), close("client_close")),
        (json!({"type": "input_audio_buffer.commit"}), commit(None)),
        (json!({"type": "input_audio_buffer.commit", "create_response": false}), commit(Some(false))),
        (json!({"type": "input.commit"}), commit(Some(true))),
        (json!({"type": "input.commit", "response_create": false, "create_response": true}), commit(Some(false))),
        (json!({"type": "input_audio_buffer.clear"}), ClientEvent::InputClear),
        (json!({"type": "input.cancel"}), ClientEvent::InputCancel),
        (json!({"type": "input.text.append", "text": "x"}), text()),
        (json!({"type": "input_text.append", "text": "x"}), text()),
        (json!({"type": "push_text", "text": "x"}), text()),
        (
            json!({"type": "conversation.item.retrieve", "item_id": "i"}),
            ClientEvent::ItemRetrieve { item_id: "i".into() },
        ),
        (json!({"type": "conversation.item.delete", "item_id": "i"}), ClientEvent::ItemDelete { item_id: "i".into() }),
        (json!({"type": "response.create"}), ClientEvent::ResponseCreate(Box::default())),
        (json!({"type": "response.cancel"}), ClientEvent::ResponseCancel { response_id: None }),
        (
            json!({"type": "output_audio_buffer.clear", "response_id": "r"}),
            ClientEvent::OutputClear { response_id: Some("r".into()) },
        ),
        (json!({"type": "barge_in"}), ClientEvent::BargeIn),
        (json!({"type": "playback.ack", "played_ms": 120.5, "response_id": "r9"}), ack.clone()),
        (json!({"type": "audio.playback_ack", "played_ms": 120.5, "response_id": "r9"}), ack),
    ];
    for (message, event) in table {
        assert_eq!(read(message.clone()), Ok(event), "{message}");
    }
    assert!(matches!(read(json!({"type": "input_audio_buffer.append", "audio": ""})), Ok(ClientEvent::Append(_))));
    assert!(matches!(read(json!({"type": "conversation.item.create", "item": {}})), Ok(ClientEvent::ItemCreate(_))));
    let truncate = json!({"type": "conversation.item.truncate", "item_id": "i", "audio_end_ms": 0});
    assert!(matches!(read(truncate), Ok(ClientEvent::ItemTruncate(_))));
}

#[test]
fn a_configuration_is_nested_or_flat() {
    let map = |v: Value| v.as_object().cloned().unwrap_or_default();
    let nested = json!({"type": "session.update", "event_id": "e", "session": {"voice": "v"}});
    assert_eq!(read(nested), Ok(ClientEvent::SessionUpdate(map(json!({"voice": "v"})))));
    let flat = json!({"type": "session.update", "event_id": "e", "voice": "v", "temperature": null});
    assert_eq!(read(flat), Ok(ClientEvent::SessionUpdate(map(json!({"voice": "v", "temperature": null})))));
    let wrong = json!({"type": "session.update", "session": 5});
    assert_eq!(refused(wrong), (Code::InvalidSessionConfig, Some("session".into())));
}

#[test]
fn a_signal_is_unwrapped_to_the_event_it_carries() {
    let signal = |event: &str, payload: Value| json!({"type": "turn.signal", "event": event, "payload": payload});
    for (event, payload) in [
        ("input.cancel", json!({})),
        ("barge_in", json!({})),
        ("response.cancel", json!({"response_id": "r"})),
        ("session.update", json!({"voice": "v"})),
        ("session.update", json!({"session": {"voice": "v"}})),
        ("conversation.item.create", json!({"item": {"id": "i"}, "previous_item_id": "p"})),
        ("conversation.item.delete", json!({"item_id": "i"})),
        ("conversation.item.truncate", json!({"item_id": "i", "audio_end_ms": 1, "content_index": 0})),
        ("conversation.item.retrieve", json!({"item_id": "i"})),
    ] {
        let mut direct = payload.clone();
        direct["type"] = json!(event);
        assert_eq!(read(signal(event, payload)), read(direct), "{event}");
    }
    for (event, state) in [
        ("user_started", Some("user_speaking")),
        ("user_committed", Some("user_committed")),
        ("assistant_started", Some("assistant_generating")),
        ("assistant_done", Some("idle")),
        ("playback_ack", None),
        ("close", None),
        ("timeout", None),
    ] {
        let Ok(ClientEvent::TurnSignal(got)) = read(json!({"type": "signal_turn", "event": event})) else {
            panic!("{event} is no signal")
        };
        assert_eq!((got.as_str(), got.turn_state().map(|s| s.as_str())), (event, state));
    }
    assert_eq!(refused(json!({"type": "turn.signal"})), (Code::BadEvent, Some("event".into())));
    assert_eq!(refused(signal("session.close", json!({}))), (Code::BadEvent, Some("event".into())));
    assert_eq!(refused(signal("turn.signal", json!({"event": "close"}))), (Code::BadEvent, Some("event".into())));
    assert_eq!(refused(signal("barge_in", json!(3))), (Code::BadEvent, Some("payload".into())));
    assert_eq!(refused(signal("conversation.item.delete", json!({}))).0, Code::MissingItemId);
}

#[test]
fn what_is_refused_has_its_own_code_and_echoes_the_id() {
    for (text, id, code) in [
        ("{", None, Code::InvalidJson),
        ("", None, Code::InvalidJson),
        ("[1]", None, Code::BadEvent),
        ("null", None, Code::BadEvent),
        (r#"{"event_id":"a"}"#, Some("a"), Code::BadEvent),
        (r#"{"event_id":"a","type":7}"#, Some("a"), Code::BadEvent),
        (r#"{"event_id":7,"type":"barge_in"}"#, None, Code::BadEvent),
        (r#"{"event_id":"a","type":"zzz"}"#, Some("a"), Code::UnknownEvent),
        (r#"{"event_id":"a","type":"push_chunk","audio":"AA=="}"#, Some("a"), Code::UnknownEvent),
        (r#"{"event_id":"a","type":"input.audio.append","audio":"AA=="}"#, Some("a"), Code::UnknownEvent),
        (r#"{"event_id":"a","type":"playback.ack"}"#, Some("a"), Code::BadEvent),
        (r#"{"event_id":"a","type":"playback.ack","played_ms":true}"#, Some("a"), Code::BadEvent),
        (r#"{"event_id":"a","type":"playback.ack","played_ms":1e400}"#, None, Code::InvalidJson),
        (r#"{"event_id":"a","type":"session.event_ack"}"#, Some("a"), Code::InvalidEventAck),
        (r#"{"event_id":"a","type":"session.event_ack","server_event_seq":-1}"#, Some("a"), Code::InvalidEventAck),
        (r#"{"event_id":"a","type":"session.event_ack","server_event_seq":1.5}"#, Some("a"), Code::InvalidEventAck),
        (r#"{"event_id":"a","type":"session.event_ack","server_event_seq":true}"#, Some("a"), Code::InvalidEventAck),
        (r#"{"event_id":"a","type":"conversation.item.delete"}"#, Some("a"), Code::MissingItemId),
    ] {
        let rejected = parse(text, MOST_BYTES).unwrap_err();
        assert_eq!((rejected.event_id.as_deref(), rejected.refusal.code), (id, code), "{text}");
    }
    let long = json!({"type": "barge_in", "event_id": "x".repeat(1025)});
    assert_eq!(refused(long), (Code::BadEvent, Some("event_id".into())));
    assert!(read(json!({"type": "x".repeat(1 << 20)})).unwrap_err().refusal.message.len() < 300);
}

#[test]
fn the_limit_is_in_bytes_and_inclusive() {
    let text = r#"{"type":"push_text","text":"é"}"#;
    assert!(parse(text, text.len()).is_ok());
    let rejected = parse(text, text.len() - 1).unwrap_err();
    assert_eq!((rejected.event_id, rejected.refusal.code), (None, Code::EventTooLarge));
    assert_eq!(parse(&"[".repeat(100_000), MOST_BYTES).unwrap_err().refusal.code, Code::InvalidJson);
}

#[test]
fn a_resume_is_looked_at_only_when_asked() {
    let claim = |mut value: Value| {
        value["type"] = json!("session.resume");
        match read(value) {
            Ok(ClientEvent::Resume(resume)) => resume.claim(),
            other => panic!("{other:?}"),
        }
    };
    let ok = claim(json!({"session_id": "s", "resume_token": "secret"})).unwrap();
    assert_eq!((ok.session_id.as_str(), ok.last_received), ("s", 0));
    assert!(!format!("{ok:?}").contains("secret"));
    for wrong in [
        json!({}),
        json!({"session_id": "s"}),
        json!({"resume_token": "t"}),
        json!({"session_id": "s", "resume_token": "t", "last_received_server_event_seq": -1}),
        json!({"session_id": "s", "resume_token": "t", "last_received_server_event_seq": "1"}),
    ] {
        assert_eq!(claim(wrong).unwrap_err().code, Code::InvalidSessionResume);
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..4).prop_map(|kv| Value::Object(kv.into_iter().collect())),
        ]
    })
}
fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "session",
        "item",
        "response",
        "type",
        "content",
        "audio",
        "output",
        "format",
        "voice",
        "vad",
        "is_speech",
        "video_frames",
        "item_id",
        "audio_end_ms",
        "played_ms",
        "server_event_seq",
        "event",
        "payload",
        "text",
        "rate",
        "metadata",
        "modalities",
        "max_tokens",
        "final",
        "reason",
        "call_id",
        "duration_ms",
        "sample_rate_hz",
    ])
    .prop_map(str::to_owned)
}
fn kind() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "session.update",
        "session.event_ack",
        "session.close",
        "session.resume",
        "input_audio_buffer.append",
        "input_audio_buffer.commit",
        "input.text.append",
        "conversation.item.create",
        "conversation.item.truncate",
        "conversation.item.delete",
        "response.create",
        "response.cancel",
        "turn.signal",
        "playback.ack",
        "barge_in",
        "nonsense",
    ])
    .prop_map(str::to_owned)
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        prop_assert!(parse(&text, MOST_BYTES).is_err());
    }

    #[test]
    fn an_id_that_can_be_read_is_echoed_whatever_else_stands_there(
        kind in kind(), id in ".{0,12}", fields in prop::collection::vec((name(), any_json()), 0..5),
    ) {
        let mut map: Map<String, Value> = fields.into_iter().collect();
        map.insert("type".into(), kind.into());
        map.insert("event_id".into(), id.clone().into());
        let text = Value::Object(map).to_string();
        let echoed = match parse(&text, MOST_BYTES) {
            Ok(incoming) => incoming.event_id,
            Err(rejected) => rejected.event_id,
        };
        prop_assert_eq!(echoed, Some(id));
    }
}
