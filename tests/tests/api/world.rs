//! A graph behind a real socket, and a client that knows nothing of it.

use std::sync::Arc;
use std::time::Duration;

use omni_flow::{CheckCx, Engine, Graph, GraphFile};
use omni_flow_transports::api::{self, Config};
use omni_flow_transports::door::{self, Door, Gate};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::nodes::registry;

/// For something that is to happen.
pub const LONG: Duration = Duration::from_secs(60);

pub const SPEAK: &str = "
  text: { use: session.in, kind: text }
  voice: { use: test.tone, in: text }
  speaker: { use: session.out, in: voice }
";
pub const HEAR: &str = "
  mic: { use: session.in, audio: { rate: 8000 } }
  asr: { use: test.count, in: mic }
  text: { use: session.out, in: asr }
";
pub const CHAT: &str = "
  ask: { use: session.in, kind: signal }
  llm: { use: test.chat, in: ask }
  voice: { use: test.tone, in: llm.text }
  said-out: { use: session.out, in: llm.text }
  calls-out: { use: session.out, in: llm.calls }
  speaker: { use: session.out, in: voice }
";

pub struct World {
    pub graph: Graph,
    pub address: String,
    _engine: Engine,
}

/// A served graph of these nodes, with these sessions at most.
pub async fn world(nodes: &str, sessions: usize, config: Config) -> World {
    let text = format!("graph: g\nsession: {{ mode: turn, max-sessions: {sessions} }}\nnodes:{nodes}");
    let file = GraphFile::parse("g.yaml", &text).unwrap_or_else(|d| panic!("{d}"));
    let plan = file.check(&registry(), &CheckCx::default()).unwrap_or_else(|d| panic!("{d}")).0;
    let engine = Engine::new().unwrap();
    let graph = engine.start(plan).await.unwrap();
    let (clock, gate) = (engine.clock().clone(), Arc::new(Gate::default()));
    let limits = door::Limits::default();
    let door = Door { graph: graph.clone(), clock, host: None, model: "g".to_owned(), gate, limits };
    let routes = api::routes(&door, config).unwrap();
    let router = door::router(door).merge(routes).layer(axum::middleware::from_fn(api::observe));
    let listener = door::listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, router).await });
    World { graph, address, _engine: engine }
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// The body has come to its end, as HTTP sees it.
    pub whole: bool,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .find_map(|l| l.split_once(':').filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.trim()))
    }
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }
    /// The message of an error, whose body has the shape of one.
    pub fn error(&self) -> String {
        let error = self.json()["error"].clone();
        assert_eq!(error["code"], self.status, "{error}");
        assert!(error["type"].is_string() && error.get("param").is_some(), "{error}");
        error["message"].as_str().unwrap().to_owned()
    }
    /// The data of a stream of events.
    pub fn events(&self) -> Vec<Value> {
        let data = self.text().lines().filter_map(|l| l.strip_prefix("data: ")).filter(|d| *d != "[DONE]");
        data.map(|d| serde_json::from_str(d).unwrap()).collect()
    }
}

impl World {
    pub async fn get(&self, path: &str) -> Answer {
        self.request("GET", path, "", &[]).await
    }
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.request("POST", path, "content-type: application/json\r\n", body.to_string().as_bytes()).await
    }
    /// A form of texts and one file.
    pub async fn form(&self, path: &str, texts: &[(&str, &str)], file: Option<(&str, &str, &str, &[u8])>) -> Answer {
        let mut body = Vec::new();
        for (name, text) in texts {
            body.extend(format!("--xyz\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n").bytes());
        }
        if let Some((field, name, mime, bytes)) = file {
            let head = format!(
                "--xyz\r\ncontent-disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\ncontent-type: {mime}\r\n\r\n"
            );
            body.extend(head.bytes());
            body.extend(bytes);
            body.extend(b"\r\n");
        }
        body.extend(b"--xyz--\r\n");
        self.request("POST", path, "content-type: multipart/form-data; boundary=xyz\r\n", &body).await
    }
    /// Sends a request and nothing more; what comes back is the caller's.
    pub async fn send(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> TcpStream {
        let mut socket = TcpStream::connect(&self.address).await.unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        socket.write_all(body).await.unwrap();
        socket
    }
    pub async fn request(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        let mut socket = self.send(method, path, headers, body).await;
        let mut all = Vec::new();
        tokio::time::timeout(LONG, socket.read_to_end(&mut all)).await.expect("an answer").unwrap();
        answer(&all)
    }
    /// Sessions of the graph.
    pub fn sessions(&self) -> usize {
        let s = self.graph.snapshot();
        s.open + s.closing
    }
    /// Waits until no session is left.
    pub async fn empty(&self) {
        for _ in 0..6000 {
            if self.sessions() == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{} sessions are left", self.sessions());
    }
}

fn answer(all: &[u8]) -> Answer {
    let end = all.windows(4).position(|w| w == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8(all[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut rest = &all[end + 4..];
    let answer = Answer { status, head, body: rest.to_vec(), whole: true };
    if answer.header("transfer-encoding") != Some("chunked") {
        return answer;
    }
    let mut body = Vec::new();
    loop {
        let Some(line) = rest.windows(2).position(|w| w == b"\r\n") else {
            return Answer { body, whole: false, ..answer };
        };
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        if size == 0 {
            return Answer { body, whole: true, ..answer };
        }
        if rest.len() < line + 2 + size {
            return Answer { body, whole: false, ..answer };
        }
        body.extend(&rest[line + 2..line + 2 + size]);
        rest = &rest[line + 4 + size..];
    }
}

/// A recording of these many seconds, as a WAV file of 8000 Hz.
pub fn recording(seconds: f64) -> Vec<u8> {
    let samples: Vec<f32> = (0..(seconds * 8000.0) as usize).map(|i| (i as f32 * 0.3).sin() * 0.5).collect();
    omni_flow_media::encode::ClipFormat::Wav.encode(&samples, 8000, 1).unwrap()
}
