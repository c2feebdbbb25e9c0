//! How many conversations a served graph holds at their pace, beside a bare WebSocket echo in the same run; what each holds in
//! memory; and how soon all are at their pace again after the server was stopped for a moment.
//!
//!     cargo bench -p omni-flow-benches --features served --bench served -- [SESSIONS ...]
//!
//! Each session sends 20 ms of 16 kHz audio every 20 ms. The bare server gives the 640 bytes back as they come; ours takes
//! them as the Realtime protocol has them (JSON, base64), through the graph `echo`, and back. The server is a process of its
//! own, the clients share the processors with it. A frame is late by the time from when it was due to be sent until all of it
//! has come back.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt as _, StreamExt as _};
use omni_flow::{CheckCx, Engine, GraphFile, Layers, Registry};
use omni_flow_transports::door::{self, Door, Gate};
use omni_flow_transports::realtime::config::Defaults;
use omni_flow_transports::realtime::host::{self, Host, Limits};
use omni_flow_transports::serve::{App, Listener, Shield};
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;

const FRAME: Duration = Duration::from_millis(20);
const BYTES: usize = 640;
const SECONDS: u64 = 10;
/// How long the server is stopped, and when.
const STALL: Duration = Duration::from_millis(100);
const STALLED_AT: u64 = SECONDS / 2;
/// Late is what is later than this.
const LATE: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Bare,
    Omni,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
    match std::env::var("OMNI_FLOW_BENCH_SERVE").as_deref() {
        Ok("bare") => return runtime.block_on(bare()),
        Ok("omni") => return runtime.block_on(omni()),
        _ => {}
    }
    let given: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let steps = if given.is_empty() { vec![50, 100, 200, 300, 400, 500, 600, 700, 800, 1000] } else { given };
    println!(
        "| server | sessions | p50 ms | p99 ms | max ms | lost | KiB open | KiB talking | CPU us a frame |\n|---|---|---|---|---|---|---|---|---|"
    );
    for (kind, name) in [(Kind::Bare, "bare echo"), (Kind::Omni, "omni-flow echo")] {
        let mut held = 0;
        for n in &steps {
            let server = Server::start(kind);
            let run = runtime.block_on(load(&server, kind, *n, None));
            println!("| {name} | {n} | {run} |");
            if run.p99() <= LATE && run.lost == 0 {
                held = *n;
            } else if *n > 2 * held {
                break;
            }
        }
        println!("| {name} holds | **{held}** | | | | | | | |");
    }
    println!("\nAfter a stop of {} ms:\n\n| server | sessions | late for |\n|---|---|---|", STALL.as_millis());
    for (kind, name) in [(Kind::Bare, "bare echo"), (Kind::Omni, "omni-flow echo")] {
        let server = Server::start(kind);
        let run = runtime.block_on(load(&server, kind, 50, Some(STALL)));
        println!("| {name} | 50 | {:.0} ms |", run.recovered.as_secs_f64() * 1000.0);
    }
}

/// A server in a process of its own.
struct Server {
    child: Child,
    at: SocketAddr,
}

impl Server {
    fn start(kind: Kind) -> Self {
        let what = if kind == Kind::Bare { "bare" } else { "omni" };
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .env("OMNI_FLOW_BENCH_SERVE", what)
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("an address");
        Self { at: line.trim().parse().expect("an address"), child }
    }
    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let sent = pid.is_some_and(|pid| kill_process(pid, signal).is_ok());
        assert!(sent, "the server is there");
    }
    /// Resident KiB.
    fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
        line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    }
    /// Seconds of processor time.
    fn cpu(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let ticks = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
        ticks.filter_map(|t| t.parse::<f64>().ok()).sum::<f64>() / 100.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tell(at: SocketAddr) {
    println!("{at}");
    let _ = std::io::stdout().flush();
}

async fn bare() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    tell(listener.local_addr().expect("an address"));
    while let Ok((socket, _)) = listener.accept().await {
        let _ = socket.set_nodelay(true);
        tokio::spawn(async move {
            let Ok(mut ws) = tokio_tungstenite::accept_async(socket).await else { return };
            while let Some(Ok(m)) = ws.next().await {
                if m.is_binary() && ws.send(m).await.is_err() {
                    break;
                }
            }
        });
    }
}

