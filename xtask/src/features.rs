//! Each feature of the libraries on its own, and none: a runtime that nobody asks for must not be needed.
//!
//! Only checked, not built or tested; with clippy, so that code which only another feature uses is found too. Off the list
//! are features that need more than Rust, gcc/g++ and python3.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

use crate::meta::Metadata;

/// The crates with features that their users choose.
const CRATES: [&str; 3] = ["omni-flow-media", "omni-flow-nodes", "omni-flow-transports"];
/// Features that are not checked here: `libopus` needs cmake; `default` is what every other check builds.
const LEFT_OUT: [&str; 2] = ["libopus", "default"];

/// Checks every set; gives those that do not build.
pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let meta = Metadata::load(root)?;
    let mut found = Vec::new();
    for package in CRATES {
        for feature in sets(&meta, package)? {
            let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
            cargo.current_dir(root).args(["clippy", "--lib", "-p", package, "--no-default-features"]);
            if let Some(feature) = &feature {
                cargo.args(["--features", feature]);
            }
            cargo.args(["--", "-D", "warnings"]);
            let name = feature.as_deref().unwrap_or("no feature");
            eprintln!("features: {package} with {name}");
            let status = cargo.status().context("cannot start cargo")?;
            if !status.success() {
                found.push(format!("`{package}` does not build with {name} ({status}); its output is above"));
            }
        }
    }
    Ok(found)
}

/// No feature, then each alone.
fn sets(meta: &Metadata, package: &str) -> anyhow::Result<Vec<Option<String>>> {
    let package = meta.ours().find(|p| p.name == package).with_context(|| format!("no crate `{package}`"))?;
    let single = package.features.keys().filter(|f| !LEFT_OUT.contains(&f.as_str()));
    Ok(std::iter::once(None).chain(single.cloned().map(Some)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_and_each_alone() {
        let package = serde_json::json!({
            "id": "m", "name": "m", "version": "1.0.0", "dependencies": [],
            "features": { "default": ["a"], "a": [], "b": ["dep:x"], "libopus": [] }
        });
        let meta = serde_json::from_value(serde_json::json!({ "packages": [package], "workspace_members": ["m"] }));
        let all = sets(&meta.unwrap(), "m").unwrap();
        assert_eq!(all, [None, Some("a".to_owned()), Some("b".to_owned())]);
    }
}
