//! V33, and clients that do what no client should.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use omni_flow_transports::realtime::host::Limits;
use omni_flow_transports::realtime::rules::outbox;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::world::{audio, done, of, scripted, speech, transcript, world};

/// Numbers that are the same each time.
struct Random(u64);
impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

#[tokio::test]
async fn v33_a_reader_that_stops_loses_its_own_session() {
    let limits = Limits { outbox: outbox::Limits { bytes: 1 << 20, ..outbox::Limits::default() }, ..Limits::default() };
    let answers = json!([{"chunks": 400, "chunk_ms": 200, "step_ms": 5}]);
    let w = world("scripted-duplex.yaml", json!({"nodes": {"partner": {"answers": answers}}}), limits).await;
    let mut stalled = w.duplex().await;
    stalled.ask(1000).await;
    let mut others = Vec::new();
    for _ in 0..9 {
        let mut c = w.duplex().await;
        others.push(tokio::spawn(async move { c.turn(1000).await }));
    }
    for other in others {
        let turn = other.await.unwrap();
        assert_eq!(done(&turn)["response"]["status"], "completed");
        assert_eq!(audio(&turn).len(), 400 * 9_600);
        assert!(of(&turn, "error").is_empty());
    }
    // It reads again, too late.
    let rest = stalled.rest().await;
    assert_eq!(of(&rest, "error")[0]["error"]["code"], "output_overflow");
    let response = &done(&rest)["response"];
    assert_eq!(response["status"], "failed");
    assert_eq!(response["status_details"]["error"]["code"], "output_overflow");
    assert_eq!(of(&rest, "session.closed")[0]["reason"], "output_overflow");
    assert!(of(&rest, "response.output_audio.delta").len() < 400);
    w.empty().await;
}

