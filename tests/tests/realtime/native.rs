//! A model that owns its turns.

use std::time::Duration;

use omni_flow_transports::realtime::host::Limits;
use serde_json::{Value, json};

use crate::world::{SHORT, audio, done, names, native, of, transcript, world};

#[tokio::test]
async fn it_answers_a_commit_unasked_and_nothing_is_told_before_it_speaks() {
    let w = native(json!([{"step_ms": 200, "text": "{instructions}", "chunks": 1}]), Limits::default()).await;
    let mut c = w.duplex().await;
    assert_eq!(c.created["session"]["extra_body"]["auto_response"], true);
    assert_eq!(c.created["session"]["capabilities"]["implementation_level"], "model_native_duplex");
    c.say(json!({"type": "session.update", "session": {"instructions": "be brief"}})).await;
    c.append(1000).await;
    c.say(json!({"type": "input_audio_buffer.commit"})).await;
    c.until("conversation.item.done").await;
    // Of what was committed, and joins it.
    c.say(json!({"type": "response.create", "response": {"metadata": {"topic": "x"}}})).await;
    let turn = c.answer().await;
    assert_eq!((transcript(&turn).as_str(), &turn[0]["response"]["metadata"]["topic"]), ("be brief", &json!("x")));
    let options = json!({"type": "response.create", "response": {"instructions": "no"}});
    assert_eq!(c.refused(options).await, "unsupported_native_response_options");
    // Its context is locked now.
    let update = json!({"type": "session.update", "session": {"instructions": "other"}});
    assert_eq!(c.refused(update).await, "instructions_update_unsupported");
    assert_eq!(c.refused(json!({"type": "input.text.append", "text": "x"})).await, "native_text_append_unsupported");
    assert_eq!(done(&c.turn(1000).await)["response"]["status"], "completed");
    assert_eq!(of(&c.seen, "response.created").len(), 2);
}

#[tokio::test]
async fn it_may_listen_and_it_may_speak_without_a_commit() {
    let w = native(json!([{"listen": true}, {"after_units": 2, "chunks": 1}, {"chunks": 1}]), Limits::default()).await;
    let mut c = w.duplex().await;
    c.append(1000).await;
    c.say(json!({"type": "input_audio_buffer.commit"})).await;
    let listen = c.until("response.listen").await;
    assert_eq!(listen["response"]["metadata"]["reason"], "model_listen");
    assert_eq!(listen.get("response_id"), None);
    assert!(of(&c.seen, "response.created").is_empty());
    c.append(1000).await;
    c.until("input_audio_buffer.speech_started").await;
    c.quiet(SHORT).await;
    c.append(1000).await;
    assert_eq!(transcript(&c.answer().await), "hello world");
}

#[tokio::test]
async fn a_commit_that_wants_no_answer_gets_none() {
    let w = native(json!([{"chunks": 1}]), Limits::default()).await;
    let mut c = w.duplex().await;
    c.append(1000).await;
    c.say(json!({"type": "input_audio_buffer.commit", "response_create": false})).await;
    c.until("conversation.item.done").await;
    c.quiet(SHORT).await;
    c.say(json!({"type": "response.create"})).await;
    assert_eq!(done(&c.answer().await)["response"]["status"], "completed");
    c.quiet(SHORT).await;
}

#[tokio::test]
async fn it_is_interrupted_and_answers_again() {
    let long = json!({"step_ms": 20, "chunks": 500, "chunk_ms": 100, "text": null});
    let w = native(json!([long, {"chunks": 1}]), Limits::default()).await;
    let mut c = w.duplex().await;
    c.ask(1000).await;
    c.until("response.output_audio.delta").await;
    c.say(json!({"type": "barge_in"})).await;
    assert_eq!(c.until("response.done").await["response"]["status_details"]["reason"], "barge_in");
    assert_eq!(c.until("turn.event").await["event"], "barge_in");
    assert_eq!(transcript(&c.turn(1000).await), "hello world");
}

#[tokio::test]
async fn what_the_user_says_lets_it_go_on_and_silence_does_when_they_stop() {
    let w = native(json!([{"silence_units": 4, "chunks": 1, "chunk_ms": 100}]), Limits::default()).await;
    let mut c = w.duplex().await;
    c.ask(1000).await;
    c.until("response.output_audio.delta").await;
    c.append(400).await;
    c.append(400).await;
    c.until("rate_limits.updated").await;
    assert_eq!(of(&c.seen, "response.output_audio.delta").len(), 5);
    assert_eq!(done(&c.seen)["response"]["status"], "completed");
}

#[tokio::test]
async fn it_listens_first_if_it_must() {
    let w = native(json!([{"chunks": 1}]), Limits::default()).await;
    let mut c = w.duplex().await;
    c.say(json!({"type": "session.update", "session": {"extra_body": {"force_listen_count": 2}}})).await;
    c.append(1000).await;
    c.say(json!({"type": "input_audio_buffer.commit"})).await;
    c.until("response.listen").await;
    assert_eq!(transcript(&c.turn(1000).await), "hello world");
    assert_eq!(of(&c.seen, "response.created").len(), 1);
}

#[tokio::test]
async fn an_echo_is_one_too() {
    let w = world("echo.yaml", json!({}), Limits::default()).await;
    let mut c = w.duplex().await;
    let can = &c.created["session"]["capabilities"];
    assert_eq!(
        (&can["implementation_level"], &can["supports_barge_in"]),
        (&json!("model_native_duplex"), &Value::Bool(false))
    );
    for _ in 0..2 {
        for _ in 0..10 {
            c.append(20).await;
        }
        c.until("response.created").await;
        let at = c.seen.len();
        c.say(json!({"type": "input_audio_buffer.commit"})).await;
        c.until("rate_limits.updated").await;
        assert_eq!(audio(&c.seen[at..]).len(), 9_600, "{:?}", names(&c.seen));
    }
    c.quiet(Duration::from_millis(100)).await;
}
