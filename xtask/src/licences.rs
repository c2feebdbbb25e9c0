//! Licences and sources of every dependency, against `deny.toml`. Needs nothing but cargo; cargo-deny, which also knows
//! advisories, runs besides where it is installed.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context;

use crate::deny::{self, Policy};
use crate::meta::{Metadata, Package};
use crate::spdx::satisfied;

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// What is not allowed.
pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let path = root.join("deny.toml");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let policy = deny::policy(&text);
    let meta = Metadata::load(root)?;
    let mut found: Vec<String> = meta.packages.iter().filter_map(|p| refuse(p, &policy)).collect();
    let unused = policy.exceptions.iter().filter(|(name, _)| meta.packages.iter().all(|p| p.name != *name));
    found.extend(unused.map(|(name, _)| format!("deny.toml has an exception for `{name}`, which is gone; remove it")));
    eprintln!("licences: {} packages looked at", meta.packages.len());
    if installed() {
        let args = ["deny", "--workspace", "check"];
        let status = Command::new("cargo").args(args).current_dir(root).status().context("cannot start cargo-deny")?;
        if !status.success() {
            found.push("cargo-deny found something; it is above".to_owned());
        }
    } else {
        eprintln!("licences: skipped: advisories need cargo-deny, which is not installed (cargo install cargo-deny)");
    }
    Ok(found)
}

fn refuse(package: &Package, policy: &Policy) -> Option<String> {
    let Package { name, version, license, source, .. } = package;
    if source.as_deref().is_some_and(|s| s != CRATES_IO) {
        return Some(format!("`{name}` {version} comes from {}, not from crates.io", source.as_deref()?));
    }
    let exception = policy.exceptions.iter().find(|(n, _)| n == name).map(|(_, l)| l);
    let Some(expression) = license else {
        // Its licence is a file that somebody has read, or it is not allowed.
        return exception
            .is_none()
            .then(|| format!("`{name}` {version} states no licence; read it, then name it in deny.toml"));
    };
    let allowed = |l: &str| {
        let known = |list: &[String]| list.iter().any(|a| a == l);
        known(&policy.allow) || exception.is_some_and(|e| known(e))
    };
    let ok = satisfied(expression, &allowed);
    (!ok).then(|| format!("`{name}` {version} has the licence `{expression}`, which deny.toml does not allow"))
}

fn installed() -> bool {
    let probe = Command::new("cargo").args(["deny", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    probe.is_ok_and(|s| s.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(license: Option<&str>, source: Option<&str>) -> Package {
        let v = serde_json::json!({
            "id": "odd", "name": "odd", "version": "1.0.0", "license": license, "source": source, "dependencies": []
        });
        serde_json::from_value(v).unwrap()
    }

    #[test]
    fn refuses_what_the_policy_does_not_name() {
        let policy = Policy { allow: vec!["MIT".to_owned()], exceptions: Vec::new() };
        assert_eq!(refuse(&package(Some("MIT OR GPL-3.0"), Some(CRATES_IO)), &policy), None);
        assert!(refuse(&package(Some("GPL-3.0"), Some(CRATES_IO)), &policy).unwrap().contains("GPL-3.0"));
        assert!(refuse(&package(None, Some(CRATES_IO)), &policy).unwrap().contains("no licence"));
        assert!(refuse(&package(Some("MIT"), Some("git+https://example.org")), &policy).unwrap().contains("crates.io"));
        let lenient = Policy { exceptions: vec![("odd".to_owned(), vec!["WTFPL".to_owned()])], ..policy };
        assert_eq!(refuse(&package(None, Some(CRATES_IO)), &lenient), None);
        assert_eq!(refuse(&package(Some("WTFPL"), Some(CRATES_IO)), &lenient), None);
        assert!(refuse(&package(Some("GPL-3.0"), Some(CRATES_IO)), &lenient).is_some());
    }
}
