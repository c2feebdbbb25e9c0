//! Ratchets: numbers that may only go down. They are stored in `xtask/ratchets.txt`.
//!
//! Counted is code outside tests: a file up to its `#[cfg(test)] mod`, and no file that is a test as a whole. A number
//! above the stored one fails; one below is stored by `cargo xtask ratchets --lower`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

const FILE: &str = "xtask/ratchets.txt";
/// Lines of code outside tests that a file may have without being listed.
const CAP: usize = 500;
/// The crates that are counted.
const CRATES: [&str; 6] = ["flow", "nodes", "media", "transports", "kernels", "graphs"];

type Numbers = BTreeMap<String, usize>;

/// What has gone up.
pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let (stored, now) = (load(root)?, measure(root)?);
    let fell = stored.iter().filter(|(k, v)| now.get(*k).copied().unwrap_or(0) < **v).count();
    if fell > 0 {
        eprintln!("ratchets: {fell} fell; keep it so with: cargo xtask ratchets --lower");
    }
    Ok(raised(&stored, &now))
}

/// Stores what has fallen; what has gone up stays a finding.
pub fn lower(root: &Path) -> anyhow::Result<Vec<String>> {
    let (stored, now) = (load(root)?, measure(root)?);
    let mut text = String::from("# Numbers that may only go down; see xtask/src/ratchets.rs.\n");
    for (key, value) in &stored {
        let value = now.get(key).copied().unwrap_or(0).min(*value);
        // A file that is short again leaves the list; the other numbers stay, at zero too.
        if value > 0 || !key.starts_with("lines ") {
            text.push_str(&format!("{key} {value}\n"));
        }
    }
    std::fs::write(root.join(FILE), text).with_context(|| format!("cannot write {FILE}"))?;
    Ok(raised(&stored, &now))
}

fn raised(stored: &Numbers, now: &Numbers) -> Vec<String> {
    let up = now.iter().filter(|(k, v)| **v > stored.get(*k).copied().unwrap_or(0));
    up.map(|(key, value)| {
        let limit = stored.get(key).copied().unwrap_or(if key.starts_with("lines ") { CAP } else { 0 });
        format!("`{key}` is {value}, at most {limit} is allowed; bring it down rather than the limit up")
    })
    .collect()
}

fn load(root: &Path) -> anyhow::Result<Numbers> {
    parse(&std::fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?)
}

fn parse(text: &str) -> anyhow::Result<Numbers> {
    let mut all = Numbers::new();
    for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        match line.rsplit_once(' ').map(|(k, v)| (k, v.parse())) {
            Some((key, Ok(value))) => drop(all.insert(key.to_owned(), value)),
            _ => bail!("{FILE}: `{line}` is not a name and a number"),
        }
    }
    Ok(all)
}

/// Counts all there is: `lines FILE` for files over the cap, `unwraps CRATE`, `std-locks flow`.
fn measure(root: &Path) -> anyhow::Result<Numbers> {
    let mut all = Numbers::new();
    for name in CRATES {
        let mut files = Vec::new();
        rust_files(&root.join(name).join("src"), &mut files)?;
        for path in files {
            let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let code = outside_tests(&text);
            let short = path.strip_prefix(root).unwrap_or(&path).display().to_string().replace('\\', "/");
            if code.lines().count() > CAP {
                all.insert(format!("lines {short}"), code.lines().count());
            }
            *all.entry(format!("unwraps {name}")).or_default() += count(code, &[".unwrap()", ".expect(\""]);
            if name == "flow" && short != "flow/src/sync.rs" {
                let locks = ["std::sync::Mutex", "std::sync::RwLock", "std::sync::Condvar", "std::sync::atomic"];
                let lists = code.lines().filter(|l| l.starts_with("use std::sync::{") && l.contains("Mutex"));
                *all.entry("std-locks flow".to_owned()).or_default() += count(code, &locks) + lists.count();
            }
        }
    }
    Ok(all)
}

/// Occurrences outside comments.
fn count(code: &str, words: &[&str]) -> usize {
    let lines = code.lines().filter(|l| !l.trim_start().starts_with("//"));
    lines.map(|l| words.iter().map(|w| l.matches(w).count()).sum::<usize>()).sum()
}

/// A file up to its module of tests.
fn outside_tests(text: &str) -> &str {
    let end = ["#[cfg(test)]\nmod ", "#[cfg(all(test, not(omni_loom)))]\nmod "]
        .iter()
        .filter_map(|mark| {
            // `mod tests;` names another file and ends nothing.
            text.match_indices(mark)
                .find(|(at, _)| text[at + mark.len()..].lines().next().is_some_and(|l| l.ends_with('{')))
        })
        .map(|(at, _)| at)
        .min();
    &text[..end.unwrap_or(text.len())]
}

/// All source files below `folder` that are not tests as a whole, in order.
fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.with_context(|| format!("cannot list {}", folder.display()))?.path());
    }
    paths.sort();
    for path in paths {
        if is_test(&path) {
            continue;
        }
        if path.is_dir() {
            rust_files(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Whether the parent module takes this file or folder in under `cfg(test)` only.
fn is_test(path: &Path) -> bool {
    let (Some(folder), Some(name)) = (path.parent(), path.file_stem().and_then(|n| n.to_str())) else { return false };
    let parents = [folder.join("mod.rs"), folder.join("lib.rs"), folder.join("main.rs"), folder.with_extension("rs")];
    let taken = format!("mod {name};");
    parents.iter().filter_map(|p| std::fs::read_to_string(p).ok()).any(|text| {
        let lines: Vec<&str> = text.lines().collect();
        let test = |l: &str| l.starts_with("#[cfg(") && l.contains("test");
        lines.windows(2).any(|w| w[1].ends_with(&taken) && test(w[0]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_do_not_count() {
        let text = concat!(
            "a.unwrap();\n// b.unwrap()\n#[cfg(test)]\nmod tests;\nc.expect(\"x\");\n",
            "#[cfg(test)]\nmod tests {\n d.unwrap();\n}\n"
        );
        let code = outside_tests(text);
        assert!(code.contains("c.expect") && !code.contains("d.unwrap"));
        assert_eq!(count(code, &[".unwrap()", ".expect(\""]), 2);
    }
    #[test]
    fn only_downwards() {
        let stored = parse("# head\nunwraps flow 3\nlines flow/src/a.rs 510\nunwraps media 2\n").unwrap();
        let now = parse("unwraps flow 2\nlines flow/src/a.rs 511\nlines flow/src/b.rs 501\nunwraps media 2\n").unwrap();
        let found = raised(&stored, &now);
        assert_eq!(found.len(), 2);
        assert!(found[0].contains("a.rs` is 511, at most 510") && found[1].contains("b.rs` is 501, at most 500"));
        assert!(parse("unwraps flow x").is_err());
    }
    #[test]
    fn files_of_tests_are_found_by_their_parents() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut files = Vec::new();
        rust_files(&root.join("flow/src"), &mut files).unwrap();
        assert!(files.iter().any(|f| f.ends_with("edge/state.rs")));
        assert!(files.iter().all(|f| !f.ends_with("edge/tests.rs") && !f.ends_with("edge/model.rs")));
        measure(&root).unwrap();
    }
}
