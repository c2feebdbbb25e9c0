//! Single values of a graph file, for whoever acts on a section: served sessions, sockets, stores.

use std::time::Duration;

use super::de::from_tree;
use super::graph::GraphFile;
use super::secrets::{Reference, reference};
use crate::units::Size;

/// Why a secret cannot be had. It names the reference, never the secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// A variable that is not set.
    #[error("`{key}` refers to the environment variable {name}, which is not set")]
    Env {
        /// The key.
        key: String,
        /// The variable.
        name: String,
    },
    /// A file that cannot be read.
    #[error("`{key}` refers to the file {path}, which cannot be read: {why}")]
    File {
        /// The key.
        key: String,
        /// The file.
        path: String,
        /// What the system says.
        why: String,
    },
    /// There is nothing in it.
    #[error("`{key}` refers to {what}, which is empty")]
    Empty {
        /// The key.
        key: String,
        /// The variable or the file.
        what: String,
    },
}

/// Values under dotted paths, of a file that passed [`GraphFile::check`]. A key that is not there is `None`, as is one that
/// does not fit, which the check has refused.
impl GraphFile {
    /// A duration, also as a bare number under the key with `-s` or `-ms`.
    pub fn duration(&self, key: &str) -> Option<Duration> {
        match key.rsplit_once('.') {
            Some((section, last)) => crate::plan::duration(self.get(section)?, last),
            None => None,
        }
    }
    /// A number of bytes, with a unit or without.
    pub fn bytes(&self, key: &str) -> Option<u64> {
        let tree = self.get(key)?;
        from_tree::<u64>(tree).ok().or_else(|| from_tree::<Size>(tree).ok().map(|s| s.0))
    }
    /// A whole number.
    pub fn count(&self, key: &str) -> Option<u64> {
        from_tree(self.get(key)?).ok()
    }
    /// A number.
    pub fn number(&self, key: &str) -> Option<f64> {
        from_tree(self.get(key)?).ok()
    }
    /// Yes or no.
    pub fn flag(&self, key: &str) -> Option<bool> {
        from_tree(self.get(key)?).ok()
    }
    /// Text.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_text()
    }
    /// The texts of a list; none if there is no list.
    pub fn texts(&self, key: &str) -> Vec<&str> {
        let items = self.get(key).and_then(|t| t.as_seq()).unwrap_or_default();
        items.iter().filter_map(|t| t.as_text()).collect()
    }
    /// The secrets that the items of a list refer to, `${env:NAME}` or `${file:PATH}`; a file holds one per line. Relative
    /// paths start at the folder of the graph file.
    ///
    /// # Errors
    /// [`SecretError`], which names the reference.
    pub fn secrets(&self, key: &str) -> Result<Vec<String>, SecretError> {
        let mut all = Vec::new();
        for text in self.texts(key) {
            let key = key.to_owned();
            match reference(text) {
                Some(Reference::Env(name)) => match std::env::var(name) {
                    Ok(value) if value.trim().is_empty() => {
                        return Err(SecretError::Empty { key, what: format!("the environment variable {name}") });
                    }
                    Ok(value) => all.push(value.trim().to_owned()),
                    Err(_) => return Err(SecretError::Env { key, name: name.to_owned() }),
                },
                Some(Reference::File(name)) => {
                    let path = self.folder().join(name);
                    let shown = path.display().to_string();
                    let lines = std::fs::read_to_string(&path).map_err(|e| SecretError::File {
                        key: key.clone(),
                        path: shown.clone(),
                        why: e.to_string(),
                    })?;
                    let before = all.len();
                    all.extend(lines.lines().map(str::trim).filter(|l| !l.is_empty()).map(str::to_owned));
                    if all.len() == before {
                        return Err(SecretError::Empty { key, what: format!("the file {shown}") });
                    }
                }
                // The check refuses what is no reference.
                None => {}
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> GraphFile {
        GraphFile::parse("g.yaml", text).unwrap()
    }

    #[test]
    fn values_are_read_with_and_without_units() {
        let f = file(
            "serve: { drain: 2s, write_stall_s: 1.5, realtime: { max-message-bytes: 2MiB, ping-ms: 250 }, \
             speech: { batch-max-items: 3 }, allow-anonymous: true, listen: \"0.0.0.0:80\", allowed-origins: [a, b] }",
        );
        assert_eq!(f.duration("serve.drain"), Some(Duration::from_secs(2)));
        assert_eq!(f.duration("serve.write-stall"), Some(Duration::from_millis(1500)));
        assert_eq!(f.duration("serve.realtime.ping"), Some(Duration::from_millis(250)));
        assert_eq!(f.duration("serve.realtime.first-message"), None);
        assert_eq!(f.bytes("serve.realtime.max-message-bytes"), Some(2 << 20));
        assert_eq!(f.count("serve.speech.batch-max-items"), Some(3));
        assert_eq!((f.flag("serve.allow-anonymous"), f.text("serve.listen")), (Some(true), Some("0.0.0.0:80")));
        assert_eq!(f.texts("serve.allowed-origins"), ["a", "b"]);
    }
    #[test]
    fn a_secret_comes_from_where_it_is_kept_or_the_error_names_that() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("keys"), "k1\n\n k2 \n").unwrap();
        std::fs::write(folder.path().join("none"), "\n").unwrap();
        let graph = folder.path().join("g.yaml");
        let read = |list: &str| {
            std::fs::write(&graph, format!("serve: {{ api-keys: [{list}] }}\n")).unwrap();
            GraphFile::read(&graph).unwrap().secrets("serve.api-keys")
        };
        assert_eq!(read("\"${file:keys}\""), Ok(vec!["k1".to_owned(), "k2".to_owned()]));
        assert!(read("\"${env:PATH}\"").is_ok_and(|k| k.len() == 1));
        assert!(matches!(read("\"${env:OMNI_FLOW_NO_SUCH}\""), Err(SecretError::Env { .. })));
        assert!(matches!(read("\"${file:none}\""), Err(SecretError::Empty { .. })));
        assert!(matches!(read("\"${file:gone}\""), Err(SecretError::File { .. })));
    }
}
