//! The parts of `deny.toml` that the built-in check needs: the one list of licences, for cargo-deny and for us.
//!
//! It reads the form in which that file is written (a table's line, then its keys, strings in double quotes), not all
//! of TOML.

/// Allowed licences, and those that single crates are allowed besides.
#[derive(Debug, Default, PartialEq)]
pub struct Policy {
    pub allow: Vec<String>,
    /// Crate and licence.
    pub exceptions: Vec<(String, Vec<String>)>,
}

/// Reads `[licenses] allow` and all `[[licenses.exceptions]]`.
pub fn policy(text: &str) -> Policy {
    let mut policy = Policy::default();
    for (name, keys) in tables(text) {
        let get = |key: &str| keys.iter().find(|(k, _)| k == key).map(|(_, v)| v.clone()).unwrap_or_default();
        match name.as_str() {
            "licenses" => policy.allow = get("allow"),
            "licenses.exceptions" => {
                policy.exceptions.extend(get("crate").into_iter().map(|c| (c, get("allow"))));
            }
            _ => {}
        }
    }
    policy
}

type Table = (String, Vec<(String, Vec<String>)>);

/// Each table with its keys, of every value the strings in it.
fn tables(text: &str) -> Vec<Table> {
    let mut all: Vec<Table> = Vec::new();
    let mut open = false;
    for line in text.lines().map(|l| l.split('#').next().unwrap_or_default().trim()) {
        if !open && line.starts_with('[') {
            all.push((line.trim_matches(['[', ']']).to_owned(), Vec::new()));
            continue;
        }
        let Some((_, keys)) = all.last_mut() else { continue };
        let value = match line.split_once('=') {
            Some((key, value)) if !open => {
                keys.push((key.trim().to_owned(), Vec::new()));
                value
            }
            _ => line,
        };
        let Some((_, strings)) = keys.last_mut() else { continue };
        strings.extend(value.split('"').skip(1).step_by(2).map(str::to_owned));
        open = (open || value.trim_start().starts_with('[')) && !value.ends_with(']');
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lists_and_exceptions() {
        let text = r#"
# head
[bans]
allow = ["x"]
[licenses]
confidence = 0.9
allow = [
  "MIT", # usual
  "ISC",
]
[[licenses.exceptions]]
crate = "odd"
allow = ["WTFPL"]
[[licenses.exceptions]]
allow = ["A", "B"]
crate = "two"
"#;
        let policy = policy(text);
        assert_eq!(policy.allow, ["MIT", "ISC"]);
        assert_eq!(policy.exceptions[0], ("odd".to_owned(), vec!["WTFPL".to_owned()]));
        assert_eq!(policy.exceptions[1].1, ["A", "B"]);
    }
    #[test]
    fn this_repository_has_a_list() {
        let policy = policy(include_str!("../../deny.toml"));
        assert!(policy.allow.iter().any(|l| l == "MIT") && policy.allow.iter().all(|l| !l.contains("GPL")));
    }
}
