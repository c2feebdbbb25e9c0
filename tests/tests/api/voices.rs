//! Voices that clients upload.

use omni_flow_transports::api::{Config, Limits};
use serde_json::json;

use super::world::{HEAR, SPEAK, World, recording, world};

const ROUTE: &str = "/v1/audio/voices";

async fn upload(w: &World, name: &str, mime: &str, file: &[u8]) -> super::world::Answer {
    let texts = [("name", name), ("consent", "yes"), ("ref_text", "hm")];
    w.form(ROUTE, &texts, Some(("audio_sample", "v.wav", mime, file))).await
}

#[tokio::test]
async fn a_voice_is_uploaded_listed_asked_for_and_deleted() {
    let dir = std::env::temp_dir().join(format!("omni-flow-voices-{}", std::process::id()));
    let limits = Limits { voices: 2, ..Limits::default() };
    let config = Config { limits, voices: vec!["own".into()], voices_dir: Some(dir.clone()), ..Config::default() };
    let w = world(SPEAK, 2, config.clone()).await;
    assert_eq!(w.get(ROUTE).await.json(), json!({"voices": ["own"], "uploaded_voices": []}));
    let a = upload(&w, "Anna / \u{e4}", "audio/wav", &recording(0.5)).await;
    let got = a.json();
    assert_eq!((a.status, &got["success"], &got["voice"]["mime_type"]), (200, &json!(true), &json!("audio/wav")));
    let again = world(SPEAK, 2, config).await;
    let listed = again.get(ROUTE).await.json();
    assert_eq!(listed["voices"], json!(["own", "Anna / \u{e4}"]));
    assert_eq!(listed["uploaded_voices"][0]["ref_text"], "hm");
    let spoken = again.post("/v1/audio/speech", &json!({"input": "x", "voice": "Anna / \u{e4}"})).await;
    assert!(spoken.status == 200 && spoken.header("x-omni-flow-note").is_some(), "the graph has a voice of its own");
    assert_eq!(upload(&again, "b", "", &recording(0.5)).await.status, 200);
    assert!(upload(&again, "c", "audio/wav", &recording(0.5)).await.error().contains("delete one first"));
    let gone = again.request("DELETE", "/v1/audio/voices/Anna%20%2F%20%C3%A4", "", b"").await;
    assert_eq!((gone.status, &gone.json()["success"]), (200, &json!(true)));
    let gone = again.request("DELETE", "/v1/audio/voices/Anna%20%2F%20%C3%A4", "", b"").await;
    assert_eq!((gone.status, &gone.json()["success"]), (404, &json!(false)));
    assert_eq!(again.request("DELETE", "/v1/audio/voices/b", "", b"").await.status, 200);
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
    std::fs::remove_dir(&dir).unwrap();
}

#[tokio::test]
async fn what_is_no_voice_is_refused() {
    let limits = Limits { voice_bytes: 50_000, ..Limits::default() };
    let w = world(SPEAK, 2, Config { limits, ..Config::default() }).await;
    let wav = recording(0.5);
    for (name, mime, file) in [
        ("x", "audio/wav", &b"RIFF and no more"[..]),
        ("x", "text/plain", &wav),
        ("x", "audio/wav", &recording(10.0)),
        ("", "audio/wav", &wav),
        ("tab\t", "audio/wav", &wav),
        (&"long".repeat(100), "audio/wav", &wav),
    ] {
        // A tab at the end is trimmed; in the middle it is not printable.
        let name = name.replace("tab\t", "t\tb");
        let a = upload(&w, &name, mime, file).await;
        assert_eq!(a.status, 400, "{name} {mime}: {}", a.text());
        a.error();
    }
    for missing in ["name", "consent", "audio_sample"] {
        let texts: Vec<_> = [("name", "n"), ("consent", "c")].into_iter().filter(|(n, _)| *n != missing).collect();
        let file = (missing != "audio_sample").then_some(("audio_sample", "v.wav", "audio/wav", &wav[..]));
        let a = w.form(ROUTE, &texts, file).await;
        assert!(a.status == 400 && a.error().contains(missing), "{}", a.text());
    }
    assert_eq!(w.get(ROUTE).await.json()["uploaded_voices"], json!([]));
    assert_eq!(world(HEAR, 1, Config::default()).await.get(ROUTE).await.status, 404);
}
