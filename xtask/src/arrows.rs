//! Which crate of ours may know which. `ARCHITECTURE.md` draws these arrows; here they are enforced.

use std::collections::BTreeSet;

use crate::meta::Metadata;

/// Each crate and what it may depend on, of ours, in any way (tests and build included).
const MAY: [(&str, &[&str]); 7] = [
    ("omni-flow", &[]),
    ("omni-flow-kernels", &[]),
    ("omni-flow-media", &["omni-flow-kernels"]),
    ("omni-flow-nodes", &["omni-flow", "omni-flow-media", "omni-flow-kernels"]),
    ("omni-flow-transports", &["omni-flow", "omni-flow-media"]),
    ("omni-flow-cli", &["omni-flow", "omni-flow-media", "omni-flow-nodes", "omni-flow-transports"]),
    ("xtask", &[]),
];
/// Nothing may depend on these, and they may depend on anything.
const TOP: [&str; 3] = ["omni-flow-tests", "omni-flow-examples", "omni-flow-benches"];

/// The arrows that should not be there.
pub fn check(meta: &Metadata) -> anyhow::Result<Vec<String>> {
    let ours: BTreeSet<&str> = meta.ours().map(|p| p.name.as_str()).collect();
    let mut found = Vec::new();
    for package in meta.ours() {
        let name = package.name.as_str();
        if TOP.contains(&name) {
            continue;
        }
        let Some((_, may)) = MAY.iter().find(|(n, _)| *n == name) else {
            found.push(format!(
                "`{name}` has no place in the house; give it one in xtask/src/arrows.rs and ARCHITECTURE.md"
            ));
            continue;
        };
        for d in package.dependencies.iter().filter(|d| ours.contains(d.name.as_str())) {
            if !may.contains(&d.name.as_str()) {
                let kind = d.kind.as_deref().map_or(String::new(), |k| format!("{k}-"));
                found.push(format!("`{name}` must not have `{}` as a {kind}dependency", d.name));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(packages: &[(&str, &[&str])]) -> Metadata {
        let package = |(name, needs): &(&str, &[&str])| {
            let needs: Vec<_> = needs.iter().map(|n| serde_json::json!({ "name": n, "kind": "dev" })).collect();
            serde_json::json!({ "id": name, "name": name, "version": "1.0.0", "dependencies": needs })
        };
        let all: Vec<_> = packages.iter().map(package).collect();
        let ids: Vec<_> = packages.iter().map(|p| p.0).collect();
        serde_json::from_value(serde_json::json!({ "packages": all, "workspace_members": ids })).unwrap()
    }

    #[test]
    fn the_engine_depends_on_nothing_of_ours() {
        let good =
            meta(&[("omni-flow", &["tokio"]), ("omni-flow-nodes", &["omni-flow"]), ("omni-flow-tests", &["xtask"])]);
        assert!(check(&good).unwrap().is_empty());
        let bad = meta(&[("omni-flow", &["omni-flow-media"]), ("omni-flow-media", &["omni-flow"])]);
        let found = check(&bad).unwrap();
        assert_eq!(found[0], "`omni-flow` must not have `omni-flow-media` as a dev-dependency");
        assert_eq!(found.len(), 2);
    }
    #[test]
    fn a_new_crate_needs_a_place() {
        assert_eq!(check(&meta(&[("omni-flow-extra", &[])])).unwrap().len(), 1);
    }
}
