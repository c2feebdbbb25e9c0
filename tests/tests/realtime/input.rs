//! V7 to V13: what goes in.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::world::{SHORT, names, of, scripted, speech, transcript};

#[tokio::test]
async fn v7_a_part_of_a_unit_starts_no_step() {
    let w = scripted(json!([{"text": "{steps}", "chunks": 1}])).await;
    let mut c = w.duplex().await;
    c.append(500).await;
    tokio::time::sleep(SHORT).await;
    assert_eq!(transcript(&c.turn(500).await), "1");
    assert_eq!(transcript(&c.turn(400).await), "1");
}

#[tokio::test]
async fn v8_a_cleared_buffer_is_empty() {
    let w = scripted(json!([{}])).await;
    let mut c = w.duplex().await;
    c.append(500).await;
    c.say(json!({"type": "input_audio_buffer.clear"})).await;
    c.until("input_audio_buffer.cleared").await;
    assert_eq!(c.refused(json!({"type": "input_audio_buffer.commit"})).await, "input_audio_buffer_commit_empty");
}

#[tokio::test]
async fn v9_a_commit_is_told_in_order_under_one_id() {
    let w = scripted(json!([{}])).await;
    let mut c = w.duplex().await;
    c.append(500).await;
    let started = c.until("input_audio_buffer.speech_started").await;
    c.say(json!({"type": "input_audio_buffer.commit"})).await;
    c.until("conversation.item.done").await;
    assert_eq!(
        names(&c.seen[2..]),
        [
            "input_audio_buffer.speech_stopped",
            "conversation.item.added",
            "conversation.item.created",
            "input_audio_buffer.committed",
            "conversation.item.done"
        ]
    );
    for event in &c.seen[2..] {
        let id = event.get("item_id").unwrap_or(&event["item"]["id"]);
        assert_eq!(*id, started["item_id"], "{event}");
    }
    c.quiet(SHORT).await;
}

#[tokio::test]
async fn v10_there_must_be_something_to_answer() {
    let w = scripted(json!([{}])).await;
    let mut c = w.duplex().await;
    let create = json!({"type": "response.create"});
    assert_eq!(c.refused(create.clone()).await, "response_create_without_input");
    let item = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]});
    c.say(json!({"type": "conversation.item.create", "item": item})).await;
    assert_eq!(c.refused(create.clone()).await, "text_only_turn_unsupported");
    assert_eq!(c.refused(create).await, "response_create_without_input");
}

#[tokio::test]
async fn v11_a_refused_append_leaves_the_buffer_as_it_was() {
    let w = scripted(json!([{"text": "{samples}"}])).await;
    let mut c = w.duplex().await;
    c.append(1000).await;
    let append = |more: serde_json::Value| {
        let mut event = json!({"type": "input_audio_buffer.append", "is_speech": true});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    assert_eq!(c.refused(append(json!({"audio": "%%"}))).await, "bad_audio");
    assert_eq!(c.refused(append(json!({"audio": speech(10), "format": "mp3"}))).await, "unsupported_audio_format");
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ";
    for frames in
        [json!([format!("data:image/png;base64,{png}")]), json!([png]), json!([png, png, png]), json!(["AAAA"])]
    {
        let refused = c.refused(append(json!({"audio": speech(10), "video_frames": frames}))).await;
        assert_eq!(refused, "invalid_video_frames");
    }
    c.say(json!({"type": "input.commit"})).await;
    assert_eq!(transcript(&c.answer().await), "16000");
}

#[tokio::test]
async fn v12_a_format_holds_for_one_append() {
    let w = scripted(json!([{"text": "{samples}"}])).await;
    let mut c = w.duplex().await;
    c.append(1000).await;
    let floats: Vec<u8> = (0..16_000).flat_map(|_| 0.1f32.to_le_bytes()).collect();
    c.say(json!({"type": "input_audio_buffer.append", "audio": STANDARD.encode(floats), "format": "pcm_f32le"})).await;
    assert_eq!(transcript(&c.turn(1000).await), "48000");
}

#[tokio::test]
async fn speech_in_an_item_is_a_turn() {
    let w = scripted(json!([{"text": "{samples}", "chunks": 1}])).await;
    let mut c = w.duplex().await;
    let part = |audio: String| json!({"type": "input_audio", "audio": audio});
    let silence = STANDARD.encode(vec![0u8; 32_000]);
    let create = |content: serde_json::Value| json!({"type": "conversation.item.create", "item": {"content": content}});
    c.say(create(json!([part(silence.clone())]))).await;
    c.until("conversation.item.done").await;
    assert_eq!(c.refused(json!({"type": "response.create"})).await, "text_only_turn_unsupported");
    c.say(create(json!([part(speech(500)), part(silence), part(speech(250))]))).await;
    let item = c.until("conversation.item.done").await["item"].clone();
    assert_eq!(item["content"].as_array().unwrap().len(), 3);
    c.quiet(SHORT).await;
    c.say(json!({"type": "response.create"})).await;
    assert_eq!(transcript(&c.answer().await), "12000");
    assert_eq!(c.refused(create(json!([part("%".to_owned())]))).await, "bad_audio");
}

#[tokio::test]
async fn v13_four_commits_may_wait() {
    let w = scripted(json!([{"step_ms": 300, "chunks": 1}])).await;
    let mut c = w.duplex().await;
    for _ in 0..5 {
        c.ask(200).await;
    }
    let error = c.until("error").await;
    assert_eq!((&error["error"]["code"], &error["error"]["retryable"]), (&json!("input_backpressure"), &json!(true)));
    assert_eq!(of(&c.seen, "input_audio_buffer.committed").len(), 4);
    while of(&c.seen, "response.done").is_empty() {
        c.next().await;
    }
    // What was appended is still there.
    c.say(json!({"type": "input.commit"})).await;
    while of(&c.seen, "response.done").len() < 5 {
        c.next().await;
    }
    assert_eq!(of(&c.seen, "error").len(), 1);
    assert!(of(&c.seen, "response.done").iter().all(|e| e["response"]["status"] == "completed"));
}

#[tokio::test]
async fn silence_is_no_turn_and_the_last_append_is_one_whatever_its_rate() {
    let w = scripted(json!([{"text": "{last_samples}", "chunks": 1}])).await;
    let mut c = w.duplex().await;
    let silence = STANDARD.encode(vec![0u8; 32_000]);
    c.say(json!({"type": "input_audio_buffer.append", "audio": silence})).await;
    c.say(json!({"type": "input.commit"})).await;
    let committed = c.until("input_audio_buffer.committed").await;
    assert_eq!((&committed["event"]["no_response"], &committed["event"]["is_speech"]), (&json!(true), &json!(false)));
    let listen = c.until("response.listen").await;
    assert_eq!(listen["response"]["metadata"]["reason"], "silence_or_noise");
    let audio = speech(900);
    c.append(500).await;
    c.say(json!({"type": "input_audio_buffer.append", "audio": audio, "sample_rate_hz": 24000, "is_speech": true}))
        .await;
    c.say(json!({"type": "input.commit"})).await;
    assert_eq!(transcript(&c.answer().await), "9600");
}
