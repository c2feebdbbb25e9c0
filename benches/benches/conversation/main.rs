//! The shipped voice graph on real weights: from the true end of speech to the first audio of the answer.
//!
//! `cargo bench -p omni-flow-benches --features models --bench conversation -- [--turns 10] [--sessions 1]
//! [--stagger 0.7] [--json FILE] [--no-alone]`
//!
//! Each session is a person who speaks recorded clips at the pace of speech, 20 ms at a time, hears the whole answer,
//! and speaks again. The clock starts where the clip's speech ends (the last window of 10 ms above 5 % of the loudest)
//! and stops when the first chunk of answer audio comes out of the graph. Turn -1 warms everything and is not counted.
//! Then each stage does the same work alone, so that what the engine itself takes is known.

mod alone;
mod score;
mod user;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use omni_flow::{CheckCx, Engine, Graph, GraphFile, Layers, Session};
use omni_flow_benches::{cpu, resident_peak};

use score::{Row, Summary};
use user::{Clip, Log, User};

/// Ends beside those of the shipped graph, so that each stage's moment is seen.
const TAPS: &str = r#"{"nodes": {
    "turn-out": {"use": "session.out", "in": "turn.events"},
    "clause-out": {"use": "session.out", "lane": "reply", "in": "sentences"}
}}"#;

struct Args {
    turns: usize,
    sessions: usize,
    stagger: Duration,
    json: Option<PathBuf>,
    alone: bool,
}

fn args() -> Args {
    let mut a = Args { turns: 10, sessions: 1, stagger: Duration::from_millis(700), json: None, alone: true };
    let mut given = std::env::args().skip(1);
    while let Some(flag) = given.next() {
        let mut value = || given.next().unwrap_or_else(|| panic!("{flag} needs a value"));
        match flag.as_str() {
            "--turns" => a.turns = value().parse().expect("a number of turns"),
            "--sessions" => a.sessions = value().parse().expect("a number of sessions"),
            "--stagger" => a.stagger = Duration::from_secs_f64(value().parse().expect("seconds")),
            "--json" => a.json = Some(value().into()),
            "--no-alone" => a.alone = false,
            // Given by cargo.
            "--bench" => {}
            other => panic!("unknown argument {other}; see the head of this file"),
        }
    }
    a
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace")
}

fn main() {
    let args = args();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let (rows, mut summary) = runtime.block_on(conversations(&args));
    summary.print();
    if args.alone {
        summary.alone = Some(alone::measure(&file(), &rows));
        summary.print_alone();
    }
    if let Some(path) = &args.json {
        let all =
            serde_json::json!({ "summary": summary.json(), "rows": rows.iter().map(Row::json).collect::<Vec<_>>() });
        std::fs::write(path, format!("{all:#}\n")).expect("the results can be written");
    }
}

fn file() -> GraphFile {
    let layers = Layers { overrides: vec![TAPS.to_owned()], ..Layers::default() };
    GraphFile::load(root().join("graphs/voice-assistant.yaml"), &layers).unwrap_or_else(|d| panic!("{d}"))
}

async fn start() -> (Engine, Graph) {
    let file = file();
    let registry = omni_flow_nodes::registry::registry().unwrap_or_else(|e| panic!("{e}"));
    let (plan, _) = file.check(&registry, &CheckCx::default()).unwrap_or_else(|d| panic!("{d}"));
    let engine = Engine::new().expect("an engine");
    let graph = engine.start(plan).await.unwrap_or_else(|e| panic!("{e}"));
    (engine, graph)
}

async fn conversations(args: &Args) -> (Vec<Row>, Summary) {
    let clips: Arc<[Clip]> = user::clips(&root().join("tests/data/audio")).into();
    let (_engine, graph) = start().await;
    let mut sessions: Vec<Session> =
        (0..args.sessions).map(|_| graph.open().unwrap_or_else(|e| panic!("{e}"))).collect();
    let begin = Instant::now() + Duration::from_millis(200);
    let cpu_before = cpu();
    let mut people = Vec::new();
    for (i, session) in sessions.iter_mut().enumerate() {
        let log = Arc::new(Log::default());
        user::listen(session, &log);
        let mic = session.input("mic").expect("a microphone");
        let user = User { mic, log: log.clone(), clips: clips.clone(), turns: args.turns };
        people.push((i, log, tokio::spawn(user.run(begin + args.stagger * i as u32))));
    }
    let mut rows = Vec::new();
    for (session, log, person) in people {
        let marks = person.await.expect("a user");
        rows.extend(marks.iter().map(|m| score::row(session, m, &log, &clips)));
    }
    let used = cpu() - cpu_before;
    let nodes = sessions.iter().map(|s| s.stats()).collect();
    let summary = Summary::new(args.sessions, &rows, used, begin.elapsed(), resident_peak(), nodes);
    for s in sessions {
        s.abort().await.expect("a session lets go");
    }
    (rows, summary)
}
