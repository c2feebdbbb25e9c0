//! `WS /v1/audio/speech/stream`.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use omni_flow_transports::api::{Config, Limits};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::nodes::LETTER;
use super::world::{LONG, SPEAK, World, world};

struct Client(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Client {
    async fn open(w: &World) -> Self {
        let url = format!("ws://{}/v1/audio/speech/stream", w.address);
        Self(connect_async(url).await.unwrap().0)
    }
    async fn say(&mut self, event: Value) {
        self.0.send(Message::text(event.to_string())).await.unwrap();
    }
    /// The next event; of audio its length, of the end its code.
    async fn next(&mut self) -> Value {
        match tokio::time::timeout(LONG, self.0.next()).await.expect("an event") {
            Some(Ok(Message::Text(text))) => serde_json::from_str(&text).unwrap(),
            Some(Ok(Message::Binary(bytes))) => json!(bytes.len()),
            Some(Ok(Message::Close(close))) => json!({"type": "close", "code": close.map_or(0, |c| u16::from(c.code))}),
            other => json!({"type": format!("{other:?}")}),
        }
    }
    /// One unit: its start, its bytes, and its end.
    async fn unit(&mut self) -> (Value, u64, Value) {
        let start = self.next().await;
        assert_eq!(start["type"], "audio.start", "{start}");
        let mut bytes = 0;
        loop {
            match self.next().await {
                Value::Number(n) => bytes += n.as_u64().unwrap(),
                done => return (start, bytes, done),
            }
        }
    }
}

#[tokio::test]
async fn text_in_pieces_becomes_speech_unit_by_unit() {
    let w = world(SPEAK, 2, Config::default()).await;
    let mut c = Client::open(&w).await;
    c.say(json!({"type": "session.config", "response_format": "pcm", "stream_audio": true, "split_granularity": "sentence"})).await;
    for piece in ["One t", "wo. Thr", "ee. ", "Four"] {
        c.say(json!({"type": "input.text", "text": piece})).await;
    }
    c.say(json!({"type": "input.done"})).await;
    for (i, (text, letters)) in [("One two.", 7), ("Three.", 6), ("Four", 4)].iter().enumerate() {
        let (start, bytes, done) = c.unit().await;
        assert_eq!(
            (&start["sentence_text"], &start["sample_rate"], &start["format"]),
            (&json!(text), &json!(8000), &json!("pcm"))
        );
        assert_eq!(bytes as usize, letters * LETTER * 2);
        assert_eq!(
            done,
            json!({"type": "audio.done", "utterance_index": 0, "sentence_index": i, "total_bytes": bytes, "error": false})
        );
    }
    assert_eq!(c.next().await, json!({"type": "session.done", "utterance_index": 0, "total_sentences": 3}));
    // An empty flush, then whole clips.
    c.say(json!({"type": "input.done"})).await;
    assert_eq!(c.next().await["total_sentences"], 0);
    c.say(json!({"type": "session.config"})).await;
    c.say(json!({"type": "input.text", "text": "Five. Six."})).await;
    c.say(json!({"type": "input.done"})).await;
    let (start, bytes, done) = c.unit().await;
    assert_eq!(
        (&start["utterance_index"], &start["format"], start.get("sample_rate")),
        (&json!(2), &json!("wav"), None)
    );
    assert_eq!((bytes as usize, &done["total_bytes"]), (44 + 9 * LETTER * 2, &json!(bytes)));
    assert_eq!(c.next().await["utterance_index"], 2);
    c.say(json!({"type": "session.close"})).await;
    assert_eq!(c.next().await, json!({"type": "close", "code": 1000}));
    w.empty().await;
}

#[tokio::test]
async fn the_first_message_configures_and_later_errors_are_survived() {
    let w = world(SPEAK, 2, Config::default()).await;
    for first in [
        json!({"type": "input.text", "text": "x"}),
        json!({"type": "session.config", "stream_audio": true}),
        json!({"type": "session.config", "voice": "nobody"}),
        json!({"type": "session.config", "split_granularity": "word"}),
        json!([]),
    ] {
        let mut c = Client::open(&w).await;
        c.say(first.clone()).await;
        assert_eq!(c.next().await["type"], "error", "{first}");
        assert_eq!(c.next().await["type"], "close", "{first}");
    }
    let mut c = Client::open(&w).await;
    c.say(json!({"type": "session.config", "response_format": "pcm"})).await;
    c.say(json!({"type": "input.text", "text": "kept"})).await;
    c.say(json!({"type": "session.config", "response_format": "wav"})).await;
    assert!(c.next().await["message"].as_str().unwrap().contains("between utterances"));
    for wrong in [
        json!({"type": "sing"}),
        json!({"type": "input.text"}),
        json!({"type": "input.text", "text": "y".repeat(200_000)}),
    ] {
        c.say(wrong).await;
        assert_eq!(c.next().await["type"], "error");
    }
    c.0.send(Message::binary(vec![1, 2])).await.unwrap();
    assert_eq!(c.next().await["type"], "error");
    c.say(json!({"type": "input.done"})).await;
    let (start, bytes, _) = c.unit().await;
    assert_eq!((&start["sentence_text"], bytes as usize), (&json!("kept"), 4 * LETTER * 2));
    assert_eq!(c.next().await["type"], "session.done");
    // A unit that fails is told, and closed where it had begun.
    c.say(json!({"type": "input.text", "text": "fail"})).await;
    c.say(json!({"type": "input.done"})).await;
    assert_eq!(c.next().await["type"], "audio.start");
    assert!(c.next().await["message"].as_str().unwrap().contains("told to fail"));
    assert_eq!(c.next().await["error"], true);
    assert_eq!(c.next().await["type"], "session.done");
    w.empty().await;
}

#[tokio::test]
async fn who_leaves_in_the_middle_or_says_nothing_holds_nothing() {
    let limits = Limits {
        ws_idle: Duration::from_millis(200),
        ws_first_message: Duration::from_millis(200),
        ..Limits::default()
    };
    let w = world(SPEAK, 1, Config { limits, ..Config::default() }).await;
    for _ in 0..20 {
        let mut c = Client::open(&w).await;
        c.say(json!({"type": "session.config", "response_format": "pcm", "stream_audio": true})).await;
        c.say(json!({"type": "input.text", "text": "a ".repeat(50_000)})).await;
        c.say(json!({"type": "input.done"})).await;
        assert_eq!(c.next().await["type"], "audio.start");
        drop(c);
        w.empty().await;
    }
    let mut c = Client::open(&w).await;
    assert_eq!(c.next().await["type"], "error");
    assert_eq!(c.next().await["type"], "close");
    let mut c = Client::open(&w).await;
    c.say(json!({"type": "session.config"})).await;
    assert_eq!(c.next().await["type"], "error");
    assert_eq!(c.next().await["type"], "close");
}
