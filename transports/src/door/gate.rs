//! Who may come in: API keys and origins.

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN, SEC_WEBSOCKET_PROTOCOL};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;

/// Prefix of a subprotocol that carries a key, for browsers, which cannot set headers.
const KEY: &str = "openai-insecure-api-key.";

/// Why somebody does not come in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// No key, or one that is not listed.
    #[error("a valid API key is needed: send `Authorization: Bearer KEY`")]
    Key,
    /// A page of another origin.
    #[error("pages of {0} are not served; list it in `serve.allowed-origins`")]
    Origin(String),
}

/// The keys and origins that are let in. It holds no key, only digests.
#[derive(Clone, Default)]
pub struct Gate {
    keys: Vec<[u8; 32]>,
    origins: Vec<String>,
}

impl Gate {
    /// A gate for holders of one of `keys`; for everybody if there are none. Pages of the server's own origin and of
    /// `origins` may open sockets.
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a str>, origins: impl IntoIterator<Item = String>) -> Self {
        let keys = keys.into_iter().map(|k| Sha256::digest(k.as_bytes()).into()).collect();
        Self { keys, origins: origins.into_iter().map(|o| o.trim_end_matches('/').to_lowercase()).collect() }
    }
    /// Lets somebody in, or does not.
    ///
    /// # Errors
    /// [`GateError`].
    pub fn admit(&self, headers: &HeaderMap, offered: &[String]) -> Result<(), GateError> {
        let text = |name| headers.get(name).and_then(|v| v.to_str().ok());
        if let Some(origin) = headers.get(ORIGIN) {
            let origin = origin.to_str().unwrap_or("null").to_lowercase();
            let own = text(HOST).map(|h| h.to_lowercase());
            let same = origin.split_once("://").is_some_and(|(_, host)| own.as_deref() == Some(host));
            if !same && !self.origins.contains(&origin) {
                return Err(GateError::Origin(origin.chars().filter(|c| !c.is_control()).take(128).collect()));
            }
        }
        if self.keys.is_empty() {
            return Ok(());
        }
        let bearer = text(AUTHORIZATION)
            .and_then(|v| v.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, key)| key.trim());
        let key = bearer.or_else(|| offered.iter().find_map(|p| p.strip_prefix(KEY)));
        let digest: [u8; 32] = Sha256::digest(key.unwrap_or_default().as_bytes()).into();
        // Every key is compared, so that time does not tell which one was near.
        let known = self.keys.iter().fold(subtle::Choice::from(0), |all, k| all | k.ct_eq(&digest));
        if key.is_some() && bool::from(known) { Ok(()) } else { Err(GateError::Key) }
    }
}

/// The subprotocols that a client offers.
pub(crate) fn protocols(headers: &HeaderMap) -> Vec<String> {
    let lists = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|v| v.to_str().ok());
    lists.flat_map(|l| l.split(',')).map(|p| p.trim().to_owned()).filter(|p| !p.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(k, v)| (k.parse().unwrap(), v.parse().unwrap())).collect::<HeaderMap>()
    }

    #[test]
    fn keys_come_in_a_header_or_in_a_subprotocol() {
        let gate = Gate::new(["k1", "k2"], []);
        let admit = |pairs: &[(&'static str, &str)]| {
            let headers = headers(pairs);
            gate.admit(&headers, &protocols(&headers))
        };
        assert_eq!(admit(&[("authorization", "Bearer k2")]), Ok(()));
        assert_eq!(admit(&[("authorization", "bearer  k1 ")]), Ok(()));
        assert_eq!(admit(&[("sec-websocket-protocol", "realtime, openai-insecure-api-key.k1")]), Ok(()));
        for none in [
            &[][..],
            &[("authorization", "Bearer k3")],
            &[("authorization", "k1")],
            &[("authorization", "Basic k1")],
            &[("sec-websocket-protocol", "realtime, k1")],
        ] {
            assert_eq!(admit(none), Err(GateError::Key), "{none:?}");
        }
        assert_eq!(Gate::default().admit(&HeaderMap::new(), &[]), Ok(()));
    }

    #[test]
    fn pages_come_from_here_or_from_the_list() {
        let gate = Gate::new([], ["https://app.example/".to_owned()]);
        let admit = |origin: &str| gate.admit(&headers(&[("host", "127.0.0.1:8080"), ("origin", origin)]), &[]);
        assert_eq!(admit("http://127.0.0.1:8080"), Ok(()));
        assert_eq!(admit("https://app.example"), Ok(()));
        for other in ["http://127.0.0.1:8081", "https://evil.example", "null", "http://127.0.0.1"] {
            assert!(matches!(admit(other), Err(GateError::Origin(_))), "{other}");
        }
    }
}
