//! Each `tests/diagnostics/NAME.yaml` is refused, or warned about, with exactly the text in `NAME.txt`.
//!
//! `UPDATE_SNAPSHOTS=1 cargo test` writes the texts anew; read the difference before it is committed.

use std::collections::BTreeSet;
use std::path::Path;

use omni_flow::{CheckCx, Code, GraphFile, Layers};

#[test]
fn findings_read_as_agreed_and_every_code_has_one() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics");
    let update = std::env::var_os("UPDATE_SNAPSHOTS").is_some();
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .filter_map(|e| e.unwrap().file_name().to_str()?.strip_suffix(".yaml").map(str::to_owned))
        .filter(|n| !n.starts_with("part-"))
        .collect();
    names.sort();
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for name in names {
        let path = folder.join(format!("{name}.yaml"));
        let all = run(&path);
        seen.extend(all.iter().map(|d| d.code));
        // Messages name files as they were given; the folder of this checkout is not part of what is agreed.
        let text = all.render(false).replace(&format!("{}/", folder.display()), "");
        let expected = folder.join(format!("{name}.txt"));
        if update {
            std::fs::write(&expected, &text).unwrap();
        } else if std::fs::read_to_string(&expected).unwrap_or_default() != text {
            wrong.push(format!("--- {name}.yaml gives\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "run with UPDATE_SNAPSHOTS=1 if this is meant:\n{}", wrong.join("\n"));
    // Found elsewhere: texts that cannot be stored as files of the repository.
    let elsewhere = [Code::Unreadable, Code::TooLarge, Code::NotUtf8, Code::ManyNodes];
    let missing: Vec<Code> =
        Code::ALL.iter().copied().filter(|c| !seen.contains(c) && !elsewhere.contains(c)).collect();
    assert!(missing.is_empty(), "no snapshot shows {missing:?}");
}

/// First lines of a file that begin with `#!` set layers: `#! set KEY=VALUE`, `#! env NAME=VALUE`, `#! memory 1MiB`; `#! look FILES`
/// looks at files too, with `offline` as if nothing could be fetched.
fn run(path: &Path) -> omni_flow::Diagnostics {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut over = Layers::default();
    let mut cx = CheckCx { env: Some([("LLM_KEY".to_owned(), "hidden".to_owned())].into()), ..CheckCx::default() };
    for line in text.lines().filter_map(|l| l.strip_prefix("#! ")) {
        let (what, rest) = line.split_once(' ').unwrap();
        match what {
            "set" => over.sets.push(rest.to_owned()),
            "override" => over.overrides.push(rest.to_owned()),
            "env" => over.env.extend(rest.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()))),
            "look" => (cx.files, cx.offline) = (true, rest == "offline"),
            "memory" => cx.host_memory = Some(rest.parse::<omni_flow::units::Size>().unwrap().0),
            _ => panic!("{line}"),
        }
    }
    match GraphFile::load(path, &over) {
        Err(d) => d,
        Ok(g) => match g.check(&super::toys::registry(), &cx) {
            Err(d) => d,
            Ok((_, w)) => w,
        },
    }
}

#[test]
fn colour_and_json_say_the_same() {
    let d = super::check("graph: a\nnodez: {}\n").unwrap_err();
    let (plain, colour) = (d.render(false), d.render(true));
    assert!(colour.contains("\u{1b}["));
    let mut bare = String::new();
    let mut chars = colour.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' { while chars.next().is_some_and(|c| c != 'm') {} } else { bare.push(c) }
    }
    assert_eq!(bare, plain);
    let json = d.to_json();
    assert_eq!(json[0]["code"], "G103");
    assert_eq!(json[1]["at"]["line"], 2);
    assert_eq!(json[1]["hint"], "did you mean `nodes`?");
}