async fn omni() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../graphs/echo.yaml");
    let over = Layers { overrides: vec![r#"{"session": {"max-sessions": 10000}}"#.into()], ..Layers::default() };
    let file = GraphFile::load(path, &over).unwrap_or_else(|d| panic!("{d}"));
    let plan = file.check(&Registry::base(), &CheckCx::default()).unwrap_or_else(|d| panic!("{d}")).0;
    let can = host::facts(&plan, &file).expect("what it can do");
    let engine = Engine::new().expect("threads");
    let graph = engine.start(plan).await.expect("a graph");
    let clock = engine.clock().clone();
    let host = Host::new(graph.clone(), clock.clone(), can, Defaults::default(), Limits::default()).expect("a host");
    let address = "127.0.0.1:0".parse().expect("an address");
    let listener = Listener::bind(&address, None, Shield::default()).expect("a port");
    let at = listener.address().expect("an address");
    let (gate, limits) = (Arc::new(Gate::default()), door::Limits::default());
    let router = door::router(Door { graph, clock, host: Some(host), model: "echo".into(), gate, limits });
    let (_halt, halted) = watch::channel(false);
    let app = App::default();
    app.ready(router, halted.clone());
    tell(at);
    listener.serve(app, halted).await;
}

/// What one load came to.
struct Run {
    /// Microseconds.
    late: Vec<u32>,
    lost: u64,
    /// Memory of one session: open, and after half of the time.
    kib: [f64; 2],
    cpu: f64,
    recovered: Duration,
}

impl Run {
    fn at(&self, q: f64) -> Duration {
        let i = (self.late.len().saturating_sub(1) as f64 * q) as usize;
        Duration::from_micros(self.late.get(i).copied().unwrap_or(u32::MAX).into())
    }
    fn p99(&self) -> Duration {
        self.at(0.99)
    }
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = |q| self.at(q).as_secs_f64() * 1000.0;
        let ([idle, busy], lost, cpu) = (self.kib, self.lost, self.cpu);
        write!(f, "{:.1} | {:.1} | {:.1} | {lost} | {idle:.0} | {busy:.0} | {cpu:.0}", ms(0.5), ms(0.99), ms(1.0))
    }
}

async fn load(server: &Server, kind: Kind, sessions: usize, stall: Option<Duration>) -> Run {
    let before = server.resident();
    let mut open = JoinSet::new();
    for i in 0..sessions {
        let at = server.at;
        open.spawn(async move {
            // Not all at once: this measures conversations, not handshakes.
            tokio::time::sleep(Duration::from_millis(4 * i as u64)).await;
            connect(at, kind).await
        });
    }
    let mut sockets = Vec::new();
    while let Some(socket) = open.join_next().await {
        sockets.push(socket.expect("a connection"));
    }
    let idle = server.resident().saturating_sub(before) as f64 / sessions as f64;
    let start = Instant::now() + Duration::from_millis(500);
    let frames = SECONDS * 1000 / 20;
    let lost = Arc::new(AtomicU64::new(0));
    let mut all = JoinSet::new();
    for (i, socket) in sockets.into_iter().enumerate() {
        let begin = start + FRAME.mul_f64(i as f64 / sessions as f64);
        all.spawn(converse(socket, kind, begin, frames, lost.clone()));
    }
    let cpu = server.cpu();
    let mut resident = 0;
    let probe = async {
        tokio::time::sleep_until((start + Duration::from_secs(STALLED_AT)).into()).await;
        resident = server.resident();
        if let Some(stall) = stall {
            server.signal(Signal::STOP);
            tokio::time::sleep(stall).await;
            server.signal(Signal::CONT);
        }
        Instant::now()
    };
    let gather = async {
        let mut late = Vec::new();
        while let Some(one) = all.join_next().await {
            late.extend(one.expect("a conversation"));
        }
        late
    };
    let (resumed, got) = tokio::join!(probe, gather);
    // The last moment at which something late came, counted from when the server went on.
    let worst = got.iter().filter(|(_, l)| *l > LATE.as_micros() as u32).map(|(at, _)| *at).max();
    let recovered = worst.map_or(Duration::ZERO, |at| at.saturating_duration_since(resumed));
    let mut late: Vec<u32> = got.into_iter().map(|(_, l)| l).collect();
    late.sort_unstable();
    let expected = frames * sessions as u64;
    let lost = expected - late.len() as u64 + lost.load(Ordering::Relaxed);
    let kib = resident.saturating_sub(before) as f64 / sessions as f64;
    Run { late, lost, kib: [idle, kib], cpu: (server.cpu() - cpu) * 1e6 / expected as f64, recovered }
}

