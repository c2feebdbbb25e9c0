//! What a client may be told.

use std::time::Duration;

use super::backoff::Backoff;
use super::config::SessionConfig;
use super::error::ClientError;
use super::secret::Secret;
use crate::realtime::wire::profile::Profile;

/// What to do when a connection breaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reconnect {
    /// Nothing: the connection has ended.
    Never,
    /// Come back to the same session, if the server can. Nothing is lost then: missed events are told again. Else the
    /// connection has ended.
    #[default]
    Resume,
    /// The same; and where the session cannot be resumed, open another one with the same configuration. Its conversation
    /// is empty, responses under way fail, and [`Event::Reconnected`](super::Event::Reconnected) says so.
    Fresh,
}

/// Whom to trust over `wss:`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// The usual root certificates (Mozilla's).
    #[default]
    Roots,
    /// One certificate, known by the SHA-256 of its DER form; for development. Names and dates are not looked at.
    Pinned([u8; 32]),
}

impl Trust {
    /// Trust in the certificate with this fingerprint: 64 hexadecimal digits, with or without colons.
    ///
    /// # Errors
    /// [`ClientError::Options`]: it is none.
    pub fn fingerprint(text: &str) -> Result<Self, ClientError> {
        let wrong = || ClientError::Options(format!("`{text}` is no SHA-256: 64 hexadecimal digits are"));
        let digits: Vec<u32> = text
            .chars()
            .filter(|c| !matches!(c, ':' | ' '))
            .map(|c| c.to_digit(16))
            .collect::<Option<_>>()
            .ok_or_else(wrong)?;
        let mut pin = [0u8; 32];
        if digits.len() != 64 {
            return Err(wrong());
        }
        for (byte, pair) in pin.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = (pair[0] << 4 | pair[1]) as u8;
        }
        Ok(Self::Pinned(pin))
    }
    /// Trust in the first certificate of a PEM text.
    ///
    /// # Errors
    /// [`ClientError::Options`]: there is none in it.
    pub fn pem(text: &[u8]) -> Result<Self, ClientError> {
        super::carrier::tls::pin(text).map(Self::Pinned)
    }
}

/// How long things may take. Each has its end in [`ClientError::Timeout`], unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Name, TCP, TLS and the upgrade.
    pub connect: Duration,
    /// From there to `session.created`, and to the answer to the first `session.update`.
    pub handshake: Duration,
    /// A command waits to be sent, also while the connection is being resumed.
    pub send: Duration,
    /// From `response.create` to `response.created`.
    pub create: Duration,
    /// Silence of a response that is under way.
    pub response: Duration,
    /// Events that are asked for wait to be read; then the connection ends with [`ClientError::Unread`].
    pub unread: Duration,
    /// The server's farewell; without it the connection ends all the same.
    pub close: Duration,
    /// A sign of life is asked for after so much silence of the server; two without an answer, and the connection is
    /// lost. Zero: never.
    pub heartbeat: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let s = Duration::from_secs;
        Self {
            connect: s(10),
            handshake: s(10),
            send: s(30),
            create: s(30),
            response: s(600),
            unread: s(30),
            close: s(5),
            heartbeat: s(20),
        }
    }
}

/// How much is held at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message of the server.
    pub frame: usize,
    /// Commands that wait to be sent.
    pub commands: usize,
    /// Events that wait to be read.
    pub events: usize,
    /// Responses that wait to be taken.
    pub responses: usize,
    /// Bytes that one response holds: audio that was not taken, text, and function calls.
    pub response: usize,
}

impl Default for Limits {
    /// 16 MiB of PCM16 at 24 kHz are almost six minutes.
    fn default() -> Self {
        Self { frame: 16 << 20, commands: 32, events: 256, responses: 8, response: 16 << 20 }
    }
}

/// How to open a session. `Options::default()` suits a stock server as well as ours.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names and shapes of events. Stock suits any server; duplex is ours.
    pub profile: Profile,
    /// The model, as the address names it.
    pub model: Option<String>,
    /// The API key. Not used in process.
    pub key: Option<Secret>,
    /// Sent as soon as the session is open; a refusal is an error of connecting.
    pub session: Option<SessionConfig>,
    /// Whom to trust. Not used in process.
    pub trust: Trust,
    /// What to do when the connection breaks.
    pub reconnect: Reconnect,
    /// How.
    pub backoff: Backoff,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// How much is held.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            profile: Profile::Stock,
            model: None,
            key: None,
            session: None,
            trust: Trust::default(),
            reconnect: Reconnect::default(),
            backoff: Backoff::default(),
            timeouts: Timeouts::default(),
            limits: Limits::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_as_it_is_printed() {
        let hex = "AB:".repeat(31) + "ab";
        assert_eq!(Trust::fingerprint(&hex), Ok(Trust::Pinned([0xab; 32])));
        for wrong in ["", "ab", &"g".repeat(64), &"a".repeat(66)] {
            assert!(Trust::fingerprint(wrong).is_err(), "{wrong}");
        }
    }
    #[test]
    fn no_key_is_shown() {
        let options = Options { key: Some("sk-very-secret".into()), ..Options::default() };
        assert!(!format!("{options:?}").contains("very"));
    }
}
