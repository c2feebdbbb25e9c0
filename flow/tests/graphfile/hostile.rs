//! Texts made to hurt: each ends, with a finding.

use omni_flow::{Code, GraphFile};

use super::{check, found};

fn first(text: &str) -> Code {
    match GraphFile::parse("h.yaml", text) {
        Err(d) => d.iter().next().unwrap().code,
        Ok(_) => found(text)[0].0,
    }
}

#[test]
fn alias_bombs_are_refused() {
    let ladder = |head: &str| {
        let mut t = format!("{head}graph: a\nx-a: &a [x,x,x,x,x,x,x,x,x]\n");
        for (a, b) in "abcdefgh".chars().zip("bcdefghi".chars()) {
            t.push_str(&format!("x-{b}: &{b} [*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a}]\n"));
        }
        t
    };
    assert_eq!(first(&ladder("")), Code::AliasBomb);
    assert_eq!(first(&ladder("x-l: [don't, won't]\n")), Code::AliasBomb, "an apostrophe switches nothing off");
    let top: String = ladder("").lines().skip(1).map(|l| format!("- {}\n", l.split_once(": ").unwrap().1)).collect();
    assert_eq!(first(&format!("- don't\n{top}")), Code::AliasBomb);
    assert_eq!(first("&a [*a]"), Code::AliasLoop);
    assert_eq!(first("x-a: &a { b: *a }"), Code::AliasLoop);
    assert_eq!(first("a: *b"), Code::Syntax);
}

#[test]
fn depth_and_size_are_bounded() {
    assert_eq!(first(&"[".repeat(100)), Code::TooDeep);
    assert_eq!(first(&"[".repeat(500_000)), Code::TooDeep);
    assert_eq!(first(&"{a: ".repeat(200_000)), Code::TooDeep);
    assert_eq!(first(&"- ".repeat(200_000)), Code::TooDeep);
    let block: String = (0..400).map(|i| format!("{}a:\n", " ".repeat(i))).collect();
    assert_eq!(first(&block), Code::TooDeep);
    assert_eq!(first(&format!("graph: a # {}\n", "x".repeat(1 << 20))), Code::TooLarge);
    // Deep by way of aliases.
    let mut t = String::from("x-0: &a0 [[[[[[[[[[x]]]]]]]]]]\n");
    for i in 1..10 {
        t.push_str(&format!("x-{i}: &a{i} [[[[[[[[[[*a{}]]]]]]]]]]\n", i - 1));
    }
    assert_eq!(first(&t), Code::TooDeep);
}

#[test]
fn large_files_are_read_in_one_pass() {
    // Many keys, many findings, many anchors: nothing here may take time in squares.
    let keys: String = (0..60_000).map(|i| format!("k{i}: 1\n")).collect();
    assert!(GraphFile::parse("k.yaml", &keys).is_ok());
    let list = format!("x-l: [{}]\n", "a,".repeat(400_000));
    assert!(GraphFile::parse("l.yaml", &list).is_ok());
    let nested: String =
        (0..60).map(|i| format!("&a{i} [")).collect::<String>() + &"x,".repeat(300_000) + &"]".repeat(60);
    assert_eq!(first(&nested), Code::AliasBomb);
    let long = format!("graph: {}\n", "x".repeat(1_000_000));
    assert_eq!(first(&long), Code::MissingKey);
    let many: String = (0..30_000).map(|i| format!("  n{i}: {{ use: x, in: m{i} }}\n")).collect();
    assert!(found(&format!("graph: a\nnodes:\n{many}")).iter().any(|(c, _)| *c == Code::ManyNodes));
    let double: String = (0..40_000).map(|_| "k: 1\n").collect();
    assert!(GraphFile::parse("d.yaml", &double).is_ok_and(|g| g.has_errors()));
}

#[test]
fn bytes_that_are_no_text() {
    let dir = tempfile::tempdir().unwrap();
    let code = |bytes: &[u8]| {
        let p = dir.path().join("g.yaml");
        std::fs::write(&p, bytes).unwrap();
        GraphFile::read(&p).map(|_| ()).unwrap_err().iter().next().unwrap().code
    };
    assert_eq!(code(b"graph: a\nx: \xff\xfe\n"), Code::NotUtf8);
    assert_eq!(code(&[b'a'; (1 << 20) + 7]), Code::TooLarge);
    assert_eq!(code("\u{e9}".repeat(1 << 20).as_bytes()), Code::TooLarge);
    assert_eq!(code(b""), Code::NotMap);
    assert_eq!(code(b"\xef\xbb\xbf"), Code::NotMap);
    assert_eq!(code(b"graph: a\0b\n\x01"), Code::Syntax);
    // A byte order mark is no part of the first key, and moves no column.
    let text = format!("\u{feff}{}", super::VOICE);
    assert!(check(&text).is_ok());
    assert_eq!(found("\u{feff}grap: a\nnodes: {}\n")[0].1, 1);
}

