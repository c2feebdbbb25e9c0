//! The page and its figures on a real socket, seen by a client that reads bytes.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Extension;
use omni_flow::{Clock, Graph};
use omni_flow_transports::door::{self, Door, Gate, Stopping};
use omni_flow_transports::realtime::host::{self, Host};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::toy;

struct Served {
    graph: Graph,
    address: String,
    stop: watch::Sender<bool>,
    server: JoinHandle<()>,
}

async fn serve(gate: Gate, talks: bool) -> Served {
    let host: Arc<Host> = toy::host(host::Limits::default()).await;
    let graph = host.graph().clone();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let door = Door {
        graph: graph.clone(),
        clock: Clock::tokio(),
        host: talks.then_some(host),
        model: "toy".to_owned(),
        gate: Arc::new(gate),
        limits: door::Limits::default(),
    };
    let (stop, stopped) = watch::channel(false);
    let app = door::router(door).merge(door::page()).layer(Extension(Stopping(stopped.clone())));
    let server = tokio::spawn(async move {
        let mut stopped = stopped;
        let down = async move { drop(stopped.wait_for(|s| *s).await) };
        axum::serve(listener, app).with_graceful_shutdown(down).await.unwrap();
    });
    Served { graph, address, stop, server }
}

struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: BufReader<TcpStream>,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
    async fn text(mut self) -> String {
        let mut text = String::new();
        self.body.read_to_string(&mut text).await.unwrap();
        text
    }
    async fn line(&mut self) -> Option<String> {
        use tokio::io::AsyncBufReadExt as _;
        let mut line = String::new();
        let read = timeout(Duration::from_secs(60), self.body.read_line(&mut line)).await.expect("a line in a minute");
        (read.unwrap() > 0).then(|| line.trim_end().to_owned())
    }
    /// The next event; `None` at the end of the stream.
    async fn event(&mut self) -> Option<(String, Value)> {
        let mut name = String::new();
        loop {
            let line = self.line().await?;
            if let Some(n) = line.strip_prefix("event: ") {
                name = n.to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some((name, serde_json::from_str(data).unwrap()));
            }
        }
    }
    async fn stats(&mut self) -> Value {
        let (name, data) = self.event().await.expect("figures");
        assert_eq!(name, "stats");
        data
    }
}

