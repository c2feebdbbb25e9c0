//! `omni-flow run`: one session of a graph, fed from a file or text, its answer written and printed while it is made; or,
//! with nothing to feed it, the graph served to clients ([`crate::serve`]).
//!
//! Everything that can be known to be wrong is said before a model is loaded: the graph, the ends without a file, files
//! that cannot be read or written. Then nodes are built, one session runs, and a table says what it took.

mod abort;
pub mod ends;
pub mod feed;
mod files;
mod print;
mod report;
pub mod sink;
pub mod source;
pub mod stop;
mod take;
pub mod timing;

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use omni_flow::{ABORT_TIMEOUT, Engine, Graph, Input, Medium, Plan, Registry, Session};
use tokio::task::JoinSet;

use crate::cli::RunArgs;
use crate::failure::Failure;
use crate::{load, output, serve};
pub use abort::{output_timeout, timeout as abort_timeout};
use ends::End;
use feed::Feeder;
use report::Report;
use sink::{Sink, Target};
use source::Source;
pub use stop::Stop;
use take::{Screen, Taken, Taker};
use timing::Ear;

/// The longest that a drain after Ctrl-C takes.
const DRAIN: Duration = Duration::from_secs(10);

/// A run whose ends are bound to opened files.
struct Job {
    plan: Plan,
    sources: Vec<(End, Source)>,
    targets: BTreeMap<String, Target>,
    abort_timeout: Option<Duration>,
    args: RunArgs,
}

/// What a command line asks for.
enum Wanted {
    Run(Box<Job>),
    Serve(Box<serve::Job>),
}

/// Runs a graph.
pub fn run(args: &RunArgs, registry: &Registry) -> Result<(), Failure> {
    let wanted = prepare(args, registry)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    let done = match wanted {
        Wanted::Run(job) => runtime.block_on(go(*job)),
        Wanted::Serve(job) => runtime.block_on(serve::go(*job)),
    };
    // What still blocks (a model being loaded, standard input) must not hold the program.
    runtime.shutdown_background();
    done
}

fn prepare(args: &RunArgs, registry: &Registry) -> Result<Wanted, Failure> {
    let abort_timeout = abort::timeout()?;
    let mut layers = load::layers(&args.graph.sets, &args.graph.overrides);
    let mut file = load::read(&args.graph.graph, &layers)?;
    let (mut inputs, mut outputs) = (args.inputs.clone(), args.outputs.clone());
    if let Some(paths) = files::paths(&file, registry, &mut inputs, &mut outputs, args.no_pace)? {
        layers.overrides.push(paths);
        file = load::read(&args.graph.graph, &layers)?;
    }
    let (plan, warnings) = load::check(&file, registry)?;
    eprint!("{}", warnings.render(std::io::stderr().is_terminal()));
    if serve::wanted(args, &plan) {
        return serve::prepare(args, plan, &file).map(|job| Wanted::Serve(Box::new(job)));
    }
    let (ins, outs) = ends::of(&plan);
    let feeds = ends::inputs(&ins, &inputs, args.text.as_deref())?;
    let targets = ends::outputs(&outs, &outputs)?;
    let (mut read, mut written) = files::of(&file);
    read.extend(feeds.iter().filter_map(|(_, given)| source::path(given)).map(Path::to_owned));
    written.extend(targets.iter().map(|(node, path)| (node.clone(), path.clone())));
    for path in &read {
        if let Some((node, _)) = written.iter().find(|(_, w)| same(path, w)) {
            let message = format!("`{}` is both read and written (by `{node}`)", path.display());
            return Err(Failure::usage(message, "give --output another file"));
        }
    }
    let open = |(end, given): (End, _)| Source::open(&end.kind, given).map(|s| (end, s));
    let sources = feeds.into_iter().map(open).collect::<anyhow::Result<Vec<_>>>()?;
    let open = |(node, path): (String, std::path::PathBuf)| Target::open(&path).map(|t| (node, t));
    let targets = targets.into_iter().map(open).collect::<anyhow::Result<BTreeMap<_, _>>>()?;
    Ok(Wanted::Run(Box::new(Job { plan, sources, targets, abort_timeout, args: args.clone() })))
}

