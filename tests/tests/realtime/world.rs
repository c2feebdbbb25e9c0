//! The shipped scripted graph behind a real socket, and a client that knows nothing of it.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt as _, StreamExt as _};
use omni_flow::{CheckCx, Engine, GraphFile, Layers};
use omni_flow_nodes::registry::registry;
use omni_flow_transports::door::{self, Door, Gate};
use omni_flow_transports::realtime::config::Defaults;
use omni_flow_transports::realtime::host::{self, Host, Limits};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

/// For something that is to happen.
pub const LONG: Duration = Duration::from_secs(60);
/// For something that is not.
pub const SHORT: Duration = Duration::from_millis(300);

pub struct World {
    pub host: Arc<Host>,
    pub address: String,
    _engine: Engine,
}

/// The shipped graph with other answers.
pub async fn scripted(answers: Value) -> World {
    world("scripted-duplex.yaml", json!({"nodes": {"partner": {"answers": answers}}}), Limits::default()).await
}

/// As a model that owns its turns.
pub async fn native(answers: Value, limits: Limits) -> World {
    let partner = json!({"level": "model_native_duplex", "answers": answers});
    world("scripted-duplex.yaml", json!({"nodes": {"partner": partner}}), limits).await
}

/// A shipped graph with some values replaced.
pub async fn world(graph: &str, with: Value, limits: Limits) -> World {
    let path = format!("{}/../graphs/{graph}", env!("CARGO_MANIFEST_DIR"));
    let over = Layers { overrides: vec![with.to_string()], ..Layers::default() };
    let file = GraphFile::load(path, &over).unwrap_or_else(|d| panic!("{d}"));
    let cx = CheckCx { fences: vec!["reply".into()], ..CheckCx::default() };
    let plan = file.check(&registry().unwrap(), &cx).unwrap_or_else(|d| panic!("{d}")).0;
    let can = host::facts(&plan, &file).unwrap();
    let engine = Engine::new().unwrap();
    let graph = engine.start(plan).await.unwrap();
    let clock = engine.clock().clone();
    let host = Host::new(graph.clone(), clock.clone(), can, Defaults::default(), limits).unwrap();
    let listener = door::listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let gate = Arc::new(Gate::default());
    let limits = door::Limits::default();
    let door = Door { graph, clock, host: Some(host.clone()), model: "m".to_owned(), gate, limits };
    tokio::spawn(async move { axum::serve(listener, door::router(door)).await });
    World { host, address, _engine: engine }
}

impl World {
    /// A client of the duplex profile, whose session is open.
    pub async fn duplex(&self) -> Client {
        let mut client = self.connect("/v1/realtime?duplex=1").await;
        client.created = client.until("session.created").await;
        client
    }
    pub async fn connect(&self, path: &str) -> Client {
        self.connect_with(path, &[]).await
    }
    pub async fn connect_with(&self, path: &str, headers: &[(&'static str, &str)]) -> Client {
        let mut request = format!("ws://{}{path}", self.address).into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let (socket, _) = connect_async_with_config(request, Some(config), true).await.unwrap();
        Client { socket, seen: Vec::new(), created: Value::Null }
    }
    /// Waits until no session is left.
    pub async fn empty(&self) {
        for _ in 0..6000 {
            if self.host.sessions() == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{} sessions are left", self.host.sessions());
    }
}

pub struct Client {
    pub socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    pub seen: Vec<Value>,
    pub created: Value,
}

impl Client {
    pub async fn say(&mut self, event: Value) {
        self.text(&event.to_string()).await;
    }
    pub async fn text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }
    /// The next event; `close` with its code and reason, and `gone` after that.
    pub async fn next(&mut self) -> Value {
        tokio::time::timeout(LONG, self.take()).await.unwrap_or_else(|_| panic!("nothing came after {}", self.names()))
    }
    async fn take(&mut self) -> Value {
        loop {
            let event = match self.socket.next().await {
                Some(Ok(Message::Text(text))) => serde_json::from_str(&text).unwrap(),
                Some(Ok(Message::Close(close))) => close.map_or(
                    json!({"type": "close"}),
                    |c| json!({"type": "close", "code": u16::from(c.code), "reason": c.reason.as_str()}),
                ),
                Some(Ok(_)) => continue,
                Some(Err(_)) | None => json!({"type": "gone"}),
            };
            self.seen.push(event);
            return self.seen.last().unwrap().clone();
        }
    }
    /// Reads until an event of that name.
    pub async fn until(&mut self, name: &str) -> Value {
        loop {
            let event = self.next().await;
            if event["type"] == name {
                return event;
            }
            assert!(event["type"] != "gone", "gone before {name}: {}", self.names());
        }
    }
    /// The next error's code; the other events are passed over.
    pub async fn code(&mut self) -> String {
        self.until("error").await["error"]["code"].as_str().unwrap().to_owned()
    }
    /// Says something and gives the code that it is refused with.
    pub async fn refused(&mut self, event: Value) -> String {
        self.say(event).await;
        self.code().await
    }
    /// Nothing comes for a while.
    pub async fn quiet(&mut self, time: Duration) {
        if let Ok(event) = tokio::time::timeout(time, self.take()).await {
            panic!("{event}");
        }
    }
    /// Everything until the connection is gone.
    pub async fn rest(&mut self) -> Vec<Value> {
        let at = self.seen.len();
        while self.next().await["type"] != "gone" {}
        self.seen[at..self.seen.len() - 1].to_vec()
    }
    pub fn names(&self) -> String {
        names(&self.seen).join(" ")
    }
    pub async fn append(&mut self, ms: usize) {
        self.say(json!({"type": "input_audio_buffer.append", "audio": speech(ms), "is_speech": true})).await;
    }
    /// A turn of the user, to be answered.
    pub async fn ask(&mut self, ms: usize) {
        self.append(ms).await;
        self.say(json!({"type": "input.commit"})).await;
    }
    /// A turn of the user and its whole answer: its events from `response.created` on.
    pub async fn turn(&mut self, ms: usize) -> Vec<Value> {
        self.ask(ms).await;
        self.answer().await
    }
    /// The events of the next answer.
    pub async fn answer(&mut self) -> Vec<Value> {
        let created = self.until("response.created").await;
        let at = self.seen.len();
        self.until("rate_limits.updated").await;
        let mut all = vec![created];
        all.extend_from_slice(&self.seen[at..]);
        all
    }
}

pub fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|e| e["type"].as_str().unwrap()).collect()
}
/// What a client has heard of the text.
pub fn transcript(events: &[Value]) -> String {
    of(events, "response.output_audio_transcript.delta").iter().map(|e| e["delta"].as_str().unwrap()).collect()
}
/// What it has heard of the audio.
pub fn audio(events: &[Value]) -> Vec<u8> {
    let deltas = of(events, "response.output_audio.delta");
    deltas.iter().flat_map(|e| STANDARD.decode(e["delta"].as_str().unwrap()).unwrap()).collect()
}
pub fn of<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|e| e["type"] == name).collect()
}
pub fn done(events: &[Value]) -> &Value {
    of(events, "response.done").last().unwrap()
}
/// 440 Hz at RMS 0.1, PCM16 16 kHz.
pub fn speech(ms: usize) -> String {
    let wave = |i: usize| (0.141_421 * 32_768.0 * (i as f64 * 440.0 * std::f64::consts::TAU / 16_000.0).sin()) as i16;
    STANDARD.encode((0..ms * 16).flat_map(|i| wave(i).to_le_bytes()).collect::<Vec<u8>>())
}