async fn ask(address: &str, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let more: String = headers.iter().map(|(n, v)| format!("{n}: {v}\r\n")).collect();
    let request = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{more}\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Answer { status: 0, headers: Vec::new(), body: BufReader::new(socket) };
    answer.status = answer.line().await.unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    while let Some(line) = answer.line().await.filter(|l| !l.is_empty()) {
        let (name, value) = line.split_once(':').unwrap();
        answer.headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    answer
}

async fn get(address: &str, path: &str) -> Answer {
    ask(address, "GET", path, &[]).await
}

#[tokio::test]
async fn the_page_is_public_and_closed_to_everything_else() {
    let s = serve(Gate::new(["sk-1"], []), true).await;
    let files = [
        ("/", "text/html; charset=utf-8"),
        ("/page/style.css", "text/css; charset=utf-8"),
        ("/page/app.js", "text/javascript; charset=utf-8"),
        ("/page/playback.js", "text/javascript; charset=utf-8"),
        ("/page/icon.svg", "image/svg+xml"),
    ];
    for (path, kind) in files {
        let answer = get(&s.address, path).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(kind)), "{path}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; ") && policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(!policy.contains("unsafe") && !policy.contains('*') && !policy.contains("http"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cache-control"), Some("no-cache"));
        let tag = answer.header("etag").unwrap().to_owned();
        assert!(!answer.text().await.is_empty());
        // Who has it already is told so, and not sent it again.
        let again = ask(&s.address, "GET", path, &[("if-none-match", &tag)]).await;
        assert_eq!((again.status, again.header("etag")), (304, Some(tag.as_str())), "{path}");
        assert!(again.text().await.is_empty());
        assert_eq!(ask(&s.address, "GET", path, &[("if-none-match", "\"old\"")]).await.status, 200);
        let head = ask(&s.address, "HEAD", path, &[]).await;
        assert_eq!((head.status, head.header("content-type")), (200, Some(kind)));
        assert!(head.text().await.is_empty());
    }
    let page = get(&s.address, "/").await.text().await;
    assert!(page.contains("page/app.js") && !page.contains("style=") && !page.contains("onclick"));
}

#[tokio::test]
async fn what_is_not_there_is_an_error_in_words() {
    let s = serve(Gate::default(), true).await;
    for path in ["/page/none.js", "/page/index.html", "/page/..%2fmod.rs", "/page/", "/page", "/nothing", "/page/a/b"] {
        let answer = get(&s.address, path).await;
        assert_eq!(answer.status, 404, "{path}");
        let body: Value = serde_json::from_str(&answer.text().await).unwrap();
        assert_eq!(body["error"]["type"], "NotFoundError", "{path}");
    }
    assert_eq!(ask(&s.address, "POST", "/", &[("content-length", "0")]).await.status, 405);
}

#[tokio::test]
async fn figures_follow_the_graph() {
    let s = serve(Gate::default(), true).await;
    let mut reader = get(&s.address, "/v1/omni/stats").await;
    assert_eq!((reader.status, reader.header("content-type")), (200, Some("text/event-stream")));
    let (name, shape) = reader.event().await.unwrap();
    assert_eq!((name.as_str(), &shape["graph"], &shape["realtime"]), ("graph", &json!("toy"), &json!(true)));
    assert_eq!((&shape["lanes"], &shape["max_sessions"]), (&json!(["main", "reply"]), &json!(2)));
    let node = |name: &str| shape["nodes"].as_array().unwrap().iter().position(|n| n["name"] == name).unwrap();
    let edge = shape["edges"].as_array().unwrap().iter().position(|e| e["name"] == "mic.out->toy.in").unwrap();
    assert_eq!(shape["edges"][edge]["from"], node("mic"));
    assert_eq!(shape["edges"][edge]["to"], node("toy"));
    assert_eq!(
        (&shape["nodes"][node("mic")]["client"], &shape["nodes"][node("toy")]["lane"]),
        (&json!("in"), &json!(1))
    );
    assert_eq!(shape["edges"][edge]["limit"]["items"], 32);

    let first = reader.stats().await;
    assert_eq!((&first["sessions"]["open"], &first["fences"]), (&json!(0), &json!([0, 0])));
    assert_eq!(first["edges"].as_array().unwrap().len(), shape["edges"].as_array().unwrap().len());

    let mut session = s.graph.open().unwrap();
    let mut mic = session.input("mic").unwrap();
    mic.send(omni_flow::Pcm::mono(16_000, vec![0.0; 320])).await.unwrap();
    session.fence(omni_flow::Lane::new(1).unwrap());
    loop {
        let now = reader.stats().await;
        assert!(now["at_s"].as_f64() >= first["at_s"].as_f64());
        if now["edges"][edge]["chunks"] == 1 && now["sessions"]["open"] == 1 && now["fences"] == json!([0, 1]) {
            break;
        }
    }
    session.abort().await.unwrap();
    while reader.stats().await["sessions"]["closed"] != 1 {}
}

#[tokio::test]
async fn figures_are_behind_the_gate() {
    let s = serve(Gate::new(["sk-1"], []), true).await;
    assert_eq!(get(&s.address, "/v1/omni/stats").await.status, 401);
    let foreign = [("authorization", "Bearer sk-1"), ("origin", "http://evil.example")];
    assert_eq!(ask(&s.address, "GET", "/v1/omni/stats", &foreign).await.status, 403);
    let mut reader = ask(&s.address, "GET", "/v1/omni/stats", &[("authorization", "Bearer sk-1")]).await;
    assert_eq!(reader.event().await.unwrap().0, "graph");
}

#[tokio::test]
async fn readers_are_bounded_and_let_go() {
    let s = serve(Gate::default(), true).await;
    let mut readers = Vec::new();
    for _ in 0..16 {
        let mut reader = get(&s.address, "/v1/omni/stats").await;
        assert_eq!(reader.event().await.unwrap().0, "graph");
        readers.push(reader);
    }
    let refused = get(&s.address, "/v1/omni/stats").await;
    assert_eq!(refused.status, 503);
    let body: Value = serde_json::from_str(&refused.text().await).unwrap();
    assert_eq!(body["error"]["type"], "ServiceUnavailableError");
    // One goes, and its place is another's as soon as that is noticed.
    readers.pop();
    let free = async {
        while get(&s.address, "/v1/omni/stats").await.status != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(60), free).await.expect("a place in a minute");
}

#[tokio::test]
async fn a_server_that_stops_ends_the_stream() {
    let s = serve(Gate::default(), true).await;
    let mut reader = get(&s.address, "/v1/omni/stats").await;
    assert_eq!(reader.event().await.unwrap().0, "graph");
    reader.stats().await;
    s.stop.send(true).unwrap();
    while reader.event().await.is_some() {}
    timeout(Duration::from_secs(60), s.server).await.expect("nothing holds the server").unwrap();
}

#[tokio::test]
async fn a_graph_that_nobody_talks_with_shows_itself_all_the_same() {
    let s = serve(Gate::default(), false).await;
    assert_eq!(get(&s.address, "/").await.status, 200);
    let (_, shape) = get(&s.address, "/v1/omni/stats").await.event().await.unwrap();
    assert_eq!(shape["realtime"], false);
}
