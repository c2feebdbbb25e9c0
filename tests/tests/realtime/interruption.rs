//! V19 to V23: answers that are cut short.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{Client, SHORT, audio, done, names, of, scripted, speech, transcript};

/// The events of the answer under way, from here to its end.
async fn tail(c: &mut Client) -> Vec<Value> {
    let at = c.seen.len();
    c.until("rate_limits.updated").await;
    c.seen[at..].to_vec()
}

fn cancelled(events: &[Value], reason: &str) {
    let all = names(events);
    let end = [
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
        "rate_limits.updated",
    ];
    assert_eq!(all[all.len() - 7..], end);
    let response = &done(events)["response"];
    assert_eq!((&response["status"], &response["status_details"]["reason"]), (&json!("cancelled"), &json!(reason)));
    assert_eq!(response["status_details"]["type"], "cancelled");
}

#[tokio::test]
async fn v19_nothing_of_a_cancelled_answer_follows_its_end() {
    let w = scripted(json!([
        {"step_ms": 20, "chunks": 500, "chunk_ms": 100, "after_cancel_ms": 2000, "text": "a".repeat(500)},
        {"chunks": 1}
    ]))
    .await;
    let mut c = w.duplex().await;
    c.ask(1000).await;
    let id = c.until("response.output_audio.delta").await["response_id"].clone();
    c.until("response.output_audio_transcript.delta").await;
    c.say(json!({"type": "response.cancel"})).await;
    cancelled(&tail(&mut c).await, "client_cancelled");
    let told = of(&c.seen, "response.output_audio_transcript.done")[0]["transcript"].as_str().unwrap().to_owned();
    assert_eq!(told, transcript(&c.seen));
    c.quiet(Duration::from_secs(3)).await;
    let at = c.seen.len();
    assert_eq!(transcript(&c.turn(1000).await), "hello world");
    assert!(c.seen[at..].iter().all(|e| e["response_id"] != id));
    assert_eq!(c.refused(json!({"type": "response.cancel"})).await, "response_cancel_not_active");
}

#[tokio::test]
async fn v20_clearing_the_output_says_so_first() {
    let w = scripted(json!([{"step_ms": 20, "chunks": 500, "chunk_ms": 100, "text": "a".repeat(500)}])).await;
    let mut c = w.duplex().await;
    c.ask(1000).await;
    let id = c.until("response.output_audio.delta").await["response_id"].clone();
    c.say(json!({"type": "output_audio_buffer.clear"})).await;
    let cleared = c.until("output_audio_buffer.cleared").await;
    assert_eq!(cleared["response_id"], id);
    let rest = tail(&mut c).await;
    cancelled(&rest, "output_audio_buffer_clear");
    assert!(of(&rest, "response.output_audio.delta").is_empty());
    // Of one that has ended there is nothing left to say but that.
    c.say(json!({"type": "output_audio_buffer.clear", "response_id": id})).await;
    assert_eq!(c.next().await["type"], "output_audio_buffer.cleared");
    c.quiet(SHORT).await;
}

async fn overlapped(more: Value) -> (Value, Vec<Value>) {
    let w = scripted(json!([{"step_ms": 100, "chunks": 5, "chunk_ms": 100}])).await;
    let mut c = w.duplex().await;
    c.say(json!({"type": "session.update", "session": {"overlap_policy": "auto"}})).await;
    c.ask(1000).await;
    c.until("response.output_audio.delta").await;
    let mut append = json!({"type": "input_audio_buffer.append", "is_speech": true});
    append.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    c.say(append).await;
    let decision = c.until("overlap.decision").await;
    c.until("rate_limits.updated").await;
    (decision, c.seen)
}

#[tokio::test]
async fn v21_an_acknowledgement_does_not_interrupt() {
    let (decision, seen) = overlapped(json!({"audio": speech(300), "transcript": "yes"})).await;
    assert_eq!((&decision["action"], &decision["reason"]), (&json!("listen"), &json!("short_ack_transcript")));
    assert_eq!(done(&seen)["response"]["status"], "completed");
    assert_eq!(audio(&seen).len(), 5 * 4_800);
}

#[tokio::test]
async fn v22_the_client_may_say_that_it_goes_on() {
    let (decision, seen) = overlapped(json!({"audio": speech(1300), "overlap_action": "continue"})).await;
    assert_eq!((&decision["action"], &decision["reason"]), (&json!("listen"), &json!("client_overlap_action")));
    assert_eq!(done(&seen)["response"]["status"], "completed");
    let (decision, seen) = overlapped(json!({"audio": speech(1300)})).await;
    assert_eq!((&decision["action"], &decision["reason"]), (&json!("barge_in"), &json!("long_overlap_speech")));
    assert_eq!(done(&seen)["response"]["status_details"]["reason"], "barge_in");
}

#[tokio::test]
async fn v23_what_was_not_on_the_socket_is_taken_back() {
    let text: Vec<String> = (0..100).map(|i| format!("{i} ")).collect();
    let w = scripted(json!([{"chunks": 100, "chunk_ms": 200, "text": text}, {"chunks": 1}])).await;
    let mut c = w.duplex().await;
    c.ask(1000).await;
    // All of it has been made, and nobody reads.
    tokio::time::sleep(Duration::from_secs(2)).await;
    c.say(json!({"type": "response.cancel"})).await;
    // The cancel has to come in before room is made.
    tokio::time::sleep(SHORT).await;
    c.until("rate_limits.updated").await;
    let deltas = of(&c.seen, "response.output_audio.delta").len();
    assert!((1..60).contains(&deltas), "{deltas} of 100");
    assert_eq!(of(&c.seen, "response.output_audio_transcript.delta").len(), deltas, "pairs stay pairs");
    cancelled(&c.seen, "client_cancelled");
    let told = transcript(&c.seen);
    assert_eq!(of(&c.seen, "response.output_audio_transcript.done")[0]["transcript"], json!(told));
    // What was never sent was never heard.
    let item = done(&c.seen)["response"]["output"][0].clone();
    assert_eq!(item["content"][0]["audio_duration_ms"], deltas * 200);
    c.say(json!({"type": "conversation.item.retrieve", "item_id": item["id"]})).await;
    let kept = c.until("conversation.item.retrieved").await;
    assert_eq!(kept["item"]["content"][0]["transcript"], told.trim_end());
    let seqs: Vec<u64> = c.seen.iter().filter_map(|e| e["server_event_seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
}

#[tokio::test]
async fn speech_kept_under_an_answer_is_the_next_turn() {
    let w = scripted(json!([{"step_ms": 100, "chunks": 3, "chunk_ms": 100}, {"text": "{samples}", "chunks": 1}])).await;
    let mut c = w.duplex().await;
    c.ask(1000).await;
    c.until("response.output_audio.delta").await;
    c.append(1000).await;
    assert_eq!(c.until("overlap.decision").await["reason"], "policy_listen_only");
    c.say(json!({"type": "input.commit"})).await;
    let committed = c.until("input_audio_buffer.committed").await;
    assert_eq!(committed["event"]["overlap_deferred"], true);
    c.until("rate_limits.updated").await;
    assert_eq!(transcript(&c.answer().await), "32000");
}
