//! Running the program, and what the machine has.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The program, in the repository's root, with nothing of the caller's environment that could change its answers.
pub fn omni() -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_omni-flow"));
    c.current_dir(root()).stdin(Stdio::null()).env_remove("OMNI_FLOW_LOG").env_remove("RUST_LOG");
    c.env_remove("OMNI_FLOW_ABORT_TIMEOUT");
    c
}

/// Runs it with these words.
pub fn run(words: &[&str]) -> Ran {
    Ran::of(omni().args(words).output().expect("the program starts"))
}

/// How a run ended.
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn of(o: Output) -> Self {
        let text = |b: Vec<u8>| String::from_utf8(b).expect("UTF-8");
        Self { code: o.status.code(), out: text(o.stdout), err: text(o.stderr) }
    }
    /// Asserts the exit code, showing everything if it is another.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }
    /// Asserts that standard error has all of `words`.
    #[track_caller]
    pub fn complains(self, words: &[&str]) -> Self {
        for w in words {
            assert!(self.err.contains(w), "no `{w}` in:\n{}", self.err);
        }
        self
    }
    /// The objects on standard output, one per line.
    pub fn events(&self) -> Vec<serde_json::Value> {
        self.out.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
    }
}

/// Looks until `there` is true, while the program runs. A minute is far above what anything takes that is waited for.
#[track_caller]
pub fn until(child: &mut Child, what: &str, there: impl Fn(&Child) -> bool) {
    let begun = Instant::now();
    while !there(child) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before {what}");
        if begun.elapsed() > Duration::from_secs(60) {
            let _ = child.kill();
            panic!("a minute without {what}");
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// The exit code of a program that ends within a minute.
pub fn exit(child: &mut Child) -> Option<i32> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if begun.elapsed() > Duration::from_secs(60) {
            let _ = child.kill();
            panic!("a minute without its end");
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace").to_owned()
}

pub fn clip(name: &str) -> String {
    root().join("tests/data/audio").join(name).display().to_string()
}

/// True if the cache has all of these models; else says what is skipped and why.
pub fn have(models: &[&str]) -> bool {
    let all = run(&["models", "list", "--json"]).expect(0);
    let all: serde_json::Value = serde_json::from_str(&all.out).expect("JSON");
    let state = |name: &str| {
        let list = all["models"].as_array().expect("a list");
        list.iter().find(|m| m["name"] == name).map(|m| m["state"].as_str().unwrap_or_default().to_owned())
    };
    let missing: Vec<&str> = models.iter().copied().filter(|m| state(m).as_deref() != Some("cached")).collect();
    if !missing.is_empty() {
        println!("skipped: not in the cache: {}", missing.join(", "));
    }
    missing.is_empty()
}
