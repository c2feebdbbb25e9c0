//! `cpus` and `numa`: where the compute threads of a node run.
#![cfg(target_os = "linux")]

mod common;

use std::sync::Arc;

use common::*;
use omni_flow::*;

/// The processors that the calling thread may use, as the kernel lists them, and its name.
fn here() -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let field = |key: &str| status.lines().find_map(|l| l.strip_prefix(key)).unwrap().trim().to_owned();
    field("Cpus_allowed_list:")
}
fn first(list: &str) -> usize {
    list.split([',', '-']).next().unwrap().parse().unwrap()
}

/// Answers each text with where it runs, and where it was built.
struct Where(String);
impl Step for Where {
    type In = Arc<str>;
    type Out = Arc<str>;
    fn step(&mut self, stamp: &Stamp, _: Arc<str>, out: &mut Emit<Arc<str>>) -> Result<(), StepError> {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        out.push(*stamp, format!("{} {} {name}", here(), self.0).into());
        Ok(())
    }
}
impl Make for Where {
    const NAME: &'static str = "test.where";
    type Config = NoConfig;
    fn schema() -> Schema {
        Schema::new("where")
            .input(Port::new("in", Kind::of(Medium::Text), "text"))
            .output(Port::new("out", Kind::of(Medium::Text), "text"))
            .example("x: { use: test.where, in: y }")
    }
    fn build(_: &NoConfig, cx: &BuildCx) -> Result<Body, BuildError> {
        // Building may need the runtime (to fetch a model).
        let _ = tokio::runtime::Handle::current();
        let built = here();
        assert_ne!(cx.threads, 99, "told to");
        Ok(Body::step(move || Where(built.clone())))
    }
}

fn plan_of(keys: &str) -> Plan {
    let yaml = format!(
        "
graph: g
session: {{ mode: turn }}
nodes:
  ask: {{ use: session.in, kind: text }}
  n: {{ use: test.where, in: ask, {keys} }}
  say: {{ use: session.out, in: n }}
"
    );
    let mut r = registry();
    r.add::<Where>().unwrap();
    let file = GraphFile::parse("g.yaml", &yaml).unwrap();
    file.check(&r, &CheckCx::default()).unwrap_or_else(|d| panic!("{d}")).0
}

async fn asked(engine: &Engine, keys: &str) -> String {
    let graph = engine.start(plan_of(keys)).await.unwrap();
    let mut s = graph.open().unwrap();
    let (mut ask, mut say) = (s.input("ask").unwrap(), s.output("say").unwrap());
    ask.send(text("x")).await.unwrap();
    ask.end();
    collect(&mut say).await.0.remove(0)
}

#[tokio::test]
async fn steps_run_and_nodes_are_built_on_the_processors_asked_for() {
    let engine = Engine::builder().threads(1).build().unwrap();
    let all = here();
    let cpu = first(&all);
    for place in ["pool", "thread"] {
        assert_eq!(asked(&engine, &format!("place: {place}, cpus: [{cpu}]")).await, format!("{cpu} {cpu} n-0"));
        let free = asked(&engine, &format!("place: {place}")).await;
        assert!(free.starts_with(&format!("{all} {all} ")), "{free}");
        // A thread of the node's own bears its name.
        assert_eq!(free.ends_with(" n-0"), place == "thread", "{free}");
    }
    // All that is granted of a NUMA node, where the machine has any.
    let list = std::fs::read_to_string("/sys/devices/system/node/node0/cpulist").unwrap_or_default();
    if list.trim() == all {
        assert_eq!(asked(&engine, "place: thread, numa: 0").await, format!("{all} {all} n-0"));
    } else {
        println!("skipped: NUMA node 0 has the processors {list:?}, this process {all}");
    }
    assert_eq!(here(), all, "nobody else was bound");
}

#[tokio::test]
async fn what_is_not_there_is_said_at_the_start() {
    let engine = Engine::builder().threads(1).build().unwrap();
    let e = engine.start(plan_of("place: pool, cpus: [1023]")).await.err().unwrap();
    assert!(e.to_string().starts_with("g/n: this process may not use the processors 1023 (it may use "), "{e}");
    let e = engine.start(plan_of("place: thread, numa: 1023")).await.err().unwrap();
    assert!(e.to_string().starts_with("g/n: this machine has no NUMA node 1023 (it has "), "{e}");
    // A panic while it is built is told as anywhere else.
    let cpu = first(&here());
    let e = engine.start(plan_of(&format!("place: pool, threads: 99, cpus: [{cpu}]"))).await.err().unwrap();
    assert!(e.to_string().contains("g/n: panicked while it was built: ") && e.to_string().contains("told to"), "{e}");
}

#[tokio::test]
async fn a_simulated_world_has_nothing_to_bind() {
    let engine = Engine::builder().inline().build().unwrap();
    let all = here();
    let cpu = first(&all);
    let got = asked(&engine, &format!("place: pool, cpus: [{cpu}]")).await;
    assert!(got.starts_with(&format!("{all} {all} ")), "{got}");
}
