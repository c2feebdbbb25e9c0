//! `POST /v1/audio/speech` and its batch.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use omni_flow_media::file::{AudioFile, Input};
use omni_flow_transports::api::{Config, Limits};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use super::nodes::{LETTER, RATE};
use super::world::{CHAT, SPEAK, world};

const SPEECH: &str = "/v1/audio/speech";

fn frames(file: Vec<u8>) -> (usize, u32) {
    let mut file = AudioFile::new(Input::memory(file), "clip").unwrap();
    let mut samples = Vec::new();
    while file.next(&mut samples).unwrap() > 0 {}
    (samples.len() / file.spec().channels(), file.spec().rate())
}

#[tokio::test]
async fn a_clip_comes_in_each_format() {
    let w = world(SPEAK, 4, Config::default()).await;
    for (format, kind) in [("wav", "audio/wav"), ("flac", "audio/flac"), ("mp3", "audio/mpeg"), ("opus", "audio/ogg")] {
        let a = w.post(SPEECH, &json!({"input": "hello there", "response_format": format})).await;
        assert_eq!((a.status, a.header("content-type")), (200, Some(kind)), "{format}");
        assert_eq!(a.header("x-vllm-omni-input-tokens"), Some("2"));
        assert_eq!(a.header("x-omni-flow-output-tokens"), Some("25"), "20 ms each");
        let (got, rate) = frames(a.body);
        // Codecs of blocks may pad.
        let seconds = got as f64 / f64::from(rate);
        assert!((0.5..0.8).contains(&seconds), "{format}: {seconds} s");
    }
    let a = w.post(SPEECH, &json!({"input": "hello there", "response_format": "pcm", "sample_rate": 16_000})).await;
    assert_eq!((a.status, a.body.len()), (200, 10 * LETTER * 2 * 2));
    w.empty().await;
}

#[tokio::test]
async fn speed_changes_the_length_and_not_the_rate() {
    let w = world(SPEAK, 4, Config::default()).await;
    let a = w.post(SPEECH, &json!({"input": "abcdefghij abcdefghij", "speed": 2.0})).await;
    let (got, rate) = frames(a.body);
    let want = 20 * LETTER / 2;
    assert!(got.abs_diff(want) < want / 10 && rate == RATE, "{got} of {want}");
}

#[tokio::test]
async fn a_stream_is_the_clip_in_pieces() {
    let w = world(SPEAK, 4, Config::default()).await;
    let text = "one two three four";
    let clip = w.post(SPEECH, &json!({"input": text, "response_format": "pcm"})).await.body;
    let raw = w.post(SPEECH, &json!({"input": text, "response_format": "pcm", "stream_format": "audio"})).await;
    assert_eq!(raw.header("content-type"), Some("audio/pcm; rate=8000; channels=1"));
    assert!(raw.whole && raw.body == clip);
    let wav = w.post(SPEECH, &json!({"input": text, "stream_format": "audio"})).await;
    assert_eq!(&wav.body[4..8], [0xff; 4], "no length is known yet");
    assert_eq!(wav.body[44..], clip);
    let sse = w.post(SPEECH, &json!({"input": text, "response_format": "pcm", "stream": true})).await;
    let events = sse.events();
    let (last, deltas) = events.split_last().unwrap();
    let joined: Vec<u8> = deltas.iter().flat_map(|d| STANDARD.decode(d["audio"].as_str().unwrap()).unwrap()).collect();
    assert_eq!(joined, clip);
    assert!(deltas.len() >= 2, "as it is made");
    assert!(deltas.iter().all(|d| d["type"] == "speech.audio.delta" && d["response_format"] == "pcm"));
    assert_eq!(last["type"], "speech.audio.done");
    assert_eq!(last["usage"]["total_tokens"], 4 + 15 * 400 / 160 + 1);
    assert!(sse.text().starts_with("event: speech.audio.delta\ndata: "));
}

#[tokio::test]
async fn what_cannot_be_is_refused_in_words_before_anything_is_made() {
    let w = world(SPEAK, 4, Config::default()).await;
    for (body, status, says) in [
        (json!({"input": " "}), 400, "cannot be empty"),
        (json!({}), 400, "cannot be empty"),
        (json!({"input": 3}), 400, "a string"),
        (json!({"input": "x", "model": "other"}), 404, "does not exist"),
        (json!({"input": "x", "voice": "nobody"}), 400, "there are"),
        (json!({"input": "x", "response_format": "aiff"}), 400, "wav, pcm"),
        (json!({"input": "x", "response_format": "opus", "sample_rate": 11_025}), 400, "11025"),
        (json!({"input": "x", "sample_rate": 0}), 400, "sample_rate"),
        (json!({"input": "x", "speed": 9}), 400, "0.25"),
        (json!({"input": "x", "speed": 1.5, "stream": true}), 400, "1.0"),
        (json!({"input": "x", "response_format": "mp3", "stream": true}), 400, "cannot be streamed"),
        (json!({"input": "x", "stream_format": "video"}), 400, "stream_format"),
        (json!({"input": "x", "instructions": "y".repeat(501)}), 400, "500"),
        (json!({"input": "x", "word_timestamps": true}), 400, "aligns"),
        (json!({"input": "x", "task_type": "Sing"}), 400, "CustomVoice"),
        (json!({"input": "x", "ref_audio": "http://x/y.wav"}), 400, "own"),
        (json!({"input": "x", "speaker_embedding": [null]}), 400, "JSON"),
        (json!({"input": "x".repeat(300_000)}), 400, "longer"),
    ] {
        let text = body.to_string().replace("null", "1e400");
        let a = w.request("POST", SPEECH, "content-type: application/json\r\n", text.as_bytes()).await;
        let error = a.error();
        assert!(a.status == status && error.contains(says), "{text:.80}: {} {error}", a.status);
    }
    for (headers, body, status) in [
        ("content-type: application/json\r\n", "[1]", 400),
        ("content-type: application/json\r\n", "{", 400),
        ("content-type: text/plain\r\n", "{}", 415),
    ] {
        assert_eq!(w.request("POST", SPEECH, headers, body.as_bytes()).await.status, status);
    }
    let gets = w.get(SPEECH).await;
    assert_eq!((gets.status, gets.header("allow")), (405, Some("POST")));
    gets.error();
    assert_eq!(w.sessions(), 0);
    let ids = w.request("GET", "/health", "x-request-id: mine\r\n", b"").await;
    assert_eq!(ids.header("x-request-id"), Some("mine"));
}

