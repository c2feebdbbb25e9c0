//! What unmodified clients require: T1 to T8 and E1 to E32, in the profiles that they open.

use std::collections::HashSet;

use futures_util::SinkExt as _;
use omni_flow_transports::realtime::host::Limits;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::world::{Client, World, done, names, of, scripted, speech, transcript, world};

/// With turns of text and with functions, as a cascade has them.
async fn textual(answers: Value) -> World {
    let partner = json!({"answers": answers, "capabilities": {"text_only_turn": true, "tools": true}});
    world("scripted-duplex.yaml", json!({"nodes": {"partner": partner}}), Limits::default()).await
}

/// A session of the stock profile in which much happens: spoken and written turns, refusals and an interruption.
async fn busy(path: &str, headers: &[(&'static str, &str)]) -> Client {
    let w = textual(json!([
        {"chunks": 2}, {"chunks": 2}, {"step_ms": 20, "chunks": 500, "chunk_ms": 100, "text": null}, {"fail_at": 1},
        {"text": "hello world"}
    ]))
    .await;
    let mut c = w.connect_with(path, headers).await;
    c.created = c.until("session.created").await;
    c.say(json!({"type": "session.update", "session": {"type": "realtime", "instructions": "be brief"}})).await;
    c.until("session.updated").await;
    // Spoken, then written.
    let audio = json!({"type": "input_audio_buffer.append", "audio": speech(1500), "transcript": "good day"});
    c.say(audio.clone()).await;
    c.say(json!({"type": "input_audio_buffer.commit"})).await;
    c.say(json!({"type": "response.create", "response": {"metadata": {"topic": "weather"}}})).await;
    c.answer().await;
    let item =
        json!({"id": "mine", "type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]});
    c.say(json!({"type": "conversation.item.create", "item": item, "previous_item_id": null})).await;
    c.say(json!({"type": "response.create", "response": {"output_modalities": ["text"]}})).await;
    c.answer().await;
    // Interrupted and cut, then failed, and refused.
    for cancels in [true, false] {
        c.say(audio.clone()).await;
        c.say(json!({"type": "input_audio_buffer.commit"})).await;
        c.say(json!({"type": "response.create"})).await;
        let id = c.until("response.output_audio.delta").await["item_id"].clone();
        if cancels {
            c.say(json!({"type": "response.cancel"})).await;
        }
        c.until("response.done").await;
        c.say(
            json!({"type": "conversation.item.truncate", "item_id": id, "content_index": 0, "audio_end_ms": 999_999}),
        )
        .await;
        c.until("conversation.item.truncated").await;
    }
    c.say(json!({"type": "response.cancel", "event_id": "mine-1"})).await;
    c.say(json!({"type": "input_audio_buffer.commit", "event_id": "mine-2"})).await;
    c.say(json!({"type": "conversation.item.create", "item": {"id": "mine"}, "event_id": "mine-3"})).await;
    c.say(json!({"type": "conversation.item.retrieve", "item_id": "mine"})).await;
    c.say(json!({"type": "conversation.item.delete", "item_id": "mine"})).await;
    c.until("conversation.item.deleted").await;
    c.say(json!({"type": "output_audio_buffer.clear", "response_id": done(&c.seen)["response"]["id"]})).await;
    c.until("output_audio_buffer.cleared").await;
    c
}

#[tokio::test]
async fn t1_t6_t7_a_session_opens_unasked_without_a_model_and_answers_every_update() {
    let w = scripted(json!([{}])).await;
    for path in ["/v1/realtime", "/v1/realtime?model=m", "/v1/realtime?model=any+thing&x=y"] {
        let mut c = w.connect(path).await;
        assert_eq!(c.next().await["type"], "session.created");
        for _ in 0..5 {
            c.say(json!({"type": "session.update", "session": {}})).await;
        }
        for _ in 0..5 {
            c.until("session.updated").await;
        }
    }
}

#[tokio::test]
async fn t2_of_the_subprotocols_exactly_realtime_is_chosen() {
    let w = scripted(json!([{}])).await;
    for offer in ["realtime", "realtime, openai-insecure-api-key.sk-1, openai-beta.realtime-v1", "x, realtime"] {
        // The handshake fails in the client unless the server's choice was offered.
        let mut c = w.connect_with("/v1/realtime", &[("sec-websocket-protocol", offer)]).await;
        assert_eq!(c.next().await["type"], "session.created");
    }
}

#[tokio::test]
async fn t3_a_ping_is_answered_while_an_answer_comes() {
    let w = scripted(json!([{"chunks": 1000, "chunk_ms": 100, "step_ms": 1}])).await;
    let mut c = w.duplex().await;
    c.ask(500).await;
    c.until("response.output_audio.delta").await;
    c.socket.send(Message::Ping(b"there?".to_vec().into())).await.unwrap();
    use futures_util::StreamExt as _;
    loop {
        match c.socket.next().await.unwrap().unwrap() {
            Message::Pong(data) => break assert_eq!(&data[..], b"there?"),
            Message::Text(text) => assert!(!text.contains("\"response.done\""), "only after all of it"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn t4_no_frame_reaches_a_mebibyte() {
    let w = scripted(json!([{"chunks": 1, "chunk_ms": 30_000}])).await;
    let mut c = w.connect("/v1/realtime").await;
    c.say(json!({"type": "session.update", "session": {"instructions": "x".repeat(500_000)}})).await;
    c.until("session.updated").await;
    let item = json!({"content": [{"type": "input_text", "text": "y".repeat(400_000)}]});
    c.say(json!({"type": "conversation.item.create", "item": item})).await;
    assert_eq!(c.turn(1000).await.iter().filter(|e| e["type"] == "response.output_audio.delta").count(), 8);
    assert!(c.seen.iter().all(|e| e.to_string().len() < 1 << 20));
    let much = json!({"type": "session.update", "session": {"instructions": "x".repeat(2 << 20)}});
    assert_eq!(c.refused(much).await, "invalid_session_config");
}

#[tokio::test]
async fn t8_a_refusal_closes_nothing() {
    let mut c = busy("/v1/realtime", &[]).await;
    assert!(of(&c.seen, "close").is_empty());
    c.say(json!({"type": "session.heartbeat"})).await;
    c.until("session.heartbeat_ack").await;
}

/// Every value under a key, at any depth.
fn visit<'a>(value: &'a Value, path: &str, see: &mut impl FnMut(&str, &'a Value)) {
    match value {
        Value::Object(map) => map.iter().for_each(|(k, v)| {
            see(&format!("{path}.{k}"), v);
            visit(v, &format!("{path}.{k}"), see);
        }),
        Value::Array(list) => list.iter().for_each(|v| visit(v, &format!("{path}[]"), see)),
        _ => {}
    }
}

#[tokio::test]
async fn e1_e12_e14_e22_every_event_has_the_shape_that_clients_read() {
    for headers in [&[][..], &[("openai-beta", "realtime=v1")][..]] {
        let c = busy_of(headers).await;
        let ids: HashSet<&str> = c.seen.iter().map(|e| e["event_id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), c.seen.len(), "E1: one each");
        for event in &c.seen {
            let kind = event["type"].as_str().unwrap();
            if kind.ends_with(".delta") {
                for key in ["response_id", "item_id", "delta"] {
                    assert!(event[key].is_string(), "E12: {event}");
                }
                assert!(event["output_index"].is_u64() && event["content_index"].is_u64(), "E12: {event}");
            }
            visit(event, kind, &mut |path, value| {
                if path.ends_with("_ms") {
                    assert!(value.is_null() || value.is_i64() || value.is_u64(), "E12: {path} is {value}");
                }
                let key = path.rsplit('.').next().unwrap();
                let inside = path.contains(".item.") || path.contains(".output[]") || path.contains(".part.");
                let strict =
                    ["status", "role", "content", "call_id", "name", "arguments", "type", "text", "transcript"];
                if inside && strict.contains(&key) || path.contains(".usage.") {
                    assert!(!value.is_null(), "E14: {path} in {event}");
                }
            });
        }
    }
}

async fn busy_of(headers: &[(&'static str, &str)]) -> Client {
    if headers.is_empty() { busy("/v1/realtime", headers).await } else { beta().await }
}

/// The same in the names of the beta, shorter.
async fn beta() -> Client {
    let w = textual(json!([{}])).await;
    let mut c = w.connect_with("/v1/realtime", &[("openai-beta", "realtime=v1")]).await;
    c.say(json!({"type": "input_audio_buffer.append", "audio": speech(1500)})).await;
    c.say(json!({"type": "input_audio_buffer.commit"})).await;
    c.say(json!({"type": "response.create"})).await;
    c.answer().await;
    c
}

#[tokio::test]
async fn e2_to_e7_e29_e30_errors_are_few_and_say_what_clients_compare() {
    let c = busy("/v1/realtime", &[]).await;
    let errors = of(&c.seen, "error");
    let got: Vec<_> = errors.iter().map(|e| (e["error"]["code"].as_str().unwrap(), &e["error"]["event_id"])).collect();
    // A cut beyond the end, of an answer just cancelled, is none. The answer that fails by itself is one.
    let want = [
        ("runtime_data_plane_stream_failed", &Value::Null),
        ("response_cancel_not_active", &json!("mine-1")),
        ("input_audio_buffer_commit_empty", &json!("mine-2")),
        ("item_create_duplicate_item_id", &json!("mine-3")),
    ];
    assert_eq!(got, want);
    for error in &errors {
        let keys: HashSet<&str> = error["error"].as_object().unwrap().keys().map(String::as_str).collect();
        assert!(["type", "message", "code", "param", "event_id"].iter().all(|k| keys.contains(k)), "{error}");
        assert!(error["error"]["message"].is_string());
    }
    let cancel = errors.iter().find(|e| e["error"]["event_id"] == "mine-1").unwrap();
    assert!(cancel["error"]["message"].as_str().unwrap().starts_with("Cancellation failed"));
    assert_eq!(of(&c.seen, "conversation.item.truncated").len(), 2);
}

#[tokio::test]
async fn e3_a_second_response_at_once_has_its_code() {
    let w = scripted(json!([{"step_ms": 50, "chunks": 100}])).await;
    let mut c = w.connect("/v1/realtime").await;
    c.ask(500).await;
    c.until("response.created").await;
    assert_eq!(c.refused(json!({"type": "response.create"})).await, "conversation_already_has_active_response");
}

#[tokio::test]
async fn e8_metadata_comes_back_as_strings_alone_and_ours_beside_it() {
    let c = busy("/v1/realtime", &[]).await;
    for name in ["response.created", "response.done"] {
        let event = of(&c.seen, name)[0];
        assert_eq!(event["response"]["metadata"], json!({"topic": "weather"}), "{name}");
        assert!(event["response"]["omni"].is_object(), "{name}");
    }
    let w = scripted(json!([{}])).await;
    let mut c = w.duplex().await;
    c.append(500).await;
    c.say(json!({"type": "input_audio_buffer.commit"})).await;
    c.say(json!({"type": "response.create", "response": {"metadata": {"topic": "weather"}}})).await;
    let turn = c.answer().await;
    assert_eq!(done(&turn)["response"]["metadata"]["topic"], "weather");
    assert_eq!(done(&turn)["response"]["metadata"]["committed"], true);
}

#[tokio::test]
async fn e9_e10_the_session_is_one_that_clients_can_read() {
    let w = scripted(json!([{}])).await;
    let mut c = w.connect("/v1/realtime").await;
    let session = c.next().await["session"].clone();
    let pcm = json!({"type": "audio/pcm", "rate": 24000});
    for side in ["input", "output"] {
        assert_eq!(session["audio"][side]["format"], pcm);
    }
    assert_eq!((&session["type"], &session["object"]), (&json!("realtime"), &json!("realtime.session")));
    assert!(session["output_modalities"].as_array().unwrap().iter().all(|m| *m == "text" || *m == "audio"));
    assert!(session["audio"]["output"]["voice"].is_string() && session["expires_at"].is_u64());
    assert!(session["tool_choice"].is_string());
    // Nothing here finds turns, so none are found.
    assert_eq!(session["audio"]["input"]["turn_detection"], Value::Null);
    let update = json!({"audio": {"input": {"transcription": {"model": "whisper-1", "language": "en", "other": 1}}}});
    c.say(json!({"type": "session.update", "session": update})).await;
    let session = c.until("session.updated").await["session"].clone();
    assert_eq!(session["audio"]["input"]["transcription"], json!({"model": "whisper-1", "language": "en"}));
    // 24 kHz comes in, 16 kHz is heard.
    c.say(json!({"type": "session.update", "session": {"instructions": "x"}})).await;
}

#[tokio::test]
async fn e11_e13_e15_e19_e20_an_answer_comes_in_the_stock_order() {
    let c = busy("/v1/realtime", &[]).await;
    let at = |name: &str| c.seen.iter().position(|e| e["type"] == name).unwrap();
    let turn = &c.seen[at("response.created")..=at("rate_limits.updated")];
    let want = [
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        "response.output_audio.delta",
        "response.output_audio_transcript.delta",
        "response.output_audio.delta",
        "response.output_audio_transcript.delta",
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
        "rate_limits.updated",
    ];
    assert_eq!(names(turn), want);
    assert_eq!(turn[3]["part"]["type"], "audio");
    assert_eq!(turn[11]["item"]["content"][0]["type"], "output_audio");
    assert_eq!((&turn[2]["item"]["role"], &turn[2]["item"]["content"]), (&json!("assistant"), &json!([])));
    // E13, E20: one id for what the user said, and each item knows the one before it.
    let user = &of(&c.seen, "input_audio_buffer.committed")[0]["item_id"];
    for name in ["input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped"] {
        assert_eq!(of(&c.seen, name)[0]["item_id"], *user);
    }
    let added = of(&c.seen, "conversation.item.added");
    assert_eq!((&added[0]["item"]["id"], &added[0]["previous_item_id"]), (user, &Value::Null));
    for pair in added.windows(2) {
        assert_eq!(pair[1]["previous_item_id"], pair[0]["item"]["id"]);
    }
    assert!(of(&c.seen, "conversation.item.created").is_empty());
    // The written answer.
    let written = of(&c.seen, "response.done")[1];
    assert_eq!(written["response"]["output"][0]["content"][0]["type"], "output_text");
}

#[tokio::test]
async fn e16_e17_e18_e25_every_response_ends_once_and_says_how() {
    let c = busy("/v1/realtime", &[]).await;
    let ends = of(&c.seen, "response.done");
    assert_eq!(ends.len(), of(&c.seen, "response.created").len());
    let statuses: Vec<_> = ends.iter().map(|e| e["response"]["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["completed", "completed", "cancelled", "failed"]);
    for end in ends {
        let response = &end["response"];
        let usage = &response["usage"];
        assert!(["input_tokens", "output_tokens", "total_tokens"].iter().all(|k| usage[k].is_u64()));
        assert!(usage["input_token_details"].is_object() && usage["output_token_details"].is_object());
        match response["status"].as_str().unwrap() {
            "completed" => assert_eq!(response["status_details"], Value::Null),
            "failed" => assert!(response["status_details"]["error"]["message"].is_string(), "{response}"),
            _ => assert!(response["status_details"]["reason"].is_string()),
        }
        for item in response["output"].as_array().unwrap() {
            assert!(["completed", "in_progress", "incomplete"].contains(&item["status"].as_str().unwrap()));
        }
    }
    assert!(of(&c.seen, "rate_limits.updated").iter().all(|e| e["rate_limits"] == json!([])));
}

#[tokio::test]
async fn e21_e24_e26_ids_are_kept_and_every_change_is_acknowledged() {
    let c = busy("/v1/realtime", &[]).await;
    assert!(of(&c.seen, "conversation.item.added").iter().any(|e| e["item"]["id"] == "mine"));
    assert_eq!(of(&c.seen, "conversation.item.deleted")[0]["item_id"], "mine");
    assert!(of(&c.seen, "output_audio_buffer.cleared")[0]["response_id"].is_string());
    let heard = of(&c.seen, "conversation.item.input_audio_transcription.completed")[0];
    assert_eq!((&heard["transcript"], &heard["content_index"]), (&json!("good day"), &json!(0)));
    assert_eq!(heard["usage"], json!({"type": "duration", "seconds": 1}));
}

#[tokio::test]
async fn e23_the_beta_hears_its_own_names_and_no_others() {
    let ga = ["response.output_audio.delta", "response.output_audio_transcript.delta", "conversation.item.added"];
    let old = ["response.audio.delta", "response.audio_transcript.delta", "conversation.item.created"];
    let c = beta().await;
    assert!(old.iter().all(|n| !of(&c.seen, n).is_empty()) && ga.iter().all(|n| of(&c.seen, n).is_empty()));
    assert_eq!(c.seen[1]["type"], "conversation.created");
    let c = busy("/v1/realtime", &[]).await;
    assert!(ga.iter().all(|n| !of(&c.seen, n).is_empty()) && old.iter().all(|n| of(&c.seen, n).is_empty()));
    assert!(of(&c.seen, "conversation.created").is_empty());
}

#[tokio::test]
async fn e27_turn_detection_is_had_or_refused_and_never_promised_in_vain() {
    let w = scripted(json!([{}])).await;
    let mut c = w.connect("/v1/realtime").await;
    c.until("session.created").await;
    let semantic = json!({"type": "semantic_vad", "eagerness": "low"});
    let update =
        |td: &Value| json!({"type": "session.update", "session": {"audio": {"input": {"turn_detection": td}}}});
    c.say(update(&semantic)).await;
    assert_eq!(c.until("session.updated").await["session"]["audio"]["input"]["turn_detection"], semantic);
    assert_eq!(c.refused(update(&json!({"type": "server_vad"}))).await, "server_vad_unavailable");
    c.say(update(&Value::Null)).await;
    assert_eq!(c.until("session.updated").await["session"]["audio"]["input"]["turn_detection"], Value::Null);
}

#[tokio::test]
async fn e31_text_is_answered_where_the_graph_takes_it() {
    let w = textual(json!([{"text": "hello world"}])).await;
    let mut c = w.connect("/v1/realtime").await;
    assert_eq!(c.next().await["session"]["capabilities"]["supports_text_only_turn"], true);
    let item = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]});
    c.say(json!({"type": "conversation.item.create", "item": item})).await;
    c.say(json!({"type": "response.create"})).await;
    assert_eq!(transcript(&c.answer().await), "hello world");
}

#[tokio::test]
async fn e32_what_changes_in_mid_session_holds_from_the_next_answer_on() {
    let w = scripted(json!([{"text": "{instructions} {voice}", "step_ms": 20, "chunks": 2}])).await;
    let mut c = w.connect("/v1/realtime").await;
    let update = |session: Value| json!({"type": "session.update", "session": session});
    c.say(update(json!({"instructions": "one", "voice": "joe"}))).await;
    c.ask(500).await;
    c.until("response.created").await;
    let tools = json!([{"type": "function", "name": "f", "parameters": {"type": "object"}}]);
    c.say(update(json!({"instructions": "two", "tools": tools, "tool_choice": "auto", "temperature": 0.3}))).await;
    c.until("rate_limits.updated").await;
    assert_eq!(transcript(&c.seen), "one joe");
    let at = c.seen.len();
    c.turn(500).await;
    assert_eq!(transcript(&c.seen[at..]), "two joe");
    assert!(of(&c.seen, "error").is_empty());
    assert_eq!(of(&c.seen, "session.updated").len(), 2);
}
