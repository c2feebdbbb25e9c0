//! What a graph can do, from its plan.

use omni_flow::{
    Body, BuildCx, BuildError, CheckCx, GraphFile, Kind, Make, Medium, OptionError, Plan, Port, Registry, Schema,
};
use omni_flow_transports::realtime::config::capability::{Capabilities, Level};
use omni_flow_transports::realtime::host::{FactsError, facts};
use serde::Deserialize;

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    declares: bool,
}

/// Everything that a cascade has between its ends.
struct Cascade;
impl Make for Cascade {
    const NAME: &'static str = "test.cascade";
    type Config = Config;
    fn schema() -> Schema {
        let signal = || Kind::of(Medium::Signal);
        Schema::new("has every end")
            .input(Port::new("in", Kind::mono(16_000), "audio"))
            .input(Port::new("control", signal(), "rules").optional())
            .input(Port::new("ask", signal(), "questions").optional())
            .output(Port::new("audio", Kind::mono(24_000), "audio"))
            .output(Port::new("turns", signal(), "turns").optional())
            .output(Port::new("calls", signal(), "calls").optional())
            .option(omni_flow::Opt::maybe("declares", "yes/no", "says so itself"))
            .example("x: { use: test.cascade, in: a }")
    }
    fn refine(config: &Config, schema: &mut Schema) -> Result<(), OptionError> {
        if config.declares {
            schema.fact("implementation_level", "model_native_duplex");
            schema.fact("chunk_period_ms", 80);
            schema.fact("resume", false);
            schema.fact("image", true);
            schema.fact("something_else", true);
        }
        Ok(())
    }
    fn build(_: &Config, _: &BuildCx) -> Result<Body, BuildError> {
        Err(BuildError::new("never built"))
    }
}

fn plan(inputs: &str, node: &str, outputs: &str) -> Plan {
    let mut r = Registry::base();
    r.add::<Cascade>().unwrap();
    let text = format!(
        "graph: g\nlanes: [reply]\nsession: {{ mode: duplex }}\nnodes:\n  mic: {{ use: session.in, audio: {{ rate: 16000 }} }}\n\
         {inputs}  x: {{ use: test.cascade, {node} }}\n  speaker: {{ use: session.out, in: x.audio }}\n{outputs}"
    );
    let cx = CheckCx { fences: vec!["reply".into()], ..CheckCx::default() };
    GraphFile::parse("g.yaml", &text).unwrap().check(&r, &cx).unwrap_or_else(|d| panic!("{d}")).0
}

fn file(session: &str) -> GraphFile {
    GraphFile::parse("g.yaml", &format!("graph: g\nsession: {session}\nnodes: {{}}\n")).unwrap()
}

fn cascade() -> Plan {
    plan(
        "  control: { use: session.in, kind: signal }\n  ask: { use: session.in, kind: signal }\n",
        "lane: reply, in: { in: mic, control: control, ask: ask }",
        "  turns: { use: session.out, in: x.turns }\n  calls: { use: session.out, in: x.calls }\n",
    )
}

#[test]
fn a_cascade_is_profile_d() {
    let can = facts(&cascade(), &file("{ mode: duplex }")).unwrap();
    assert_eq!(can, Capabilities::profile_d(20));
}

#[test]
fn what_the_ends_lack_cannot_be_done() {
    let bare = facts(&plan("", "in: mic", ""), &file("{ mode: duplex }")).unwrap();
    assert_eq!(bare.level, Level::ModelNative);
    assert!(!bare.barge_in && !bare.text_only_turn && !bare.tools && !bare.detects && bare.resume);
    let asked = plan("  ask: { use: session.in, kind: signal }\n", "lane: reply, in: { in: mic, ask: ask }", "");
    let asked = facts(&asked, &file("{ mode: duplex }")).unwrap();
    assert_eq!(asked.level, Level::TurnBased);
    assert!(asked.barge_in && asked.text_only_turn && !asked.tools && !asked.detects);
}

#[test]
fn what_a_node_declares_counts_and_the_file_only_takes_away() {
    let declared = plan("", "in: mic, declares: true", "");
    let can = facts(&declared, &file("{ mode: duplex }")).unwrap();
    assert_eq!((can.level, can.chunk_period_ms, can.resume, can.image), (Level::ModelNative, Some(80), false, true));
    let less = facts(&cascade(), &file("{ capabilities: { resume: false, supports_tools: false, barge-in: true } }"));
    assert_eq!(less, Ok(Capabilities { resume: false, tools: false, ..Capabilities::profile_d(20) }));
    let wrong = |session: &str| facts(&cascade(), &file(session)).unwrap_err();
    assert_eq!(wrong("{ capabilities: { image: true } }"), FactsError::Wider("image".to_owned()));
    assert_eq!(wrong("{ capabilities: { fly: false } }"), FactsError::Unknown("fly".to_owned()));
    assert_eq!(wrong("{ capabilities: [resume] }"), FactsError::Shape);
    assert_eq!(wrong("{ capabilities: { resume: 3 } }"), FactsError::Shape);
}