/// True if both lead to one file, by whatever name.
fn same(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    if let (Ok(a), Ok(b)) = (a.metadata(), b.metadata()) {
        use std::os::unix::fs::MetadataExt as _;
        return a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino());
    }
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

async fn go(job: Job) -> Result<(), Failure> {
    let stop = Stop::listen();
    let Job { plan, sources, targets, abort_timeout, args } = job;
    let engine = engine(&args, abort_timeout)?;
    let name = plan.name.clone();
    let began = Instant::now();
    say(&args, &format!("starting {name}: {}", summary(&plan)));
    let graph: Graph = tokio::select! {
        biased;
        () = stop.asked(1) => return Err(Failure::Interrupted),
        started = engine.start(plan) => started.map_err(anyhow::Error::from)?,
    };
    let started = began.elapsed();
    say(&args, &format!("ready in {:.2} s", started.as_secs_f64()));
    let paced = !args.no_pace;
    let mut running = Running::open(&engine, &graph, sources, targets, &args, &stop)?;
    let began = Instant::now();
    let ended = running.wait(&stop).await;
    running.screen.close();
    let ran = began.elapsed();
    let stats = running.session.stats();
    let (taken, stopped) = match ended {
        Ok(ended) => ended,
        Err(failure) => {
            running.end().await;
            return Err(failure);
        }
    };
    let (text, good) = {
        let ear = running.ear.as_ref().map(|e| e.lock().unwrap_or_else(PoisonError::into_inner));
        let report = Report { graph: &name, stats, taken: &taken, ear: ear.as_deref(), paced, started, ran, stopped };
        let text = if args.json { format!("{}\n", report.to_json()) } else { report.table() };
        (text, answered(&taken, ear.as_deref()))
    };
    let told = stop.or_done(move || output::put(&text)).await;
    if stopped || !told { Err(Failure::Interrupted) } else { good }
}

/// The engine that a command line asks for.
pub fn engine(args: &RunArgs, abort_timeout: Option<Duration>) -> Result<Engine, Failure> {
    let mut engine = Engine::builder().offline(args.offline).seed(args.seed);
    if let Some(n) = args.threads {
        engine = engine.threads(n.into());
    }
    if let Some(limit) = abort_timeout {
        engine = engine.abort_timeout(limit);
    }
    Ok(engine.build().context("cannot start the compute threads")?)
}

/// A session that was asked something and spoke nothing did not do what it is for.
fn answered(taken: &[Taken], ear: Option<&Ear>) -> Result<(), Failure> {
    let silent = taken.iter().find(|t| !t.text && t.answers.all().is_empty());
    let why = match ear {
        Some(e) if !e.heard_anything() => "the recording is silent",
        Some(_) => "no speech was found in the recording, or nothing was made of it",
        None => {
            "the graph made none of this text; if there is nothing in it that the voice can speak, a warning says so"
        }
    };
    match silent {
        Some(t) => Err(anyhow!("no audio came out of `{}`: {why}", t.node).into()),
        None => {
            if ear.is_some() && !taken.is_empty() && taken.iter().all(|t| t.answers.all().is_empty() && t.other == 0) {
                eprintln!("note: {why}");
            }
            Ok(())
        }
    }
}

/// A line about progress, for people.
pub fn say(args: &RunArgs, text: &str) {
    if !args.json {
        eprintln!("{text}");
    }
}

pub fn summary(plan: &Plan) -> String {
    let models: Vec<&str> = plan.nodes.iter().filter(|n| n.schema.shared).map(|n| n.name.as_str()).collect();
    let models = if models.is_empty() { String::new() } else { format!(", models: {}", models.join(", ")) };
    format!("{} nodes{models}", plan.nodes.len())
}

/// An open session with the tasks that feed it and take from it.
struct Running {
    session: Session,
    feeders: JoinSet<anyhow::Result<()>>,
    takers: JoinSet<anyhow::Result<Taken>>,
    /// Inputs that nothing feeds; they end with those that are fed.
    unfed: Vec<Input>,
    ear: Option<Arc<Mutex<Ear>>>,
    screen: Arc<Screen>,
    json: bool,
}

