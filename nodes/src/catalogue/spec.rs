//! What a user may write for a model: a catalogue name, a path, a hub file or a URL.

use super::FetchError;
use std::path::PathBuf;
use std::str::FromStr;

/// A reference to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spec {
    /// A name in the catalogue.
    Name(String),
    /// A file or folder of the user: anything with a path separator, or beginning with `.` or `~`.
    Path(PathBuf),
    /// `hub:ORG/REPO@REVISION/FILE`.
    Hub {
        /// `ORG/REPO`.
        repository: String,
        /// Commit, tag or branch.
        revision: String,
        /// Path inside the repository.
        file: String,
    },
    /// `http(s)://...`, with `#sha256=HEX` at the end if the sum is known.
    Url {
        /// The address without the fragment.
        url: String,
        /// Lower-case hex.
        sha256: Option<String>,
    },
}

/// Whether `name` may name a model, and so a folder of the cache.
pub fn is_model_name(name: &str) -> bool {
    let allowed = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    allowed && (1..=64).contains(&name.len()) && !name.bytes().all(|b| b == b'.')
}

impl FromStr for Spec {
    type Err = FetchError;

    fn from_str(spec: &str) -> Result<Self, FetchError> {
        let bad = |why| Err(FetchError::BadSpec { spec: spec.to_owned(), why });
        if let Some(rest) = spec.strip_prefix("hub:") {
            let Some((repository, rest)) = rest.split_once('@') else { return bad("a revision (`@...`) is missing") };
            let Some((revision, file)) = rest.split_once('/') else { return bad("a file is missing") };
            let plain = |s: &str| s.split('/').all(is_model_name);
            if repository.split('/').count() != 2 || !plain(repository) || !is_model_name(revision) || !plain(file) {
                return bad("repository, revision or file has a character that is not allowed");
            }
            let (repository, revision, file) = (repository.to_owned(), revision.to_owned(), file.to_owned());
            return Ok(Self::Hub { repository, revision, file });
        }
        if spec.starts_with("http://") || spec.starts_with("https://") {
            let (url, sha256) = match spec.split_once('#') {
                None => (spec, None),
                Some((url, fragment)) => match fragment.strip_prefix("sha256=") {
                    Some(hex) if hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()) => {
                        (url, Some(hex.to_ascii_lowercase()))
                    }
                    _ => return bad("after `#`, only `sha256=` and 64 hex digits are understood"),
                },
            };
            return Ok(Self::Url { url: url.to_owned(), sha256 });
        }
        if spec.contains(std::path::MAIN_SEPARATOR) || spec.starts_with(['.', '~']) {
            let home = std::env::var_os("HOME");
            return Ok(Self::Path(match (spec.strip_prefix("~/"), home) {
                (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
                _ => PathBuf::from(spec),
            }));
        }
        if is_model_name(spec) { Ok(Self::Name(spec.to_owned())) } else { Err(FetchError::BadName(spec.to_owned())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tells_the_forms_apart() {
        let parse = |s: &str| s.parse::<Spec>();
        assert_eq!(parse("piper-joe").unwrap(), Spec::Name("piper-joe".into()));
        assert_eq!(parse("./piper-joe").unwrap(), Spec::Path("./piper-joe".into()));
        assert_eq!(parse("/m/x.gguf").unwrap(), Spec::Path("/m/x.gguf".into()));
        let hub = Spec::Hub { repository: "a/b".into(), revision: "v1".into(), file: "c/d.onnx".into() };
        assert_eq!(parse("hub:a/b@v1/c/d.onnx").unwrap(), hub);
        let sum = "AB".repeat(32);
        let url = Spec::Url { url: "https://x/y".into(), sha256: Some("ab".repeat(32)) };
        assert_eq!(parse(&format!("https://x/y#sha256={sum}")).unwrap(), url);
        for wrong in ["", "a b", "hub:a/b", "hub:a@r/f", "hub:a/b@r/../f", "https://x#md5=1", "ä", "a:b"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(!is_model_name("..") && !is_model_name(&"a".repeat(65)) && is_model_name(&"a".repeat(64)));
    }

    proptest! {
        #[test]
        fn names_stay_in_their_folder(s in ".{0,80}") {
            if let Ok(Spec::Name(name)) = s.parse() {
                prop_assert!(!name.contains('/') && !name.contains('\\') && name != ".." && name != ".");
            }
        }
    }
}
