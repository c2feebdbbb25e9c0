//! The client of OpenAI-compatible servers against a small server of raw bytes.

#![cfg(feature = "chat")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use omni_flow::Env;
use omni_flow_nodes::chat::{
    FinishReason, Message, Sampling, Tool, ToolChoice, Usage,
    remote::{RemoteChat, RemoteConfig, RemoteError, RemoteEvent, Stage},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// What the server does with one connection.
#[derive(Clone)]
enum Play {
    /// Writes these pieces, each with a flush, then closes.
    Pieces(Vec<Vec<u8>>),
    /// Writes this and never closes.
    Hang(Vec<u8>),
}

struct Server {
    url: String,
    seen: Arc<Mutex<Vec<String>>>,
}

/// Serves the plays one connection after the other; the last one repeats.
async fn serve(plays: Vec<Play>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    tokio::spawn(async move {
        for i in 0.. {
            let Ok((mut socket, _)) = listener.accept().await else { return };
            let play = plays[i.min(plays.len() - 1)].clone();
            let log = log.clone();
            tokio::spawn(async move {
                let mut request = Vec::new();
                let mut buffer = [0; 4096];
                while !complete(&request) {
                    match socket.read(&mut buffer).await {
                        Ok(0) | Err(_) => return,
                        Ok(n) => request.extend_from_slice(&buffer[..n]),
                    }
                }
                log.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
                let _ = socket.set_nodelay(true);
                match play {
                    Play::Pieces(pieces) => {
                        for piece in pieces {
                            let _ = socket.write_all(&piece).await;
                            tokio::task::yield_now().await;
                        }
                    }
                    Play::Hang(bytes) => {
                        let _ = socket.write_all(&bytes).await;
                        let _ = socket.read(&mut buffer).await;
                    }
                }
            });
        }
    });
    Server { url, seen }
}

fn complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length =
        head.lines().find_map(|l| l.to_lowercase().strip_prefix("content-length:").map(|v| v.trim().to_string()));
    length.and_then(|l| l.parse::<usize>().ok()).is_some_and(|n| body.len() >= n)
}

fn ok(body: &[u8]) -> Vec<u8> {
    let mut out = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_vec();
    out.extend_from_slice(body);
    out
}

fn status(line: &str, headers: &str, body: &str) -> Play {
    let n = body.len();
    let head = format!("HTTP/1.1 {line}\r\ncontent-length: {n}\r\nconnection: close\r\n{headers}\r\n{body}");
    Play::Pieces(vec![head.into_bytes()])
}

/// Two calls of tools in pieces.
const CALLS: &str = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\n\n\
    data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\
    \"arguments\":\"\"}}]}}]}\n\n\
    data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"é\\\"\"}}]}}]}\n\n\
    data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\":1}\"}},\
    {\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":\"[]\"}}]}}]}\n\n\
    data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n";

