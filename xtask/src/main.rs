//! Chores of the workspace, all behind one door: `cargo xtask check`.
//!
//! Every check can be run alone by its name. A check prints what it found and how to put it right; the program ends
//! with 1 if any failed, after all of them have run.

mod arrows;
mod deny;
mod features;
mod licences;
mod meta;
mod ratchets;
mod spdx;
mod steps;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask CHECK

  check             everything below, in this order
  fmt               cargo fmt --all --check
  arrows            which crate may depend on which
  ratchets          longest files, unwraps, locks past `flow/src/sync.rs`; `ratchets --lower` stores what has fallen
  licences          every dependency against deny.toml, and cargo-deny where it is installed
  clippy            cargo clippy --workspace --all-targets, benchmarks of models included, -- -D warnings
  features          cargo clippy of `media` and `nodes` without features, and with each alone
  fuzz              cargo check of the fuzz targets (running them needs nightly)
  test              cargo test --workspace
  doc               cargo doc --workspace --no-deps with warnings as errors
  loom              the models of `flow` under every interleaving (not part of check: minutes)";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let root = root();
    let failed = match args[..] {
        ["check"] => {
            let all = ["fmt", "arrows", "ratchets", "licences", "clippy", "features", "fuzz", "test", "doc"];
            let failed: Vec<&str> = all.into_iter().filter(|name| !run(&root, name)).collect();
            if !failed.is_empty() {
                eprintln!("\nfailed: {}", failed.join(", "));
            }
            !failed.is_empty()
        }
        ["ratchets", "--lower"] => !report("ratchets", ratchets::lower(&root)),
        [name] if steps::NAMES.contains(&name) || ["arrows", "features", "ratchets", "licences"].contains(&name) => {
            !run(&root, name)
        }
        _ => {
            eprintln!("{HELP}");
            return ExitCode::from(2);
        }
    };
    ExitCode::from(u8::from(failed))
}

fn run(root: &Path, name: &str) -> bool {
    eprintln!("==> {name}");
    let done = match name {
        "arrows" => meta::Metadata::load(root).and_then(|m| arrows::check(&m)),
        "features" => features::check(root),
        "ratchets" => ratchets::check(root),
        "licences" => licences::check(root),
        step => steps::run(root, step),
    };
    report(name, done)
}

/// Prints what a check found; true if there was nothing.
fn report(name: &str, done: anyhow::Result<Vec<String>>) -> bool {
    let found = done.unwrap_or_else(|e| vec![format!("{e:#}")]);
    for line in &found {
        eprintln!("{name}: {line}");
    }
    found.is_empty()
}

/// The root of the workspace: the folder above this crate's.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}
