//! What a right graph becomes.

use std::time::Duration;

use omni_flow::{Amount, CheckCx, GraphFile, Lane, MediaTime, Mode, Place, Policy};

use super::{VOICE, check, found};

#[test]
fn a_right_graph_becomes_a_plan() {
    let (plan, warnings) = check(VOICE).unwrap_or_else(|d| panic!("{d}"));
    assert!(warnings.iter().all(|d| d.severity == omni_flow::Severity::Note), "{warnings}");
    assert_eq!(plan.name, "voice-duplex");
    assert_eq!(plan.lanes, ["main", "reply"]);
    assert_eq!((plan.session.mode, plan.session.max_sessions), (Mode::Duplex, 4));
    assert_eq!(plan.session.idle_ttl, Some(Duration::from_secs(300)));
    let node = |n: &str| plan.nodes.iter().find(|x| x.name == n).unwrap();
    assert_eq!(node("asr").place, Place::Shared);
    assert_eq!(node("llm").place, Place::Shared, "a shared type needs no `place`");
    assert_eq!(node("vad").place, Place::Task);
    assert_eq!(node("turn").fences, Lane::new(1));
    assert_eq!(node("talker").memory.host, 64 << 20);
    let depths: Vec<usize> = plan.nodes.iter().map(|n| n.depth).collect();
    assert_eq!(depths, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let edge = |from: &str, to: &str| {
        plan.edges.iter().find(|e| plan.output_name(e.from) == from && plan.input_name(e.to) == to).unwrap()
    };
    let plain = edge("mic.audio", "down.in");
    assert_eq!(plain.kind.to_string(), "audio 48000 mono f32");
    assert_eq!(plain.limit, Amount { items: 32, bytes: 4 << 20, span: MediaTime::from_millis(500) });
    assert_eq!(plain.deadline, Some(Duration::from_secs(600)));
    assert_eq!(edge("down.out", "vad.in").kind.to_string(), "audio 16000 mono f32", "like, with the new rate");
    let played = edge("speaker.played", "llm.played");
    assert!(played.feedback);
    assert_eq!(played.lane, Lane::new(1).unwrap());
    let spoken = edge("talker.audio", "speaker.audio");
    assert_eq!((spoken.policy, spoken.limit.span), (Policy::DropOldest, MediaTime::from_millis(100)));
    assert_eq!(edge("speaker.audio", "out.audio").limit.span, MediaTime::from_millis(200), "into a player");
    for (e, w) in plan.edges.iter().enumerate() {
        assert_eq!(plan.nodes[w.to.0].inputs[w.to.1], Some(e));
        assert!(plan.nodes[w.from.0].outputs[w.from.1].contains(&e));
    }
}

#[test]
fn a_window_that_is_not_given_has_room_for_the_longest_chunk() {
    let text = "graph: a\nnodes:\n  mic: { use: session.in }\n  block: { use: audio.frame, length: 900ms, in: mic }\n  end: { use: file.out, in: block }\n";
    let (plan, _) = check(text).unwrap_or_else(|d| panic!("{d}"));
    assert_eq!(plan.edges[0].limit.span, MediaTime::from_millis(500));
    assert_eq!(plan.edges[1].limit.span, MediaTime::from_millis(900));
}

#[test]
fn sessions_follow_the_smallest_shared_stage() {
    let text = VOICE.replace(", max_sessions: 4", "");
    assert_eq!(check(&text).unwrap().0.session.max_sessions, 3);
    assert_eq!(
        check("graph: a\nnodes: { a: { use: session.in }, b: { use: file.out, in: a } }")
            .unwrap()
            .0
            .session
            .max_sessions,
        64
    );
}

#[test]
fn the_hash_sees_meaning_and_not_writing() {
    let hash = |t: &str| check(t).unwrap_or_else(|d| panic!("{d}")).0.hash;
    let base = hash(VOICE);
    assert_eq!(base, hash(&format!("# a remark\n{VOICE}")));
    assert_eq!(base, hash(&VOICE.replace("max_sessions", "max-sessions")));
    assert_eq!(base, hash(&VOICE.replace("use: model.chat, in", "use: \"model.chat\", in")));
    for (a, b) in [("slots: 3", "slots: 2"), ("span: 100ms", "span: 101ms"), ("rate: 48000", "rate: 44100")] {
        assert_ne!(base, hash(&VOICE.replace(a, b)), "{b}");
    }
}

#[test]
fn text_stays_text() {
    // F62: what other parsers turn into false, 1.1, 10 and 1350.
    let file = GraphFile::parse(
        "t.yaml",
        "graph: a\nnodes:\n  t: { use: speech.turn, lang: no, version: 1.10, id: 012, at: 22:30, words: [on, ~x, 0x1] }\n",
    )
    .unwrap();
    #[derive(serde::Deserialize, Debug, PartialEq)]
    struct T {
        lang: String,
        version: String,
        id: String,
        at: String,
        words: Vec<String>,
    }
    let t: T = file.section("nodes.t").unwrap().unwrap();
    let s = str::to_owned;
    let want =
        T { lang: s("no"), version: s("1.10"), id: s("012"), at: s("22:30"), words: vec![s("on"), s("~x"), s("0x1")] };
    assert_eq!(t, want);
    let json = file.explain("nodes.t").unwrap().value;
    assert_eq!(json["version"], "1.10");
    assert_eq!(json["id"], "012");
    // A field that is no text refuses it clearly.
    #[derive(serde::Deserialize, Debug)]
    #[allow(dead_code)]
    struct B {
        lang: bool,
    }
    let e = file.section::<B>("nodes.t").unwrap_err();
    let d = e.iter().next().unwrap();
    assert_eq!((d.span.unwrap().line, d.span.unwrap().column), (3, 32));
    assert_eq!(d.hint.as_deref(), Some("write `false`"));
}

#[test]
fn variables_stand_for_secrets_and_are_never_shown() {
    let text = "graph: a\nnodes:\n  m: { use: session.in }\n  d: { use: audio.resample, rate: 16000, in: m }\n  t: { use: speech.turn, in: d, api_key: \"${env:KEY}\" }\n  f: { use: file.out, in: t.utterance }\n  g: { use: file.out, in: t.decided }\n";
    let file = GraphFile::parse("a.yaml", text).unwrap();
    let cx = |env: &[(&str, &str)]| CheckCx {
        env: Some(env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()),
        ..CheckCx::default()
    };
    let r = super::toys::registry();
    file.check(&r, &cx(&[("KEY", "sesame")])).unwrap_or_else(|d| panic!("{d}"));
    let e = file.check(&r, &cx(&[])).unwrap_err();
    assert!(e.to_string().contains("G109"), "{e}");
    let literal = GraphFile::parse("a.yaml", &text.replace("${env:KEY}", "sesame")).unwrap();
    let e = literal.check(&r, &cx(&[])).unwrap_err().to_string();
    assert!(e.contains("G108") && !e.contains("sesame"), "{e}");
}

#[test]
fn a_plan_can_be_told_and_drawn() {
    let (plan, _) = check(VOICE).unwrap();
    let table = plan.describe().to_string();
    for word in
        ["voice-duplex", "duplex", "main (fences reply)", "audio 48000 mono f32", "64MiB", "(feedback)", "shared x3"]
    {
        assert!(table.contains(word), "{word} in\n{table}");
    }
    let json = serde_json::to_value(plan.describe()).unwrap();
    assert_eq!(json["nodes"][4]["place"], "shared");
    assert_eq!(json["edges"][0]["window"], "32 items, 4MiB, 500ms");
    let m = plan.mermaid();
    assert!(m.starts_with("flowchart LR\n") && m.contains("subgraph lane1") && m.contains("-.->"), "{m}");
    let svg = plan.svg();
    assert_eq!(svg.matches("<g>").count(), plan.nodes.len());
    assert_eq!(svg.matches("marker-end").count(), plan.edges.len());
    assert!(svg.contains("stroke-dasharray"));
    if let Some(at) = std::env::var_os("OMNI_FLOW_TEST_SVG") {
        std::fs::write(at, svg).unwrap();
    }
}

#[test]
fn an_output_may_be_fed_to_many_and_anchors_may_stand_at_the_top() {
    assert_eq!(
        found(
            "graph: a\nx-w: &w { items: 4 }\nnodes:\n  a: { use: session.in }\n  b: { use: file.out, in: a }\n  c: { use: file.out, in: { from: a, window: *w } }\n"
        ),
        []
    );
}