const STREAM: &str = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\r\n\r\n\
    : keep-alive\r\n\r\n\
    data: {\"choices\":[{\"delta\":{\"content\":\"Grüße \"}}]}\r\n\r\n\
    data: {\"choices\":[{\"delta\":{\"content\":\"😀.\"}}]}\r\n\r\n\
    data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\r\n\r\n\
    data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\r\n\r\n\
    data: [DONE]\r\n\r\n";

fn config(url: &str) -> RemoteConfig {
    RemoteConfig { retry_delay: Duration::ZERO, retries: 0, ..RemoteConfig::new(url, "tiny") }
}

async fn ask_with(
    config: RemoteConfig,
    sampling: &Sampling,
) -> Result<(String, FinishReason, Option<Usage>), RemoteError> {
    let mut stream = RemoteChat::new(config)?.stream(&[Message::user("Hi")], sampling).await?;
    let mut text = String::new();
    let mut end = None;
    while let Some(event) = stream.next().await? {
        match event {
            RemoteEvent::Text(t) => text.push_str(&t),
            RemoteEvent::Call(call) => panic!("{call:?}"),
            RemoteEvent::Done { reason, usage } => end = Some((reason, usage)),
        }
    }
    let (reason, usage) = end.expect("a stream ends with Done or an error");
    Ok((text, reason, usage))
}

async fn ask(config: RemoteConfig) -> Result<(String, FinishReason, Option<Usage>), RemoteError> {
    ask_with(config, &Sampling::default()).await
}

#[tokio::test]
async fn any_cut_of_the_stream_gives_the_same_calls() {
    let tool = Tool { name: "f".into(), description: String::new(), parameters: serde_json::Value::Null };
    for i in (0..=CALLS.len()).step_by(5) {
        let (first, second) = CALLS.as_bytes().split_at(i);
        let server = serve(vec![Play::Pieces(vec![ok(first), second.to_vec()])]).await;
        let client = RemoteChat::new(config(&server.url)).unwrap();
        let (asked, choice, sampling) = ([Message::user("Hi")], ToolChoice::Named("f".into()), Sampling::default());
        let mut stream = client.stream_with(&asked, std::slice::from_ref(&tool), &choice, &sampling).await.unwrap();
        let (mut pieces, mut ends) = ([String::new(), String::new()], Vec::new());
        while let Some(event) = stream.next().await.unwrap() {
            match event {
                RemoteEvent::Call(c) if !c.done => pieces[c.index].push_str(&c.arguments_delta.unwrap()),
                RemoteEvent::Call(c) => ends.push((c.call_id, c.name, c.arguments, c.error.is_some())),
                RemoteEvent::Done { reason, .. } => assert_eq!(reason, FinishReason::End),
                RemoteEvent::Text(t) => panic!("{t}"),
            }
        }
        let end = |id: &str, name: &str, arguments: &str, bad| {
            (Some(id.to_owned()), Some(name.to_owned()), Some(arguments.to_owned()), bad)
        };
        assert_eq!(pieces, ["{\"é\":1}", "[]"], "cut at {i}");
        assert_eq!(ends, [end("a", "f", "{\"é\":1}", false), end("b", "g", "[]", true)], "cut at {i}");
        let seen = server.seen.lock().unwrap().concat();
        assert!(seen.contains("\"tool_choice\":{\"function\":{\"name\":\"f\"},\"type\":\"function\"}"), "{seen}");
    }
}

#[tokio::test]
async fn any_cut_of_the_stream_gives_the_same_answer() {
    let bytes = STREAM.as_bytes();
    for i in 0..=bytes.len() {
        let server = serve(vec![Play::Pieces(vec![ok(&bytes[..i]), bytes[i..].to_vec()])]).await;
        let (text, reason, usage) = ask(config(&server.url)).await.unwrap();
        assert_eq!((text.as_str(), reason), ("Grüße 😀.", FinishReason::End), "cut at {i}");
        assert_eq!(usage, Some(Usage { prompt: 9, cached: 0, completion: 2 }));
    }
    let server = serve(vec![Play::Pieces(ok(bytes).chunks(1).map(<[u8]>::to_vec).collect())]).await;
    assert_eq!(ask(config(&server.url)).await.unwrap().0, "Grüße 😀.");
}

#[tokio::test]
async fn every_early_end_is_an_error() {
    let bytes = STREAM.as_bytes();
    let finish = STREAM.find("\"finish_reason\":\"stop\"}]}").unwrap() + "\"finish_reason\":\"stop\"}]}".len();
    for i in (0..finish).step_by(7) {
        let server = serve(vec![Play::Pieces(vec![ok(&bytes[..i])])]).await;
        let error = ask(config(&server.url)).await.unwrap_err();
        assert!(
            matches!(error, RemoteError::Unreachable { .. } | RemoteError::Malformed { .. }),
            "cut at {i}: {error}"
        );
    }
    // Some servers leave out the last line.
    let server = serve(vec![Play::Pieces(vec![ok(&bytes[..finish])])]).await;
    assert_eq!(ask(config(&server.url)).await.unwrap().1, FinishReason::End);
}

#[tokio::test]
async fn the_request_says_what_was_asked_and_the_key_stays_secret() {
    let server = serve(vec![Play::Pieces(vec![ok(STREAM.as_bytes())]), status("401 Unauthorized", "", "{}")]).await;
    // `PATH` is a variable that every process has; its value serves as the key.
    let key = std::env::var("PATH").unwrap();
    let config = RemoteConfig { api_key_env: Some("PATH".into()), ..config(&server.url) };
    let sampling = Sampling { max_tokens: 7, seed: 3, stop: vec!["X".into()], ..Sampling::default() };
    ask_with(config.clone(), &sampling).await.unwrap();
    let request = server.seen.lock().unwrap()[0].clone();
    assert!(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("Bearer {key}")));
    let body: serde_json::Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body["messages"], serde_json::json!([{"role": "user", "content": "Hi"}]));
    assert_eq!((&body["model"], &body["stream"]), (&"tiny".into(), &true.into()));
    assert_eq!((&body["max_tokens"], &body["seed"], &body["stop"]), (&7.into(), &3.into(), &serde_json::json!(["X"])));
    let client = RemoteChat::new(config.clone()).unwrap();
    let error = ask(config).await.unwrap_err();
    assert!(matches!(error, RemoteError::Unauthorized { status: 401, .. }));
    for shown in [error.to_string(), format!("{error:?}"), format!("{client:?}")] {
        assert!(!shown.contains(&key), "{shown}");
    }
    let missing =
        RemoteConfig { api_key_env: Some("OMNI_FLOW_NO_SUCH_KEY".into()), ..RemoteConfig::new("http://x", "m") };
    assert_eq!(RemoteChat::new(missing.clone()).unwrap_err(), RemoteError::MissingKey("OMNI_FLOW_NO_SUCH_KEY".into()));
    // A graph file may give the variable to the node; its value is not shown either.
    let env: Env = [("OMNI_FLOW_NO_SUCH_KEY".to_owned(), "sesame".to_owned())].into_iter().collect();
    let client = RemoteChat::with_env(missing, |name| env.get(name)).unwrap();
    assert!(!format!("{client:?} {env:?}").contains("sesame"));
}

