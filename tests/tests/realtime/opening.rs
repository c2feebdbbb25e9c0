//! V1 to V6: opening a session, and what is no event.

use std::time::Duration;

use omni_flow_transports::realtime::host::Limits;
use serde_json::json;

use crate::world::{SHORT, done, names, scripted, transcript, world};

#[tokio::test]
async fn v1_a_session_opens_at_once_unasked_and_is_told_once() {
    let w = scripted(json!([{}])).await;
    let mut c = w.connect("/v1/realtime?model=m").await;
    let created = c.next().await;
    assert_eq!((&created["type"], &created["session"]["model"]), (&json!("session.created"), &json!("m")));
    c.quiet(Duration::from_secs(2)).await;
}

#[tokio::test]
async fn v2_without_autostart_the_first_message_opens_it() {
    let w = scripted(json!([{}])).await;
    let mut c = w.connect("/v1/realtime?duplex=1&autostart=0").await;
    c.quiet(SHORT).await;
    c.say(json!({"type": "session.update", "session": {"temperature": 0.4}})).await;
    let (created, updated) = (c.next().await, c.next().await);
    assert_eq!(names(&[created.clone(), updated.clone()]), ["session.created", "session.updated"]);
    assert_eq!(created["session"], updated["session"]);
    assert_eq!(created["session"]["temperature"], 0.4);
}

#[tokio::test]
async fn v3_the_servers_id_counts() {
    let w = scripted(json!([{}])).await;
    let mut c = w.connect("/v1/realtime?duplex=1&autostart=0").await;
    c.say(json!({"type": "session.update", "session_id": "mine", "id": "mine"})).await;
    let id = c.next().await["session"]["id"].as_str().unwrap().to_owned();
    let hex = id.strip_prefix("duplex-").unwrap();
    assert!(hex.len() == 32 && hex.chars().all(|c| c.is_ascii_hexdigit()), "{id}");
}

#[tokio::test]
async fn v4_a_session_that_cannot_resume_has_no_token_and_no_numbers() {
    let partner = json!({"capabilities": {"resume": false}});
    let w = world("scripted-duplex.yaml", json!({"nodes": {"partner": partner}}), Limits::default()).await;
    let mut c = w.duplex().await;
    assert_eq!(c.created.get("resume_token"), None);
    assert_eq!(c.created["session"]["capabilities"]["supports_session_resume"], false);
    assert!(c.turn(1000).await.iter().all(|e| e.get("server_event_seq").is_none()));
    drop(c);
    w.empty().await;
}

#[tokio::test]
async fn v5_a_refused_configuration_keeps_no_place() {
    let w = world("scripted-duplex.yaml", json!({"session": {"max-sessions": 1}}), Limits::default()).await;
    for _ in 0..3 {
        let mut c = w.connect("/v1/realtime?autostart=0").await;
        c.say(json!({"type": "session.update", "session": {"turn_detection": {"type": "magic_vad"}}})).await;
        let rest = c.rest().await;
        assert_eq!(names(&rest), ["error", "close"]);
        assert_eq!(rest[0]["error"]["code"], "unsupported_turn_detection");
    }
    let first = w.duplex().await;
    let mut second = w.connect("/v1/realtime").await;
    let rest = second.rest().await;
    assert_eq!(
        (&rest[0]["error"]["code"], &rest[0]["error"]["retryable"]),
        (&json!("resource_exhausted"), &json!(true))
    );
    assert_eq!(rest[0]["error"]["message"], "duplex_session_capacity_exhausted: limit=1");
    drop(first);
}

#[tokio::test]
async fn v6_what_is_no_event_is_refused_in_order_and_hurts_nothing() {
    let w = scripted(json!([{}])).await;
    let mut c = w.duplex().await;
    c.text("{").await;
    c.text(&format!("{{\"type\":\"{}\"}}", "x".repeat(16 << 20))).await;
    c.say(json!({"type": "zzz", "event_id": "a"})).await;
    c.say(json!({"type": "session.resume", "event_id": "b"})).await;
    c.say(json!({"type": "playback.ack", "event_id": "c"})).await;
    let mut got = Vec::new();
    for _ in 0..5 {
        let error = c.next().await["error"].clone();
        got.push((error["code"].as_str().unwrap().to_owned(), error.get("event_id").cloned()));
    }
    let want = [
        ("invalid_json", None),
        ("event_too_large", None),
        ("unknown_event", Some(json!("a"))),
        ("unsupported_session_resume", Some(json!("b"))),
        ("bad_event", Some(json!("c"))),
    ];
    assert_eq!(got, want.map(|(code, id)| (code.to_owned(), id)));
    let turn = c.turn(1000).await;
    assert_eq!((&done(&turn)["response"]["status"], transcript(&turn).as_str()), (&json!("completed"), "hello world"));
}
