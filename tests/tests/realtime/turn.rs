//! Graphs that are used turn by turn, and which address serves what.

use omni_flow_transports::realtime::host::Limits;
use serde_json::json;

use crate::world::{names, of, scripted, speech, world};

#[tokio::test]
async fn a_stream_goes_in_and_its_answer_comes_out() {
    let partner = json!({"answers": [{"text": "hello world", "chunks": 2}]});
    let with = json!({"session": {"mode": "turn", "max-sessions": 1}, "nodes": {"partner": partner}});
    let w = world("scripted-duplex.yaml", with, Limits::default()).await;
    for path in ["/v1/realtime?model=m", "/v1/realtime?duplex=0", "/v1/realtime?duplex=1"] {
        let mut c = w.connect(path).await;
        let created = c.next().await;
        assert_eq!(created["type"], "session.created");
        assert_eq!(created["session"].get("capabilities"), None);
        for _ in 0..2 {
            let at = c.seen.len();
            c.say(json!({"type": "session.update", "model": created["session"]["model"]})).await;
            c.say(json!({"type": "input_audio_buffer.commit", "final": false})).await;
            for _ in 0..5 {
                c.say(json!({"type": "input_audio_buffer.append", "audio": speech(200)})).await;
            }
            c.say(json!({"type": "input_audio_buffer.commit", "final": true})).await;
            let done = c.until("response.output_audio.done").await;
            assert_eq!(done["has_audio"], true);
            let seen = &c.seen[at..];
            assert_eq!(seen[0]["type"], "session.updated");
            let text: String = of(seen, "transcription.delta").iter().map(|e| e["delta"].as_str().unwrap()).collect();
            let told = of(seen, "transcription.done")[0];
            assert_eq!((&told["text"], &told["usage"]["total_tokens"]), (&json!(text), &json!(0)));
            assert!(text.starts_with("hello"), "{text}");
            let bytes: usize = of(seen, "response.output_audio.delta")
                .iter()
                .map(|e| {
                    assert_eq!((&e["format"], &e["sample_rate_hz"]), (&json!("pcm16"), &json!(24_000)));
                    e["audio"].as_str().unwrap().len() / 4 * 3
                })
                .sum();
            assert_eq!(bytes, 2 * 48_000);
        }
        assert_eq!(c.refused(json!({"type": "response.create", "event_id": "x"})).await, "unknown_event");
        assert_eq!(c.refused(json!({"type": "input_audio_buffer.append", "audio": "%"})).await, "bad_audio");
        let other = json!({"type": "session.update", "session": {"model": "other"}});
        if path.contains("model=m") {
            assert_eq!(c.refused(other).await, "model_update_unsupported");
        }
        // Whoever goes in the middle of it leaves nothing behind.
        c.say(json!({"type": "input_audio_buffer.append", "audio": speech(200)})).await;
        c.say(json!({"type": "session.update"})).await;
        c.until("session.updated").await;
    }
}

#[tokio::test]
async fn each_address_serves_what_its_name_says() {
    let w = scripted(json!([{}])).await;
    let mut c = w.connect("/v1/realtime?duplex=off").await;
    let rest = c.rest().await;
    assert_eq!(
        (names(&rest), &rest[0]["error"]["message"]),
        (vec!["error", "close"], &json!("Realtime API is not available"))
    );
    assert_eq!(w.connect("/v1/duplex").await.next().await["type"], "session.created");
    let w = world("scripted-duplex.yaml", json!({"session": {"mode": "turn"}}), Limits::default()).await;
    let mut c = w.connect("/v1/duplex").await;
    let rest = c.rest().await;
    assert_eq!(
        (names(&rest), &rest[0]["error"]["message"]),
        (vec!["error", "close"], &json!("Duplex API is not available"))
    );
}
