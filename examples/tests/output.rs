//! Each example runs, says what it should, and nothing on standard error. Cargo builds examples before it runs tests.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The lines that an example prints.
fn lines(name: &str) -> Vec<String> {
    // This test lies in `deps`, the examples in `examples` beside it.
    let here = std::env::current_exe().unwrap();
    let folder: PathBuf = here.parent().and_then(|deps| deps.parent()).expect("a target folder").join("examples");
    let path = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(path.exists(), "{} is not built: run `cargo test -p omni-flow-examples`", path.display());
    let ran = Command::new(path).stdin(Stdio::null()).output().unwrap();
    let (out, err) = (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap());
    assert!(ran.status.success() && err.is_empty(), "{}\nstdout:\n{out}\nstderr:\n{err}", ran.status);
    out.lines().map(str::to_owned).collect()
}

#[test]
fn hello_node_greets() {
    assert_eq!(lines("hello_node"), ["Good morning, Ada!", "Good morning, Grace!"]);
}

#[test]
fn embed_engine_measures_two_sessions_and_interrupts_one() {
    let all = lines("embed_engine");
    let of = |who: &str| all.iter().filter_map(|l| l.strip_prefix(who)).map(str::to_owned).collect::<Vec<_>>();
    // 0.8 / i of full scale, as a sine; the sessions run side by side, each in order.
    let level = |amplitude: f64| -> Vec<String> {
        (1..=5)
            .map(|i| {
                let wave = (0..320).map(|n| amplitude / f64::from(i) * (f64::from(n) * 0.17).sin());
                let power = wave.map(|s| s * s).sum::<f64>() / 320.0;
                format!(": {:.1} dBFS at {:.2} s", 10.0 * power.log10(), 0.02 * f64::from(i - 1))
            })
            .collect()
    };
    assert_eq!(of("loud"), level(0.8));
    assert_eq!(of("soft"), level(0.05));
    let after = of("after the fence only what was asked after it arrived: ");
    assert_eq!(after, ["chunks at [60] ms"]);
    assert!(all.last().unwrap().ends_with("every edge is whole again: true"), "{all:?}");
    assert_eq!(all.len(), 12, "{all:?}");
}

#[test]
fn custom_stage_answers_the_short_question_first() {
    let all = lines("custom_stage");
    assert_eq!(all[0], "asked to count to 5: 5 numbers, the last is Some(\"5\")");
    assert_eq!(all[1], "asked to count to 300: 300 numbers, the last is Some(\"300\")");
    assert!(all[2].starts_with("`count`: ") && all.len() == 3, "{all:?}");
}

/// What README shows is what the front page of `omni-flow` and the first example run.
#[test]
fn the_first_node_is_the_same_everywhere() {
    let readme = include_str!("../../README.md");
    let block = |language: &str, with: &str| -> String {
        let mut blocks = readme.split("```").filter_map(|b| b.strip_prefix(language));
        blocks.find(|b| b.contains(with)).expect("a block of this language").trim().to_owned()
    };
    let (code, graph) = (block("rust\n", "impl Make for Greet"), block("yaml\n", "hello.greet"));
    let front: String = include_str!("../../flow/src/lib.rs")
        .lines()
        .filter_map(|l| l.strip_prefix("//!"))
        .map(|l| format!("{}\n", l.strip_prefix(' ').unwrap_or(l)))
        .collect();
    assert!(front.contains(&code), "flow/src/lib.rs shows other code than README.md");
    let example = include_str!("../hello_node.rs");
    let (_, node) = code.split_once("\n\n///").expect("imports, then the node");
    assert!(example.contains(node), "examples/hello_node.rs has another node than README.md");
    for text in [&front, example] {
        assert!(text.contains(&graph), "another graph than in README.md");
    }
}

#[test]
fn inline_client_has_two_turns_without_a_socket() {
    let turn = |n| format!("turn {n}: Completed, \"hello world\", 3.0 s of audio");
    assert_eq!(lines("inline_client"), [turn(1), turn(2), "closed: client_close".to_owned()]);
}

#[test]
fn embed_axum_lets_in_who_has_a_key() {
    let session = "with a key: a session of type \"realtime\"";
    assert_eq!(lines("embed_axum"), ["without a key: 401", session, "closed: client_close"]);
}

#[test]
fn voice_echo_hears_as_much_as_it_spoke() {
    let all = lines("voice_echo");
    let [spoke, heard] = all.as_slice() else { panic!("{all:?}") };
    let (spoke, heard) = (spoke.strip_prefix("spoke ").unwrap(), heard.strip_prefix("heard ").unwrap());
    assert_eq!(heard, format!("{spoke}, Completed"));
}
