//! Keys and tokens, which are never shown.

use serde::Deserialize;

/// Text that is used and never printed: `Debug` shows only that it is there.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// A secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
    /// Its text, for the wire.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(secret)")
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}