/// Something that may be an event.
fn garbage(r: &mut Random) -> String {
    const TYPES: [&str; 24] = [
        "session.update",
        "session.heartbeat",
        "session.event_ack",
        "session.resume",
        "input_audio_buffer.append",
        "input_audio_buffer.commit",
        "input.commit",
        "input_audio_buffer.clear",
        "input.cancel",
        "input.text.append",
        "conversation.item.create",
        "conversation.item.retrieve",
        "conversation.item.delete",
        "conversation.item.truncate",
        "response.create",
        "response.cancel",
        "output_audio_buffer.clear",
        "barge_in",
        "turn.signal",
        "playback.ack",
        "push_chunk",
        "zzz",
        "",
        "\u{0}",
    ];
    const KEYS: [&str; 24] = [
        "audio",
        "session",
        "item",
        "response",
        "item_id",
        "response_id",
        "event_id",
        "audio_end_ms",
        "played_ms",
        "video_frames",
        "format",
        "sample_rate_hz",
        "vad",
        "text",
        "event",
        "payload",
        "server_event_seq",
        "final",
        "turn_detection",
        "tools",
        "modalities",
        "extra_body",
        "overlap_policy",
        "content",
    ];
    fn value(r: &mut Random, depth: usize) -> Value {
        match r.below(if depth > 3 { 9 } else { 11 }) {
            0 => Value::Null,
            1 => json!(r.below(2) == 0),
            2 => json!(r.next() as i64),
            3 => json!(f64::from_bits(r.next())),
            4 => json!("x".repeat(r.below(200))),
            5 => json!("AAAAAAAA".repeat(r.below(100))),
            6 => json!(["pcm16", "g711_ulaw", "audio", "server_vad", "item_x", "user", "auto"][r.below(7)]),
            7 => json!(r.below(1000)),
            8 => json!("\u{1F600}é\u{0}"),
            9 => (0..r.below(5)).map(|_| value(r, depth + 1)).collect(),
            _ => object(r, depth + 1),
        }
    }
    fn object(r: &mut Random, depth: usize) -> Value {
        let mut map = serde_json::Map::new();
        for _ in 0..r.below(6) {
            map.insert(KEYS[r.below(KEYS.len())].to_owned(), value(r, depth));
        }
        map.into()
    }
    let mut event = object(r, 0);
    event["type"] = json!(TYPES[r.below(TYPES.len())]);
    let mut text = event.to_string();
    if r.below(6) == 0 {
        // Cut somewhere.
        let mut at = r.below(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        text.truncate(at);
    }
    text
}

#[tokio::test]
async fn no_message_hurts_a_session_or_another() {
    let w = scripted(json!([{"chunks": 2, "chunk_ms": 100}])).await;
    let mut quiet = w.duplex().await;
    for seed in 0..8 {
        let mut r = Random(seed);
        let mut c = w.duplex().await;
        for n in 0..400 {
            match r.below(40) {
                0 => c.socket.send(Message::binary(vec![n as u8; r.below(100)])).await.unwrap(),
                1 => c.append(100).await,
                _ => c.text(&garbage(&mut r)).await,
            }
            // Only what was asked closes it; this is told in the order of everything.
            if n % 20 == 19 {
                let id = format!("beat-{n}");
                c.say(json!({"type": "zzz", "event_id": id})).await;
                while c.until("error").await["error"]["event_id"] != id.as_str() {}
            }
        }
        assert!(c.seen.iter().all(|e| e["event_id"].is_string()), "seed {seed}");
        let faults = ["internal_error", "engine_error", "realtime_input_failed"];
        for error in of(&c.seen, "error") {
            assert!(!faults.contains(&error["error"]["code"].as_str().unwrap()), "seed {seed}: {error}");
        }
        assert_eq!(transcript(&quiet.turn(200).await), "hello world");
    }
}

#[tokio::test]
async fn a_frame_beyond_all_bounds_closes_the_socket() {
    let w = scripted(json!([{}])).await;
    let (mut sink, mut stream) = w.duplex().await.socket.split();
    let send = sink.send(Message::text("x".repeat((64 << 20) + 1)));
    let close = async {
        loop {
            match stream.next().await.unwrap().unwrap() {
                Message::Close(close) => return close.unwrap().code,
                _ => continue,
            }
        }
    };
    // The other side does not take all of it.
    let code = tokio::select! {
        code = close => code,
        () = async { let _ = send.await; std::future::pending().await } => unreachable!(),
    };
    assert_eq!(u16::from(code), 1009);
    let mut other = w.duplex().await;
    assert_eq!(done(&other.turn(200).await)["response"]["status"], "completed");
}

#[tokio::test]
async fn places_come_back_however_two_hundred_clients_go() {
    let mut limits = Limits::default();
    limits.lease.grace = Duration::from_millis(200);
    let answers = json!([{"chunks": 50, "chunk_ms": 100, "step_ms": 10}]);
    let with = json!({"session": {"max-sessions": 4}, "nodes": {"partner": {"answers": answers}}});
    let w = world("scripted-duplex.yaml", with, limits).await;
    let mut r = Random(7);
    for _ in 0..200 {
        let mut c = w.connect("/v1/realtime?duplex=1").await;
        for _ in 0..r.below(6) {
            let text = match r.below(5) {
                0 => json!({"type": "input_audio_buffer.append", "audio": speech(200), "is_speech": true}),
                1 => json!({"type": "input.commit"}),
                2 => json!({"type": "response.cancel"}),
                3 => json!("no event"),
                _ => {
                    if c.next().await["type"] == "gone" {
                        break;
                    }
                    continue;
                }
            };
            // It may have been refused: there are few places.
            if c.socket.send(Message::text(text.to_string())).await.is_err() {
                break;
            }
        }
        if r.below(3) == 0 {
            let _ = c.socket.close(None).await;
        }
    }
    w.empty().await;
    let mut all = Vec::new();
    for _ in 0..4 {
        all.push(w.duplex().await);
    }
    assert_eq!(w.connect("/v1/realtime").await.code().await, "resource_exhausted");
}