#[test]
fn every_prefix_is_read_or_refused() {
    let text = super::VOICE;
    for (i, _) in text.char_indices() {
        match check(&text[..i]) {
            Ok(_) => {}
            Err(d) => assert!(!d.is_empty() && !d.render(false).is_empty()),
        }
    }
}

/// Where the caret of a rendered finding stands: the text of its line from there on.
fn under_caret(shown: &str) -> String {
    let lines: Vec<&str> = shown.lines().collect();
    let caret = lines.iter().position(|l| l.contains('^')).unwrap_or_else(|| panic!("{shown}"));
    // In columns of a terminal: the characters used here are one or two wide.
    let column = lines[caret].split('^').next().unwrap().chars().count();
    let mut at = 0;
    let rest = lines[caret - 1].chars().skip_while(|c| {
        let here = at;
        at += if *c >= '\u{1100}' && *c != '…' && *c != '│' { 2 } else { 1 };
        here < column
    });
    rest.collect()
}

#[test]
fn a_long_line_is_shown_around_its_fault() {
    for (fill, columns) in [("x", 1), ("語", 2), ("é", 1), ("\t", 4)] {
        let long = fill.repeat((1 << 19) / fill.len() - 200);
        let d = GraphFile::parse("g.yaml", &format!("graph: a\nx-l: [\"{long}\", {{ k: 1, k: 2 }}, \"{long}\"]\n"));
        let d = match d {
            Ok(g) => g.check(&super::toys::registry(), &omni_flow::CheckCx::default()).unwrap_err(),
            Err(d) => d,
        };
        let finding = d.iter().find(|f| f.code == Code::DuplicateKey).unwrap_or_else(|| panic!("{d}"));
        let shown = d.render(false);
        assert!(shown.lines().all(|l| l.chars().count() < 220), "{shown}");
        let place = format!("g.yaml:2:{}", finding.span.unwrap().column);
        assert!(shown.contains(&place), "the column is the file's: {place} in\n{shown}");
        let own = shown.split("error[G009]").nth(1).unwrap();
        assert!(under_caret(own).starts_with("k: 2 }, \""), "{columns} columns each:\n{shown}");
        assert!(shown.contains('…') && shown.contains("first given in line 2"), "{shown}");
    }
}

#[test]
fn a_long_word_is_quoted_in_short() {
    // As long as a key of YAML may be.
    let word = "w".repeat(1000);
    let d = check(&format!("graph: a\n{word}: 1\nnodes: {{ {word}: {{ use: {word}, {word}: 1 }} }}\n")).unwrap_err();
    assert!(d.render(false).len() < 10_000 && d.to_json().to_string().len() < 20_000, "{}", d.len());
    assert!(d.render(false).contains("www … www"), "{d}");
    for f in d.iter() {
        assert!(f.message.chars().count() < 450, "{}", f.message.len());
    }
}

#[test]
fn no_message_controls_a_terminal() {
    let d = check("graph: \"\\e]0;pwn\\a\"\nnodes: { a: { use: \"\\e[31mx\\u202e\" } }\n").unwrap_err();
    let shown = d.render(false) + &d.iter().map(|f| f.message.clone()).collect::<String>();
    assert!(shown.contains("u{1b}") && shown.contains("u{202e}"), "{shown}");
    assert!(!shown.contains(|c: char| c.is_control() && c != '\n' || c == '\u{202e}'), "{shown:?}");
}

#[test]
fn counts_that_no_machine_carries_are_refused() {
    let graph = |keys: &str| {
        format!("graph: g\nnodes:\n  a: {{ use: session.in, kind: text }}\n  b: {{ use: toy.shout, in: a, {keys} }}\n")
    };
    for keys in ["place: pool, threads: 100000000", "slots: 1000000000", "threads: 9223372036854775807"] {
        let d = check(&graph(keys)).unwrap_err();
        assert!(d.iter().any(|f| f.code == Code::OutOfRange && f.message.contains("more than")), "{keys}: {d}");
    }
}

#[test]
fn a_graph_has_a_name() {
    for name in ["\"\"", "\" \""] {
        let d = check(&format!("graph: {name}\nnodes: {{ a: {{ use: session.in, kind: text }} }}\n")).unwrap_err();
        assert!(d.iter().any(|f| f.span.is_some_and(|s| s.line == 1)), "{d}");
    }
}
