//! V14 to V18: what an answer looks like.

use omni_flow_transports::realtime::host::Limits;
use serde_json::{Value, json};

use crate::world::{audio, done, names, native, of, scripted, transcript};

const START: [&str; 5] = [
    "response.created",
    "conversation.item.added",
    "conversation.item.created",
    "response.output_item.added",
    "response.content_part.added",
];
const END: [&str; 7] = [
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "response.output_item.done",
    "conversation.item.done",
    "response.done",
    "rate_limits.updated",
];
const PAIR: [&str; 2] = ["response.output_audio.delta", "response.output_audio_transcript.delta"];

/// What stands between start and end, which are in order.
fn inside<'a>(events: &'a [Value], end: &[&str]) -> Vec<&'a str> {
    let all = names(events);
    assert_eq!(all[..START.len()], START);
    assert_eq!(all[all.len() - end.len()..], *end);
    all[START.len()..all.len() - end.len()].to_vec()
}

#[tokio::test]
async fn v14_an_answer_has_its_order() {
    let w = scripted(json!([{}])).await;
    let turn = w.duplex().await.turn(1000).await;
    assert_eq!(inside(&turn, &END), PAIR.repeat(3));
    assert_eq!(audio(&turn).len(), 3 * 48_000);
    let ids: Vec<&Value> = turn.iter().filter_map(|e| e.get("response_id")).collect();
    assert!(ids.iter().all(|id| *id == ids[0]));
    let done = done(&turn);
    assert_eq!((&done["response"]["status"], &done["response"]["status_details"]), (&json!("completed"), &Value::Null));
    assert_eq!(done["response"]["output"][0]["content"][0]["audio_duration_ms"], 3000);
}

#[tokio::test]
async fn v14_a_model_that_owns_its_turns_speaks_once() {
    let w = native(json!([{}]), Limits::default()).await;
    let turn = w.duplex().await.turn(1000).await;
    let inside = inside(&turn, &END);
    assert_eq!(inside[0], "response.speak");
    assert_eq!(inside[1..], PAIR.repeat(3));
}

#[tokio::test]
async fn v15_what_comes_cumulated_goes_out_in_increments() {
    for (text, audio_mode) in [("cumulative", "delta"), ("cumulative", "cumulative"), ("delta", "cumulative")] {
        let answer = json!([{"text": "grüße an alle", "text_mode": text, "audio_mode": audio_mode}]);
        for w in [scripted(answer.clone()).await, native(answer, Limits::default()).await] {
            let mut c = w.duplex().await;
            for _ in 0..2 {
                let turn = c.turn(1000).await;
                assert_eq!(transcript(&turn), "grüße an alle");
                assert_eq!(of(&turn, "response.output_audio_transcript.done")[0]["transcript"], "grüße an alle");
                assert_eq!(audio(&turn).len(), 3 * 48_000, "{text} {audio_mode}");
            }
        }
    }
}

#[tokio::test]
async fn v16_an_answer_may_have_no_words() {
    let w = scripted(json!([{"text": null}])).await;
    let mut c = w.duplex().await;
    for _ in 0..2 {
        let turn = c.turn(1000).await;
        let end: Vec<&str> = END.into_iter().filter(|n| *n != "response.output_audio_transcript.done").collect();
        assert_eq!(inside(&turn, &end), PAIR.repeat(3));
        assert_eq!((transcript(&turn), audio(&turn).len()), (String::new(), 3 * 48_000));
    }
}

#[tokio::test]
async fn v17_silence_is_given_so_often_and_no_more() {
    let w = native(json!([{"silence_units": 50, "chunks": 2, "chunk_ms": 100}]), Limits::default()).await;
    let mut c = w.duplex().await;
    for _ in 0..2 {
        let turn = c.turn(1000).await;
        assert_eq!(of(&turn, "response.output_audio.delta").len(), 2 + 8);
        assert_eq!(done(&turn)["response"]["status"], "completed");
    }
}

#[tokio::test]
async fn v18_a_failure_is_one_sessions_own() {
    let answers =
        json!([{"step_ms": 20, "text": "one two"}, {"step_ms": 20, "fail_at": 2}, {"step_ms": 20, "text": "one two"}]);
    let w = scripted(answers).await;
    let alone = w.duplex().await.turn(1000).await;
    let (mut a, mut b, mut c) = (w.duplex().await, w.duplex().await, w.duplex().await);
    b.turn(1000).await;
    let (a, failed, c) = tokio::join!(a.turn(1000), b.turn(1000), c.turn(1000));
    for other in [a, c] {
        assert_eq!(audio(&other), audio(&alone));
        assert!(of(&other, "error").is_empty());
    }
    assert_eq!(of(&failed, "response.output_audio.delta").len(), 2, "what came before the failure came");
    let all = names(&failed);
    assert!(all.iter().position(|n| *n == "error") < all.iter().position(|n| *n == "response.output_audio.done"));
    let code = &of(&failed, "error")[0]["error"]["code"];
    let response = &done(&failed)["response"];
    assert_eq!(response["status"], "failed");
    assert_eq!(response["status_details"]["error"]["code"], *code);
    assert_eq!((&response["status_details"]["type"], &response["status_details"]["reason"]), (&json!("failed"), code));
    // The session goes on, and the failure is not in its history.
    assert_eq!(transcript(&b.turn(1000).await), "one two");
}

#[tokio::test]
async fn what_an_answer_is_made_from_reaches_the_graph() {
    let text = "{turn} {voice}: {instructions}";
    let w = scripted(json!([{"text": text, "chunks": 1}])).await;
    let mut c = w.duplex().await;
    c.say(json!({"type": "session.update", "session": {"instructions": "be brief", "voice": "joe"}})).await;
    assert_eq!(transcript(&c.turn(500).await), "0 joe: be brief");
    c.append(500).await;
    c.say(json!({"type": "input_audio_buffer.commit"})).await;
    c.say(json!({"type": "response.create", "response": {"instructions": "once", "metadata": {"topic": "x"}}})).await;
    let turn = c.answer().await;
    assert_eq!(transcript(&turn), "1 joe: once");
    assert_eq!(done(&turn)["response"]["metadata"]["topic"], "x");
    assert_eq!(transcript(&c.turn(500).await), "2 joe: be brief");
}

#[tokio::test]
async fn an_echo_is_what_was_heard() {
    let w = scripted(json!([{"echo": true, "chunk_ms": 200}])).await;
    let mut c = w.duplex().await;
    let format = json!({"audio": {"output": {"format": {"type": "audio/pcm", "rate": 16000}}}});
    c.say(json!({"type": "session.update", "session": format})).await;
    let turn = c.turn(1000).await;
    assert_eq!(audio(&turn).len(), 32_000);
    assert_eq!(of(&turn, "response.output_audio.delta")[0]["sample_rate_hz"], 16_000);
}