#[tokio::test]
async fn a_failure_has_a_status_or_the_last_event() {
    let w = world(SPEAK, 4, Config::default()).await;
    for (text, says) in [("fail", "told to fail"), ("mute", "no audio"), ("panic", "panic")] {
        for more in [json!({}), json!({"stream": true}), json!({"stream_format": "audio"})] {
            let mut body = json!({"input": text});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let a = w.post(SPEECH, &body).await;
            assert!(a.status == 500 && a.error().contains(says), "{body}: {}", a.text());
        }
    }
    w.empty().await;
}

#[tokio::test]
async fn a_client_that_leaves_or_does_not_read_takes_its_session_along() {
    let limits = Limits { write_stall: std::time::Duration::from_millis(300), ..Limits::default() };
    let w = world(SPEAK, 2, Config { limits, ..Config::default() }).await;
    let body = json!({"input": "a ".repeat(100_000), "stream_format": "audio"}).to_string();
    let head = "content-type: application/json\r\n";
    for _ in 0..20 {
        let mut socket = w.send("POST", SPEECH, head, body.as_bytes()).await;
        socket.read_exact(&mut [0; 1]).await.unwrap();
        drop(socket);
        w.empty().await;
    }
    let silent = w.send("POST", SPEECH, head, body.as_bytes()).await;
    let early = w.send("POST", SPEECH, head, body.as_bytes()).await;
    drop(early);
    w.empty().await;
    drop(silent);
}

#[tokio::test]
async fn as_many_as_there_are_places() {
    let w = world(SPEAK, 1, Config::default()).await;
    let body = json!({"input": "a ".repeat(100_000), "stream_format": "audio"});
    let mut held = w.send("POST", SPEECH, "content-type: application/json\r\n", body.to_string().as_bytes()).await;
    held.read_exact(&mut [0; 1]).await.unwrap();
    let a = w.post(SPEECH, &json!({"input": "x"})).await;
    assert_eq!((a.status, a.header("retry-after")), (429, Some("1")));
    a.error();
    drop(held);
    w.empty().await;
    assert_eq!(w.post(SPEECH, &json!({"input": "x"})).await.status, 200);
}

#[tokio::test]
async fn one_bad_item_does_not_fail_a_batch() {
    let w = world(SPEAK, 2, Config::default()).await;
    let items: Vec<Value> = ["one", "", "three", "fail", "five"].iter().map(|t| json!({"input": t})).collect();
    let a = w.post("/v1/audio/speech/batch", &json!({"items": items, "response_format": "pcm", "stream": true})).await;
    let got = a.json();
    assert_eq!((a.status, &got["total"], &got["succeeded"], &got["failed"]), (200, &json!(5), &json!(3), &json!(2)));
    for (i, (letters, status)) in
        [(3, "success"), (0, "error"), (5, "success"), (0, "error"), (4, "success")].iter().enumerate()
    {
        let item = &got["results"][i];
        assert_eq!((&item["index"], &item["status"]), (&json!(i), &json!(status)));
        let bytes = STANDARD.decode(item["audio_data"].as_str().unwrap_or_default()).unwrap();
        assert_eq!(bytes.len(), letters * LETTER * 2);
    }
    for items in [json!([]), json!(vec![json!({"input": "x"}); 33]), json!("x")] {
        assert_eq!(w.post("/v1/audio/speech/batch", &json!({"items": items})).await.status, 400);
    }
    w.empty().await;
}

#[tokio::test]
async fn audio_of_a_chat_is_asked_for_there() {
    let w = world(CHAT, 2, Config::default()).await;
    let a = w.post(SPEECH, &json!({"input": "x"})).await;
    assert!(a.status == 400 && a.error().contains("/v1/chat/completions"));
    let a = w.form("/v1/audio/transcriptions", &[], None).await;
    assert_eq!((a.status, a.error().as_str()), (404, "Transcriptions API is not available"));
}

#[tokio::test]
async fn a_clip_has_a_length_that_fits_and_a_stream_has_none() {
    let limits = Limits { clip_seconds: 1, ..Limits::default() };
    let w = world(SPEAK, 2, Config { limits, ..Config::default() }).await;
    // A letter is 50 ms.
    let long = "abcdefghijklmnopqrstuvwxyz";
    let a = w.post(SPEECH, &json!({"input": long})).await;
    assert!(a.status == 400 && a.error().contains("ask for a stream"), "{}", a.text());
    let a = w.post(SPEECH, &json!({"input": long, "stream_format": "audio", "response_format": "pcm"})).await;
    assert_eq!((a.status, a.whole, a.body.len()), (200, true, 26 * LETTER * 2));
}