#[tokio::test]
async fn refusals_are_typed_and_show_the_servers_words() {
    let refusal = |line: &str, headers: &str, body: &str| {
        let play = status(line, headers, body);
        async move { ask(config(&serve(vec![play]).await.url)).await.unwrap_err() }
    };
    let e = refusal("404 Not Found", "", r#"{"error":{"message":"model not found"}}"#).await;
    assert!(
        matches!(&e, RemoteError::NotFound { model, body, .. } if model == "tiny" && body == "model not found"),
        "{e}"
    );
    let e =
        refusal("400 Bad Request", "", r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#).await;
    assert_eq!(e, RemoteError::ContextLength { body: "too long".into() });
    let e = refusal("429 Too Many Requests", "retry-after: 7\r\n", "slow down").await;
    assert_eq!(e, RemoteError::RateLimited { retry_after: Some(Duration::from_secs(7)), body: "slow down".into() });
    let e = refusal("503 Service Unavailable", "", "<html>busy</html>").await;
    assert_eq!(e, RemoteError::Server { status: 503, body: "<html>busy</html>".into() });
    let e = refusal("302 Found", "location: http://127.0.0.1:1/\r\n", "").await;
    assert!(matches!(e, RemoteError::Refused { status: 302, .. }), "{e}");
    let e = refusal("500 Oops", "", &"x".repeat(100_000)).await;
    assert!(e.to_string().len() < 4096);
}

#[tokio::test]
async fn transient_failures_are_tried_again_before_the_first_token_only() {
    let busy = status("503 Service Unavailable", "", "");
    let good = Play::Pieces(vec![ok(STREAM.as_bytes())]);
    let server = serve(vec![busy.clone(), Play::Pieces(vec![ok(b"")]), good.clone()]).await;
    let answer = ask(RemoteConfig { retries: 2, ..config(&server.url) }).await.unwrap();
    assert_eq!((answer.0.as_str(), server.seen.lock().unwrap().len()), ("Grüße 😀.", 3));
    let server = serve(vec![busy]).await;
    let error = ask(RemoteConfig { retries: 2, ..config(&server.url) }).await.unwrap_err();
    assert!(matches!(error, RemoteError::Server { status: 503, .. }));
    assert_eq!(server.seen.lock().unwrap().len(), 3);
    let half = STREAM.find("😀").unwrap();
    let server = serve(vec![Play::Pieces(vec![ok(&STREAM.as_bytes()[..half])]), good]).await;
    let error = ask(RemoteConfig { retries: 2, ..config(&server.url) }).await.unwrap_err();
    assert!(matches!(error, RemoteError::Malformed { .. }), "{error}");
    assert_eq!(server.seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_silent_server_meets_a_deadline() {
    let short = Duration::from_millis(80);
    let server = serve(vec![Play::Hang(vec![])]).await;
    let error = ask(RemoteConfig { first_token_timeout: short, ..config(&server.url) }).await.unwrap_err();
    assert_eq!(error, RemoteError::Timeout { stage: Stage::FirstToken, after: short });
    let half = STREAM.find("😀").unwrap();
    let server = serve(vec![Play::Hang(ok(&STREAM.as_bytes()[..half]))]).await;
    let error = ask(RemoteConfig { idle_timeout: short, ..config(&server.url) }).await.unwrap_err();
    assert_eq!(error, RemoteError::Timeout { stage: Stage::NextToken, after: short });
    let server = serve(vec![Play::Hang(b"HTTP/1.1 500 Oops\r\ncontent-length: 9\r\n\r\n".to_vec())]).await;
    let error = ask(RemoteConfig { first_token_timeout: short, ..config(&server.url) }).await.unwrap_err();
    assert_eq!(error, RemoteError::Timeout { stage: Stage::FirstToken, after: short });
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let error = ask(config(&format!("http://127.0.0.1:{port}"))).await.unwrap_err();
    assert!(matches!(error, RemoteError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn wild_streams_are_errors() {
    let wild = |body: Vec<u8>| async move {
        let server = serve(vec![Play::Pieces(vec![ok(&body)])]).await;
        ask(RemoteConfig { max_line_bytes: 4096, ..config(&server.url) }).await.unwrap_err()
    };
    let huge = wild(format!("data: {}", "x".repeat(1 << 20)).into_bytes()).await;
    assert!(huge.to_string().contains("longer than 4096"), "{huge}");
    assert!(matches!(wild(b"data: {oops\n\n".to_vec()).await, RemoteError::Malformed { .. }));
    assert!(matches!(wild(b"data: [1]\n\n".to_vec()).await, RemoteError::Malformed { .. }));
    assert!(matches!(wild(b"data: \xff\xfe\n\n".to_vec()).await, RemoteError::Malformed { .. }));
    let inside = wild(b"data: {\"error\":{\"message\":\"out of memory\"}}\n\n".to_vec()).await;
    assert_eq!(inside, RemoteError::Server { status: 200, body: "out of memory".into() });
}

#[tokio::test]
async fn stop_strings_hold_even_if_the_server_ignores_them() {
    let server = serve(vec![Play::Pieces(vec![ok(STREAM.as_bytes())])]).await;
    let sampling = Sampling { stop: vec!["e 😀".into()], ..Sampling::default() };
    let (text, reason, _) = ask_with(config(&server.url), &sampling).await.unwrap();
    assert_eq!((text.as_str(), reason), ("Grüß", FinishReason::Stop));
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let closed = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut buffer = vec![0; 4096];
        let _ = socket.read(&mut buffer).await.unwrap();
        let half = STREAM.find("😀").unwrap();
        socket.write_all(&ok(&STREAM.as_bytes()[..half])).await.unwrap();
        // Ends (or fails) when the client has gone.
        while matches!(socket.read(&mut buffer).await, Ok(n) if n > 0) {}
    });
    let mut stream =
        RemoteChat::new(config(&url)).unwrap().stream(&[Message::user("Hi")], &Sampling::default()).await.unwrap();
    assert!(matches!(stream.next().await, Ok(Some(RemoteEvent::Text(_)))));
    drop(stream);
    tokio::time::timeout(Duration::from_secs(20), closed).await.expect("the connection stays open").unwrap();
}

#[test]
fn addresses_are_checked() {
    for (url, part) in [("", "no address"), ("ftp://x", "http"), ("http://user:pass@x", "credentials")] {
        let error = RemoteChat::new(RemoteConfig::new(url, "m")).unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains("pass@"), "{url}: {error}");
    }
}
