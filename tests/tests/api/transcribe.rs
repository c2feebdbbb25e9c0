//! `POST /v1/audio/transcriptions`.

use omni_flow_media::encode::ClipFormat;
use omni_flow_transports::api::{Config, Limits};
use serde_json::json;

use super::world::{HEAR, World, recording, world};

const ROUTE: &str = "/v1/audio/transcriptions";

async fn hear(w: &World, texts: &[(&str, &str)], file: &[u8]) -> super::world::Answer {
    w.form(ROUTE, texts, Some(("file", "a.wav", "audio/wav", file))).await
}

#[tokio::test]
async fn text_comes_in_each_form() {
    let w = world(HEAR, 2, Config::default()).await;
    let wav = recording(2.5);
    let got = hear(&w, &[("model", "g")], &wav).await.json();
    assert_eq!(got, json!({"text": "0 0.5 1 0.5 2 0.5", "usage": {"type": "duration", "seconds": 2.5}}));
    let got = hear(
        &w,
        &[("response_format", "verbose_json"), ("timestamp_granularities[]", "segment"), ("language", "en")],
        &wav,
    )
    .await
    .json();
    assert_eq!(got["segments"][2], json!({"id": 2, "start": 2.0, "end": 2.5, "text": "2 0.5"}));
    assert_eq!((&got["duration"], &got["language"], &got["task"]), (&json!(2.5), &json!("en"), &json!("transcribe")));
    let srt = hear(&w, &[("response_format", "srt")], &wav).await;
    assert!(srt.text().starts_with("1\n00:00:00,000 --> 00:00:01,000\n0 0.5\n"), "{}", srt.text());
    let sse = hear(&w, &[("stream", "true")], &wav).await;
    let events = sse.events();
    let (last, deltas) = events.split_last().unwrap();
    let joined: String = deltas.iter().map(|d| d["delta"].as_str().unwrap()).collect();
    assert_eq!((last["type"].as_str(), last["text"].as_str()), (Some("transcript.text.done"), Some(joined.as_str())));
    assert!(deltas.len() == 3 && sse.whole);
    w.empty().await;
}

#[tokio::test]
async fn recordings_of_other_formats_and_rates_are_converted() {
    let w = world(HEAR, 2, Config::default()).await;
    let samples: Vec<f32> = (0..2 * 44_100 * 2).map(|i| ((i / 2) as f32 * 0.05).sin() * 0.8).collect();
    for format in [ClipFormat::Flac, ClipFormat::Mp3] {
        let file = format.encode(&samples, 44_100, 2).unwrap();
        let got = hear(&w, &[], &file).await.json();
        assert!(got["text"].as_str().unwrap().starts_with("0 0.8 1 0.8"), "{format:?}: {got}");
    }
}

#[tokio::test]
async fn what_cannot_be_heard_is_refused() {
    let limits = Limits { transcription_bytes: 100_000, ..Limits::default() };
    let w = world(HEAR, 2, Config { limits, ..Config::default() }).await;
    let wav = recording(0.5);
    assert!(hear(&w, &[], b"no sound at all").await.error().contains("file"));
    assert_eq!(hear(&w, &[], &[]).await.status, 400);
    let large = hear(&w, &[], &recording(10.0)).await;
    assert_eq!(large.status, 413);
    large.error();
    for (name, value) in [
        ("response_format", "xml"),
        ("temperature", "2"),
        ("temperature", "hot"),
        ("stream", "perhaps"),
        ("timestamp_granularities[]", "word"),
        ("timestamp_granularities", "segment"),
        ("language", "a language that nobody has ever heard of"),
    ] {
        let a = hear(&w, &[(name, value)], &wav).await;
        assert_eq!(a.status, 400, "{name}={value}: {}", a.text());
        a.error();
    }
    assert_eq!(hear(&w, &[("model", "whisper-1")], &wav).await.status, 404);
    assert_eq!(w.form(ROUTE, &[], None).await.status, 400);
    assert_eq!(w.post(ROUTE, &json!({})).await.status, 415);
    let broken =
        w.request("POST", ROUTE, "content-type: multipart/form-data; boundary=xyz\r\n", b"--xyz\r\nno form").await;
    assert_eq!(broken.status, 400);
    assert_eq!(w.request("POST", ROUTE, "content-type: multipart/form-data\r\n", b"").await.status, 400);
    // Translations exist only where the file says so.
    assert_eq!(w.form("/v1/audio/translations", &[], None).await.status, 404);
    assert_eq!(w.sessions(), 0);
    assert_eq!(hear(&w, &[], &wav).await.status, 200, "it goes on");
}

#[tokio::test]
async fn all_bodies_together_have_a_bound() {
    let limits = Limits { bodies_bytes: 150_000, ..Limits::default() };
    let w = world(HEAR, 2, Config { limits, ..Config::default() }).await;
    let (small, large) = (recording(2.0), recording(20.0));
    let a = hear(&w, &[], &large).await;
    assert_eq!((a.status, a.header("retry-after")), (503, Some("1")));
    a.error();
    // It holds nothing any more.
    for _ in 0..10 {
        assert_eq!(hear(&w, &[], &small).await.status, 200);
    }
}