type Socket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

async fn connect(at: SocketAddr, kind: Kind) -> Socket {
    let path = if kind == Kind::Bare { "/" } else { "/v1/realtime?duplex=1" };
    let url = format!("ws://{at}{path}");
    let (mut socket, _) = tokio_tungstenite::connect_async_with_config(url, None, true).await.expect("a connection");
    if kind == Kind::Omni {
        let rate =
            r#"{"type":"session.update","session":{"audio":{"output":{"format":{"type":"audio/pcm","rate":16000}}}}}"#;
        socket.send(Message::text(rate)).await.expect("it takes this");
        while let Some(Ok(m)) = socket.next().await {
            if m.to_text().is_ok_and(|t| t.contains("\"session.updated\"")) {
                break;
            }
        }
    }
    socket
}

/// When each frame was back, and how late, in microseconds.
async fn converse(
    socket: Socket,
    kind: Kind,
    start: Instant,
    frames: u64,
    lost: Arc<AtomicU64>,
) -> Vec<(Instant, u32)> {
    let (mut tx, mut rx) = socket.split();
    let due = move |k: u64| start + FRAME * u32::try_from(k).unwrap_or(u32::MAX);
    let read = tokio::spawn(async move {
        let (mut bytes, mut seen) = (0, Vec::new());
        let end = due(frames) + Duration::from_secs(4);
        while (seen.len() as u64) < frames {
            let Ok(Some(Ok(message))) = tokio::time::timeout_at(end.into(), rx.next()).await else { break };
            let now = Instant::now();
            bytes += match kind {
                Kind::Bare if message.is_binary() => message.len(),
                Kind::Omni => audio(message.to_text().unwrap_or_default()),
                Kind::Bare => 0,
            };
            while bytes >= (seen.len() + 1) * BYTES && (seen.len() as u64) < frames {
                let late = now.saturating_duration_since(due(seen.len() as u64));
                seen.push((now, u32::try_from(late.as_micros()).unwrap_or(u32::MAX)));
            }
        }
        seen
    });
    let frame = vec![40_u8; BYTES];
    let text = format!(r#"{{"type":"input_audio_buffer.append","audio":"{}"}}"#, STANDARD.encode(&frame));
    for k in 0..frames {
        tokio::time::sleep_until(due(k).into()).await;
        let message = match kind {
            Kind::Bare => Message::binary(frame.clone()),
            Kind::Omni => Message::text(text.clone()),
        };
        if tx.send(message).await.is_err() {
            lost.fetch_add(1, Ordering::Relaxed);
            break;
        }
    }
    read.await.unwrap_or_default()
}

/// Bytes of audio of an event: a client of this load reads no more of it than it must.
fn audio(event: &str) -> usize {
    if !event.contains("\"response.output_audio.delta\"") {
        return 0;
    }
    let Some(at) = event.find("\"delta\":\"") else { return 0 };
    let rest = &event[at + 9..];
    let len = rest.find('"').unwrap_or(0);
    let pad = rest[..len].bytes().rev().take_while(|b| *b == b'=').count();
    len / 4 * 3 - pad
}
