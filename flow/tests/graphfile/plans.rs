//! What a right graph becomes.

use std::time::Duration;

use omni_flow::{Amount, CheckCx, Code, GraphFile, Lane, MediaTime, Mode, Place, Policy, RestartPolicy};

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
    well_formed(&svg);
    if let Some(at) = std::env::var_os("OMNI_FLOW_TEST_SVG") {
        std::fs::write(at, svg).unwrap();
    }
}

/// Each element is closed, in order, and no text holds what would open one.
fn well_formed(xml: &str) {
    let mut open = Vec::new();
    for part in xml.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("a closed tag");
        assert!(!text.contains('>'), "{part}");
        let references = text.split('&').skip(1).chain(tag.split('&').skip(1));
        references.for_each(|r| assert!(["amp;", "lt;", "gt;", "quot;"].iter().any(|e| r.starts_with(e)), "{part}"));
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{part}"),
            None if tag.ends_with('/') => {}
            None => open.push(tag.split(' ').next().unwrap()),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

/// The numbers of an attribute of all `<rect`s that are boxes of nodes: x, y, width, height.
fn boxes(svg: &str) -> Vec<[usize; 4]> {
    let nodes = svg.lines().filter(|l| l.starts_with("<g>"));
    let value = |l: &str, name: &str| -> usize {
        let rect = l.split_once("<rect").unwrap().1;
        rect.split_once(&format!(" {name}=\"")).unwrap().1.split('"').next().unwrap().parse().unwrap()
    };
    nodes.map(|l| ["x", "y", "width", "height"].map(|n| value(l, n))).collect()
}

/// The commands of a path with their numbers.
fn steps(d: &str) -> Vec<(char, Vec<usize>)> {
    let mut all: Vec<(char, Vec<usize>)> = Vec::new();
    for word in d.split(' ') {
        let number = word.trim_start_matches(|c: char| c.is_alphabetic());
        if number.len() < word.len() {
            all.push((word.chars().next().unwrap(), Vec::new()));
        }
        all.last_mut().unwrap().1.push(number.parse().unwrap());
    }
    all
}

#[test]
fn a_long_chain_is_drawn_in_bands_of_a_pages_width() {
    let mut text = String::from("graph: long\nnodes:\n  n0: { use: session.in }\n");
    for i in 1..12 {
        text.push_str(&format!("  n{i}: {{ use: audio.resample, rate: 48000, in: n{} }}\n", i - 1));
    }
    text.push_str(
        "  n12: { use: file.out, in: n11 }\n  early: { use: file.out, in: n0 }\n  late: { use: file.out, in: n11 }\n",
    );
    let (plan, _) = check(&text).unwrap_or_else(|d| panic!("{d}"));
    let svg = plan.svg();
    well_formed(&svg);
    let size = |name: &str| -> usize {
        svg.split_once(&format!(" {name}=\"")).unwrap().1.split('"').next().unwrap().parse().unwrap()
    };
    let (width, height) = (size("width"), size("height"));
    assert!(width <= 1400 && height <= 1400, "{width} x {height}");
    let all = boxes(&svg);
    assert_eq!(all.len(), 15);
    for (i, [x, y, w, h]) in all.iter().enumerate() {
        assert!(x + w < width && y + h < height);
        for [x2, y2, w2, h2] in &all[i + 1..] {
            assert!(x + w < *x2 || x2 + w2 < *x || y + h < *y2 || y2 + h2 < *y, "boxes do not meet");
        }
    }
    // A line that is no curve is upright or level; none of its parts goes through a box.
    let mut routed = 0;
    for d in svg.lines().filter_map(|l| l.strip_prefix("<path d=\"")).filter(|d| d.contains(" V")) {
        routed += 1;
        let (mut x, mut y) = (0, 0);
        for (command, n) in steps(d.split('"').next().unwrap()) {
            let (to_x, to_y) = match command {
                'H' => (n[0], y),
                'V' => (x, n[0]),
                _ => (n[n.len() - 2], n[n.len() - 1]),
            };
            if "HV".contains(command) {
                let (left, right, top, low) = (x.min(to_x), x.max(to_x), y.min(to_y), y.max(to_y));
                let hit = all.iter().find(|[bx, by, w, h]| left < bx + w && right > *bx && top < by + h && low > *by);
                assert!(hit.is_none(), "{d} goes through {hit:?}");
            }
            (x, y) = (to_x, to_y);
        }
    }
    assert!(routed >= 4, "{routed}: to the next bands, and past a column");
    if let Some(at) = std::env::var_os("OMNI_FLOW_TEST_LONG_SVG") {
        std::fs::write(at, svg).unwrap();
    }
}

#[test]
fn names_of_any_length_stay_in_their_boxes() {
    let long = "a-name-that-is-longer-than-any-box-has-room-for-mmmmwwww";
    let text = format!(
        "graph: {long}\nlanes: [{long}]\nnodes:\n  {long}: {{ use: session.in, lane: {long} }}\n  o: {{ use: file.out, in: {long} }}\n"
    );
    let (plan, _) = check(&text).unwrap_or_else(|d| panic!("{d}"));
    let svg = plan.svg();
    well_formed(&svg);
    let shown = svg
        .lines()
        .filter(|l| l.starts_with("<g>"))
        .flat_map(|l| l.split("</text>"))
        .filter_map(|t| t.rsplit_once('>'));
    for (_, text) in shown.filter(|(head, _)| head.contains("<text")) {
        assert!(text.chars().count() <= 34, "{text}");
    }
    assert!(svg.contains(&format!("<title>{long}: session.in")), "the whole name is there to be read");
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

#[test]
fn a_file_may_say_when_age_overrules_class() {
    let with = |section: &str| check(&format!("{VOICE}\n{section}")).unwrap_or_else(|d| panic!("{d}")).0.scheduler;
    assert_eq!(with(""), None);
    let some = with("scheduler: { starvation-picks: 8 }").unwrap();
    assert_eq!((some.picks, some.age), (8, Duration::from_millis(100)));
    let both = with("scheduler: { starvation_picks: 9, starvation_ms: 40 }").unwrap();
    assert_eq!((both.picks, both.age), (9, Duration::from_millis(40)));
}

#[test]
fn restarts_budgets_and_processors_stand_in_the_plan() {
    let text = "
graph: a
defaults: { node: { restart: { on-fault: { max: 3, window: 1m } }, step-budget: 20ms, cpus: [1] } }
nodes:
  mic: { use: session.in, audio: { rate: 16000 } }
  enc: { use: audio.opus-encode, in: mic, restart: never, cpus: [9, 8, 10, 12] }
  end: { use: file.out, in: enc, step-budget: 1s }
  asr: { use: model.whisper, in: mic, numa: 0 }
  log: { use: file.out, in: asr, place: thread }
";
    let (plan, _) = check(text).unwrap_or_else(|d| panic!("{d}"));
    let node = |n: &str| plan.nodes.iter().find(|x| x.name == n).unwrap();
    let often = RestartPolicy { max: 3, window: Duration::from_secs(60) };
    assert_eq!((node("mic").restart, node("enc").restart, node("end").restart), (None, None, Some(often)));
    let ms = |n| Some(Duration::from_millis(n));
    assert_eq!((node("mic").step_budget, node("enc").step_budget, node("end").step_budget), (None, ms(20), ms(1000)));
    let pins: Vec<(&[usize], Option<usize>)> = plan.nodes.iter().map(|n| (&n.cpus[..], n.numa)).collect();
    let none = (&[][..], None);
    assert_eq!(
        pins,
        [none, (&[8, 9, 10, 12], None), none, (&[], Some(0)), (&[1], None)],
        "defaults skip what has no threads"
    );
    let told = plan.describe().to_string();
    for line in [
        "enc: bound to processors 8-10,12; steps above 20ms are reported",
        "end: made anew after a fault, at most 3 within 60s; steps above 1s are reported",
        "asr: bound to NUMA node 0; made anew after a fault, at most 3 within 60s; steps above 20ms are reported",
    ] {
        assert!(told.lines().any(|l| l == line), "{told} says: {line}");
    }
    assert!(!told.contains("mic: "), "{told}");
}

#[cfg(target_os = "linux")]
#[test]
fn processors_are_looked_for_only_if_the_check_may_look() {
    let text = |keys: &str| {
        format!(
            "graph: a\nnodes:\n  mic: {{ use: session.in }}\n  end: {{ use: file.out, in: mic, place: pool, {keys} }}\n"
        )
    };
    let found = |keys: &str, files: bool| {
        let file = GraphFile::parse("graph.yaml", &text(keys)).unwrap();
        let checked = file.check(&super::toys::registry(), &CheckCx { files, ..CheckCx::default() });
        checked.err().map_or(Vec::new(), |d| {
            d.iter().map(|d| (d.code, d.span.map_or(0, |s| s.line), d.message.clone())).collect()
        })
    };
    for keys in ["cpus: [1023]", "numa: 1023"] {
        assert!(found(keys, false).is_empty());
        let all = found(keys, true);
        let [(Code::Place, 4, message)] = &all[..] else { panic!("{all:?}") };
        assert!(message.contains("1023"), "{message}");
    }
}

#[test]
fn a_lane_that_the_program_fences_is_not_missed() {
    let text = "graph: a\nlanes: [reply]\nnodes:\n  mic: { use: session.in }\n  end: { use: file.out, in: mic, lane: reply }\n";
    let unfenced = |fences: &[&str]| {
        let cx = CheckCx { fences: fences.iter().map(|l| (*l).to_owned()).collect(), ..CheckCx::default() };
        let checked = GraphFile::parse("graph.yaml", text).unwrap().check(&super::toys::registry(), &cx);
        let (_, warnings) = checked.unwrap_or_else(|d| panic!("{d}"));
        warnings.iter().any(|d| d.code == Code::Unfenced)
    };
    assert!(unfenced(&[]) && unfenced(&["repyl"]));
    assert!(!unfenced(&["reply"]));
}