impl Running {
    fn open(
        engine: &Engine,
        graph: &Graph,
        sources: Vec<(End, Source)>,
        mut targets: BTreeMap<String, Target>,
        args: &RunArgs,
        stop: &Stop,
    ) -> Result<Self, Failure> {
        let clock = engine.clock().clone();
        let (_, outs) = ends::of(graph.plan());
        let mut sinks: BTreeMap<String, Sink> = BTreeMap::new();
        for end in &outs {
            if let Some(t) = targets.remove(&end.node) {
                sinks.insert(end.node.clone(), t.begin(&end.kind)?);
            }
        }
        let mut session = graph.open().map_err(anyhow::Error::from)?;
        let screen = Arc::new(Screen::new(args.json, clock.clone()));
        let mut takers = JoinSet::new();
        for end in outs {
            let Some(output) = session.output(&end.node) else { continue };
            let sink = sinks.remove(&end.node);
            takers.spawn(Taker { node: end.node, output, sink, screen: screen.clone() }.run());
        }
        let mut feeders = JoinSet::new();
        let mut ear = None;
        for (end, source) in sources {
            let Some(input) = session.input(&end.node) else { continue };
            // Speech is timed on the first audio input.
            let own = match source.format() {
                Some(f) if ear.is_none() => {
                    ear = Some(Arc::new(Mutex::new(Ear::new(f.rate, f.channels))));
                    ear.clone()
                }
                _ => None,
            };
            let paced = !args.no_pace && end.kind.medium == Medium::Audio;
            let feeder =
                Feeder { input, items: source.start()?, paced, clock: clock.clone(), ear: own, stop: stop.clone() };
            feeders.spawn(feeder.run());
        }
        let rest: Vec<String> = session.inputs().map(str::to_owned).collect();
        let unfed = rest.iter().filter_map(|node| session.input(node)).collect();
        Ok(Self { session, feeders, takers, unfed, ear, screen, json: args.json })
    }

    /// Waits until all is done, or the user has had enough. Gives what was taken, and whether the user stopped it.
    async fn wait(&mut self, stop: &Stop) -> Result<(Vec<Taken>, bool), Failure> {
        let json = self.json;
        let screen = self.screen.clone();
        let session = self.session.handle();
        let done = self.done();
        tokio::pin!(done);
        tokio::select! {
            biased;
            r = &mut done => return r.map(|t| (t, stop.times() > 0)),
            () = stop.asked(1) => {}
        }
        session.close_sources();
        screen.close();
        if !json {
            eprintln!(
                "stopping: what is under way comes out, at most {} s; Ctrl-C again stops at once",
                DRAIN.as_secs()
            );
        }
        tokio::select! {
            biased;
            () = stop.asked(2) => Err(Failure::Interrupted),
            r = tokio::time::timeout(DRAIN, &mut done) => match r {
                Ok(r) => r.map(|t| (t, true)),
                Err(_) => Err(Failure::Interrupted),
            },
        }
    }

    /// Waits until the inputs are fed, the outputs have ended and no node runs.
    ///
    /// # Errors
    /// The first failure: of a source, of a file that is written, or of a node.
    async fn done(&mut self) -> Result<Vec<Taken>, Failure> {
        let mut all = Vec::new();
        let Self { session, feeders, takers, unfed, .. } = self;
        loop {
            if feeders.is_empty() {
                unfed.drain(..).for_each(Input::end);
                if takers.is_empty() {
                    break;
                }
            }
            tokio::select! {
                Some(r) = feeders.join_next() => r.context("a feeder panicked")??,
                Some(r) = takers.join_next() => all.push(r.context("a taker panicked")??),
            }
        }
        session.wait().await.map_err(anyhow::Error::from)?;
        all.sort_by(|a: &Taken, b| a.node.cmp(&b.node));
        Ok(all)
    }

    /// Stops everything now. What was written stays valid. Whoever writes to a reader that stopped reading is left.
    async fn end(mut self) {
        let stopped = async {
            self.feeders.shutdown().await;
            self.takers.shutdown().await;
        };
        if tokio::time::timeout(ABORT_TIMEOUT, stopped).await.is_err() {
            tracing::warn!("an output is still being written: its reader has stopped reading");
        }
        if let Err(e) = self.session.abort().await {
            tracing::warn!(error = %e, "not everything let go in time");
        }
    }
}
