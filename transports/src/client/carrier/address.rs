//! Addresses of Realtime servers.

use form_urlencoded::Serializer;
use tokio_tungstenite::tungstenite::http::Uri;

use crate::client::error::ClientError;
use crate::client::options::Options;
use crate::realtime::wire::profile::Profile;

/// An address, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::client) struct Address {
    secure: bool,
    authority: String,
    path: String,
    query: String,
}

impl Address {
    /// Reads `ws://HOST[:PORT][/PATH][?QUERY]`, or `wss:`, `http:` or `https:`. Without a path it is `/v1/realtime`.
    ///
    /// # Errors
    /// [`ClientError::Options`].
    pub(in crate::client) fn parse(text: &str) -> Result<Self, ClientError> {
        let wrong = |why: &str| {
            let shown: String = text.split('?').next().unwrap_or_default().chars().take(200).collect();
            ClientError::Options(format!("`{shown}` is no address of a Realtime server: {why}"))
        };
        let uri: Uri = text.parse().map_err(|_| wrong("write ws://HOST:PORT/v1/realtime"))?;
        let secure = match uri.scheme_str() {
            Some("ws" | "http") => false,
            Some("wss" | "https") => true,
            _ => return Err(wrong("it begins with ws:// or wss://")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("it names no host"))?;
        if authority.as_str().contains('@') {
            // A key in an address ends up in logs.
            return Err(ClientError::Options("give the key as an option and not in the address".to_owned()));
        }
        let path = if uri.path() == "/" { "/v1/realtime" } else { uri.path() };
        let query = uri.query().unwrap_or_default().to_owned();
        Ok(Self { secure, authority: authority.to_string(), path: path.to_owned(), query })
    }
    /// True for TLS.
    pub(super) fn secure(&self) -> bool {
        self.secure
    }
    /// What to connect to; with `resume` to come back.
    pub(super) fn url(&self, options: &Options, resume: bool) -> String {
        let has = |name: &str| form_urlencoded::parse(self.query.as_bytes()).any(|(k, _)| k == name);
        let mut more = Serializer::new(String::new());
        if let Some(model) = options.model.as_deref().filter(|_| !has("model")) {
            more.append_pair("model", model);
        }
        if options.profile == Profile::Duplex && !has("duplex") {
            more.append_pair("duplex", "1");
        }
        if resume {
            more.append_pair("resume", "1");
        }
        let (query, more) = (self.query.as_str(), more.finish());
        let all: Vec<&str> = [query, more.as_str()].into_iter().filter(|q| !q.is_empty()).collect();
        let mark = if all.is_empty() { "" } else { "?" };
        format!("{self}{mark}{}", all.join("&"))
    }
}

/// Without what stands behind `?`: it may hold a key.
impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.secure { "wss" } else { "ws" };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gets_what_the_options_say() {
        let options = Options { model: Some("a b".to_owned()), profile: Profile::Duplex, ..Options::default() };
        let a = Address::parse("http://127.0.0.1:8080").unwrap();
        assert_eq!(a.url(&Options::default(), false), "ws://127.0.0.1:8080/v1/realtime");
        assert_eq!(a.url(&options, true), "ws://127.0.0.1:8080/v1/realtime?model=a+b&duplex=1&resume=1");
        let b = Address::parse("wss://x/v1/duplex?model=y&key=1").unwrap();
        assert_eq!(b.url(&options, false), "wss://x/v1/duplex?model=y&key=1&duplex=1");
        assert!(b.secure() && !b.to_string().contains("key"));
    }
    #[test]
    fn what_is_no_address_is_refused_in_words() {
        for wrong in ["", "localhost:80", "ftp://x", "ws://", "ws://user:key@host/"] {
            assert!(matches!(Address::parse(wrong), Err(ClientError::Options(_))), "{wrong}");
        }
    }
}
