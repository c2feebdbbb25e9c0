//! Files that extend files, and what stands above a file.

use omni_flow::{Code, GraphFile, Layers};

fn strings(v: &[(&str, &str)]) -> Vec<(String, String)> {
    v.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

#[test]
fn higher_layers_win_and_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let write = |n: &str, t: &str| std::fs::write(dir.path().join(n), t).unwrap();
    write(
        "base.yaml",
        "graph: base\nsession: { mode: turn, max-sessions: 1, idle-ttl: 1s, disconnect-grace: 7s }\nnodes: { a: { use: session.in, slots: 1, words: [x, y] } }\n",
    );
    write(
        "top.yaml",
        "extends: base.yaml\ngraph: top\nsession: { max_sessions: 2 }\nnodes: { a: { words: [z] }, b: { use: file.out, in: a } }\nplatforms: { cuda: { session: { max-sessions: 3 } }, arm64: { graph: no } }\n",
    );
    let path = dir.path().join("top.yaml");
    let mut over = Layers { platforms: vec!["cuda".into()], ..Layers::default() };
    let at = |over: &Layers, key: &str| {
        let e = GraphFile::load(&path, over).unwrap_or_else(|d| panic!("{d}")).explain(key).unwrap();
        (e.value.to_string(), e.layer)
    };
    let is = |got: (String, String), value: &str, layer: &str| assert_eq!(got, (value.to_owned(), layer.to_owned()));
    is(at(&over, "session.disconnect-grace"), "\"7s\"", "extends");
    is(at(&over, "graph"), "\"top\"", "file");
    is(at(&over, "nodes.a.words"), "[\"z\"]", "file");
    is(at(&over, "nodes.a.slots"), "1", "extends");
    is(at(&over, "session.max_sessions"), "3", "platforms.cuda");
    over.env = strings(&[("OMNI_FLOW_SESSION__MAX_SESSIONS", "4"), ("OMNI_FLOW_LOG", "debug"), ("HOME", "/")]);
    is(at(&over, "session.max-sessions"), "4", "environment");
    over.flags = vec![("--sessions".into(), "session.max-sessions".into(), "5".into())];
    is(at(&over, "session.max-sessions"), "5", "flag");
    over.overrides = vec![r#"{"session": {"max_sessions": 6}, "nodes": {"a": {"slots": 9}}}"#.into()];
    is(at(&over, "session.max-sessions"), "6", "override");
    is(at(&over, "nodes.a.slots"), "9", "override");
    over.sets = vec!["session.max-sessions=7".into(), "nodes.a.words=[p, q]".into()];
    is(at(&over, "session.max-sessions"), "7", "override");
    is(at(&over, "nodes.a.words"), "[\"p\",\"q\"]", "override");
    let file = GraphFile::parse("g.yaml", super::VOICE).unwrap();
    let r = super::toys::registry();
    let e = file.explain_with(&r, "nodes.down.quality").unwrap();
    assert_eq!((e.value, e.layer.as_str(), e.at.as_str()), ("high".into(), "default", "audio.resample"));
    assert_eq!(file.explain_with(&r, "nodes.down.rate").unwrap().at, "g.yaml:9:41");
    assert!(file.explain_with(&r, "nodes.down.speed").is_none());
    let engine = |key: &str| file.explain_with(&r, key).map(|e| (e.value.as_str().unwrap().to_owned(), e.layer));
    assert_eq!(engine("nodes.down.restart"), Some(("never".to_owned(), "default".to_owned())));
    assert_eq!(engine("nodes.down.in.audio.policy").unwrap().0, "wait");
    assert_eq!(engine("session.idle_ttl").unwrap().0, "300s");
    assert_eq!((engine("nodes.nobody.restart"), engine("session.nothing")), (None, None));
}

#[test]
fn a_bad_variable_is_named() {
    let over = Layers { env: strings(&[("OMNI_FLOW_SESSION__MAX_SESSIONS", "many")]), ..Layers::default() };
    let g = GraphFile::parse_with("g.yaml", super::VOICE, &over).unwrap();
    let e = g.check(&super::toys::registry(), &omni_flow::CheckCx::default()).map(|_| ()).unwrap_err();
    assert!(e.to_string().contains("OMNI_FLOW_SESSION__MAX_SESSIONS:1:1"), "{e}");
    let over = Layers { env: strings(&[("OMNI_FLOW_INPUT_WAIT_TIMEOUT_S", "0")]), ..Layers::default() };
    let g = GraphFile::parse_with("g.yaml", super::VOICE, &over).unwrap();
    let (plan, _) = g.check(&super::toys::registry(), &omni_flow::CheckCx::default()).unwrap_or_else(|d| panic!("{d}"));
    assert!(plan.edges.iter().all(|e| e.deadline.is_none()));
}

#[test]
fn chains_end() {
    let dir = tempfile::tempdir().unwrap();
    for i in 0..20 {
        std::fs::write(dir.path().join(format!("{i}.yaml")), format!("extends: {}.yaml\n", i + 1)).unwrap();
    }
    std::fs::write(dir.path().join("20.yaml"), "extends: 20.yaml\n").unwrap();
    for start in ["0.yaml", "20.yaml"] {
        let g = GraphFile::read(dir.path().join(start)).unwrap();
        let e = g.check(&super::toys::registry(), &omni_flow::CheckCx::default()).map(|_| ()).unwrap_err();
        assert!(e.iter().any(|d| d.code == Code::Extends && d.span.is_some()), "{e}");
    }
    let e = GraphFile::read(dir.path().join("none.yaml")).map(|_| ()).unwrap_err();
    assert_eq!(e.iter().next().unwrap().code, Code::Unreadable);
}
