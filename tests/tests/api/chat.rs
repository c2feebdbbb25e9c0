//! `POST /v1/chat/completions`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use omni_flow_transports::api::Config;
use serde_json::{Value, json};

use super::nodes::LETTER;
use super::world::{CHAT, World, world};

async fn ask(w: &World, text: &str, more: Value) -> super::world::Answer {
    let mut body = json!({"messages": [{"role": "system", "content": "Be."}, {"role": "user", "content": text}]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    w.post("/v1/chat/completions", &body).await
}

#[tokio::test]
async fn text_alone_makes_no_audio() {
    let w = world(CHAT, 2, Config::default()).await;
    // The voice would fail.
    let a = ask(&w, "please fail now", json!({})).await;
    let got = a.json();
    assert_eq!((a.status, &got["choices"][0]["message"]["content"]), (200, &json!("please fail now ")));
    assert_eq!((&got["object"], &got["choices"][0]["finish_reason"]), (&json!("chat.completion"), &json!("stop")));
    assert_eq!(got["usage"]["total_tokens"], 10);
    let a = ask(&w, "one", json!({"max_tokens": 1, "extra_body": {"return_stage_metrics": true}})).await.json();
    assert_eq!(a["choices"][0]["finish_reason"], "length");
    assert!(a["metrics"]["total_ms"].is_number() && a["metrics"]["first_audio_ms"].is_null(), "{a}");
    w.empty().await;
}

#[tokio::test]
async fn audio_comes_in_both_shapes() {
    let w = world(CHAT, 2, Config::default()).await;
    let about = json!({"format": "pcm", "sample_rate_hz": 8000, "frame_count": 6 * LETTER, "channels": 1});
    let stock = json!({"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "pcm16"}});
    let got = ask(&w, "one two", stock).await.json();
    assert_eq!(got["choices"].as_array().unwrap().len(), 1);
    let (choice, message) = (&got["choices"][0], &got["choices"][0]["message"]);
    assert_eq!((&message["content"], &message["audio"]["transcript"]), (&Value::Null, &json!("one two ")));
    assert_eq!(STANDARD.decode(message["audio"]["data"].as_str().unwrap()).unwrap().len(), 6 * LETTER * 2);
    assert_eq!(choice["audio_metadata"], about);
    let got = ask(&w, "one two", json!({"modalities": ["text", "audio"]})).await.json();
    assert_eq!(got["choices"][0]["message"]["content"], "one two ");
    assert_eq!(got["choices"][1]["audio_metadata"]["format"], "wav");
    let got = ask(&w, "one two", json!({"modalities": ["audio"]})).await.json();
    assert!(got["choices"][0]["message"]["audio"]["data"].is_string() && got["choices"].as_array().unwrap().len() == 1);
    // Audio that is asked for and does not come is an error.
    for (text, says) in [("mute", "no audio"), ("fail", "told to")] {
        let a = ask(&w, text, json!({"modalities": ["audio"]})).await;
        assert!(a.status == 500 && a.error().contains(says), "{}", a.text());
    }
    w.empty().await;
}

#[tokio::test]
async fn a_stream_ends_in_done() {
    let w = world(CHAT, 2, Config::default()).await;
    let more = json!({"stream": true, "stream_options": {"include_usage": true}, "modalities": ["text", "audio"]});
    let a = ask(&w, "one two", more.clone()).await;
    assert!(a.whole && a.text().ends_with("data: [DONE]\n\n"));
    let all = a.events();
    let (usage, parts) = all.split_last().unwrap();
    assert_eq!((&usage["choices"], &usage["usage"]["prompt_tokens"]), (&json!([]), &json!(7)));
    let of = |modality: &str| -> Vec<&Value> {
        parts.iter().filter(|p| p["modality"] == modality).map(|p| &p["choices"][0]).collect()
    };
    let text: String = of("text").iter().filter_map(|c| c["delta"]["content"].as_str()).collect();
    assert_eq!(text, "one two ");
    let wav: Vec<u8> = of("audio")
        .iter()
        .filter_map(|c| c["delta"]["content"].as_str())
        .flat_map(|d| STANDARD.decode(d).unwrap())
        .collect();
    assert_eq!((&wav[..4], wav.len()), (&b"RIFF"[..], 44 + 6 * LETTER * 2));
    let counted: u64 = of("audio").iter().filter_map(|c| c["audio_metadata"]["frame_count"].as_u64()).sum();
    assert_eq!(counted, 6 * LETTER as u64);
    let reasons: Vec<usize> =
        (0..parts.len()).filter(|i| !parts[*i]["choices"][0]["finish_reason"].is_null()).collect();
    assert_eq!(reasons, [parts.len() - 1], "on the last part alone");
    let mut stock = more;
    stock["audio"] = json!({"voice": "alloy", "format": "pcm16"});
    let all = ask(&w, "one two", stock).await.events();
    let deltas: Vec<&Value> = all.iter().filter_map(|p| p["choices"][0]["delta"].get("audio")).collect();
    let said: String = deltas.iter().filter_map(|d| d["transcript"].as_str()).collect();
    assert_eq!(said, "one two ");
    assert!(deltas.iter().all(|d| d["id"] == deltas[0]["id"]) && all.iter().all(|p| p.get("modality").is_none()));
    w.empty().await;
}

#[tokio::test]
async fn tools_are_called_and_failures_told() {
    let w = world(CHAT, 2, Config::default()).await;
    let tools = json!({"tools": [{"type": "function", "function": {"name": "light"}}]});
    let got = ask(&w, "call", tools.clone()).await.json();
    let call = &got["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(
        (&call["id"], &call["function"]["name"], &call["function"]["arguments"]),
        (&json!("c1"), &json!("light"), &json!("{\"on\":1}"))
    );
    assert_eq!(
        (&got["choices"][0]["finish_reason"], &got["choices"][0]["message"]["content"]),
        (&json!("tool_calls"), &Value::Null)
    );
    let got = ask(&w, "miscall", tools.clone()).await.json();
    assert_eq!(got["choices"][0]["message"]["content"], "{on", "what the model said, no call");
    let mut streamed = tools;
    streamed["stream"] = true.into();
    let all = ask(&w, "call", streamed).await.events();
    let call = all.iter().find_map(|p| p["choices"][0]["delta"].get("tool_calls"));
    let call = call.unwrap_or_else(|| panic!("{all:?}"));
    assert_eq!((&call[0]["index"], &call[0]["type"]), (&json!(0), &json!("function")));
    for stream in [false, true] {
        let a = ask(&w, "unreachable", json!({"stream": stream})).await;
        assert!(a.status == 503 && a.error() == "nobody there", "{}", a.text());
        // One that has begun ends in an error, and without `[DONE]`.
        let a = ask(&w, "well unreachable", json!({"stream": true})).await;
        assert_eq!((a.status, a.whole, &a.events().last().unwrap()["error"]["code"]), (200, true, &json!(503)));
        assert!(!a.text().contains("[DONE]"));
    }
    w.empty().await;
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused() {
    let w = world(CHAT, 2, Config::default()).await;
    for (more, says) in [
        (json!({"messages": []}), "messages"),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}),
            "image_url",
        ),
        (json!({"modalities": ["smell"]}), "modalities"),
        (json!({"modalities": ["audio"], "audio": {"voice": "nobody"}}), "nobody"),
        (json!({"modalities": ["audio"], "audio": {"format": "aiff"}}), "wav"),
        (json!({"modalities": ["audio"], "audio": {"format": "mp3"}, "stream": true}), "streamed"),
        (json!({"n": 2}), "one answer"),
        (json!({"logprobs": true}), "logprobs"),
        (json!({"response_format": {"type": "json_schema"}}), "schema"),
        (json!({"temperature": -1}), "temperature"),
        (json!({"tools": [{}]}), "tools"),
        (json!({"extra_body": 1}), "extra_body"),
    ] {
        let a = ask(&w, "x", more.clone()).await;
        assert!(a.status == 400 && a.error().contains(says), "{more}: {}", a.text());
    }
    assert_eq!(ask(&w, "x", json!({"model": "other"})).await.status, 404);
    assert_eq!(w.sessions(), 0);
}
