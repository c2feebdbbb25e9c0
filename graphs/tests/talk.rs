//! `omni-flow talk` against a server with a graph that answers as many words as it heard seconds.

#[path = "../../transports/tests/realtime/toy.rs"]
mod toy;

use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Arc;

use omni_flow::Clock;
use omni_flow_transports::door::{self, Door, Gate};
use omni_flow_transports::realtime::host::Limits;
use tokio::net::TcpListener;
use tokio::process::Command;

/// Three seconds of speech, less a little.
const SPEECH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/audio/01_librivox0880_16k.wav");

async fn serve(gate: Gate) -> String {
    let host = toy::host(Limits::default()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/v1/realtime", listener.local_addr().unwrap());
    let (graph, clock, gate) = (host.graph().clone(), Clock::tokio(), Arc::new(gate));
    let door = Door { graph, clock, host: Some(host), model: "toy".to_owned(), gate, limits: door::Limits::default() };
    tokio::spawn(async move { axum::serve(listener, door::router(door)).await });
    url
}

fn program(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_omni-flow"));
    command.arg("talk").args(words).env_remove("OPENAI_API_KEY").env_remove("OMNI_FLOW_API_KEY");
    command.stdin(Stdio::null());
    command
}

async fn talk(words: &[&str]) -> (i32, String, String) {
    said(program(words).output().await.unwrap())
}

fn said(ran: Output) -> (i32, String, String) {
    let text = |b| String::from_utf8(b).unwrap();
    (ran.status.code().unwrap(), text(ran.stdout), text(ran.stderr))
}

fn length(path: &Path) -> f64 {
    let got = omni_flow_media::file::decode(path, 1 << 24).unwrap();
    got.samples.len() as f64 / f64::from(got.rate)
}

#[tokio::test]
async fn a_recording_is_spoken_answered_and_the_answer_kept() {
    let url = serve(Gate::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let answer = folder.path().join("answer.wav");
    let words = [&url, "--wav", SPEECH, "--manual", "--output", answer.to_str().unwrap()];
    let (code, out, err) = talk(&words).await;
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("it:  1 2 \n"), "{out}");
    assert!(out.contains("first word ") && out.contains("first audio ") && out.contains("0.4 s of audio"), "{out}");
    assert!((length(&answer) - 0.4).abs() < 1e-6);
    let (code, out, err) = talk(&[&url, "--wav", SPEECH, "--manual", "--json"]).await;
    assert_eq!(code, 0, "{out}{err}");
    let lines: Vec<serde_json::Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let answer = lines.iter().find(|l| l["event"] == "answer").unwrap();
    assert_eq!((&answer["text"], &answer["audio_ms"]), (&"1 2 ".into(), &400.into()));
    assert!(answer["first_audio_ms"].is_u64());
    let last = lines.last().unwrap();
    assert_eq!((&last["event"], &last["answers"]), (&"end".into(), &1.into()));
    assert!(err.is_empty(), "{err}");
}

#[tokio::test]
async fn what_cannot_be_is_said_with_its_exit_code() {
    let url = serve(Gate::default()).await;
    let (code, _, err) = talk(&["ftp://x", "--text", "a"]).await;
    assert_eq!((code, err.contains("ws://")), (2, true), "{err}");
    let (code, _, err) = talk(&["ws://127.0.0.1:1/", "--text", "a"]).await;
    assert_eq!((code, err.contains("cannot connect to ws://127.0.0.1:1/")), (1, true), "{err}");
    let (code, _, err) = talk(&[&url, "--wav", "no-such.wav"]).await;
    assert_eq!((code, err.contains("no-such.wav")), (1, true), "{err}");
    // This graph answers speech alone.
    let (code, _, err) = talk(&[&url, "--text", "Hello"]).await;
    assert_eq!((code, err.contains("text_only_turn_unsupported")), (1, true), "{err}");
    // A microphone that ends is none.
    let (code, _, err) = talk(&[&url, "--mic-command", "exit 3", "--speaker-command", "cat"]).await;
    assert!(code != 0 && !err.is_empty(), "{err}");
    // Nobody has a program to record with.
    let (code, _, err) = said(program(&[&url]).env("PATH", "").output().await.unwrap());
    assert_eq!((code, err.contains("alsa-utils")), (2, true), "{err}");
}

#[tokio::test]
async fn the_key_comes_from_the_environment_or_a_file_and_is_not_shown() {
    let url = serve(Gate::new(["sk-right"], [])).await;
    let words = [url.as_str(), "--wav", SPEECH, "--manual"];
    let (code, _, err) = talk(&words).await;
    assert_eq!((code, err.contains("OMNI_FLOW_API_KEY")), (2, true), "{err}");
    let with = |key: &str| program(&words).env("OMNI_FLOW_API_KEY", key).env("OMNI_FLOW_LOG", "trace").output();
    let (code, out, err) = said(with("sk-wrong").await.unwrap());
    assert!(code == 2 && !format!("{out}{err}").contains("sk-wrong"), "{err}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "sk-right\n").unwrap();
    let (code, out, err) = talk(&[&words[..], &["--key-file", file.to_str().unwrap()]].concat()).await;
    assert_eq!(code, 0, "{out}{err}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn ctrl_c_ends_a_conversation_and_leaves_no_microphone_behind() {
    use tokio::io::{AsyncBufReadExt as _, BufReader};
    let url = serve(Gate::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let answer = folder.path().join("answer.wav");
    // A recording that waits for its end: the answer to the text before it is refused by nobody.
    let words = [url.as_str(), "--wav", SPEECH, "--manual", "--output", answer.to_str().unwrap()];
    let mut child = program(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(err.next_line().await.unwrap().unwrap().contains("connected"));
    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().await.unwrap().success());
    assert_eq!(child.wait().await.unwrap().code(), Some(130));
    assert_eq!(err.next_line().await.unwrap().as_deref(), Some("stopped"));
}
