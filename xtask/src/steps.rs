//! The checks that are other programs.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

/// Their names.
pub const NAMES: [&str; 6] = ["fmt", "clippy", "fuzz", "test", "doc", "loom"];

/// Runs one; what it says goes to the terminal. Nothing found is an empty list.
pub fn run(root: &Path, name: &str) -> anyhow::Result<Vec<String>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    match name {
        "fmt" => cargo.args(["fmt", "--all", "--check"]),
        "clippy" => cargo
            .args(["clippy", "--workspace", "--all-targets", "--features", "omni-flow-benches/models"])
            .args(["--", "-D", "warnings"]),
        "fuzz" => {
            cargo.args(["check", "--locked", "--manifest-path", "fuzz/Cargo.toml"]);
            // A workspace of its own, but what it depends on is checked already in this one's folder.
            if std::env::var_os("CARGO_TARGET_DIR").is_none() {
                cargo.args(["--target-dir", "target"]);
            }
            &mut cargo
        }
        "test" => cargo.args(["test", "--workspace"]),
        "doc" => cargo.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"),
        // A target folder of its own: other flags would rebuild everything in the usual one, each way.
        "loom" => cargo
            .args(["test", "-p", "omni-flow", "--lib", "--release", "--target-dir", "target/loom", "loom_"])
            .env("RUSTFLAGS", "--cfg omni_loom"),
        _ => bail!("no step `{name}`"),
    };
    let status = cargo.status().with_context(|| format!("cannot start cargo for `{name}`"))?;
    Ok(if status.success() { Vec::new() } else { vec![format!("failed ({status}); its output is above")] })
}
