//! The credential with which a client comes back to its session (Realtime protocol, resume).
//!
//! 32 random bytes as URL-safe base64. The session keeps digests only, compares them in constant time, and nothing here
//! prints a secret. Each return gives out a new token and voids the old one, which is good for one more attempt if the
//! new one could not be delivered.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// Random bytes of a token.
const BYTES: usize = 32;

/// The system gives no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system has no random numbers for a resume token: {0}")]
pub struct NoRandom(getrandom::Error);

/// A secret for one client, given out once.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A new one.
    ///
    /// # Errors
    /// [`NoRandom`]: the system's source of random numbers failed.
    pub fn random() -> Result<Self, NoRandom> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes).map_err(NoRandom)?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The text for the client. Never log it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[derive(Clone, Copy)]
struct Hash([u8; 32]);

impl Hash {
    fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    fn is(this: Option<Self>, other: Self) -> Choice {
        // A comparison is made in any case, so that time does not tell whether there is one.
        let known = Choice::from(u8::from(this.is_some()));
        this.unwrap_or(Self([0; 32])).0.ct_eq(&other.0) & known
    }
}

/// Which tokens open one session. It holds no secret.
#[derive(Clone)]
pub struct Credential {
    current: Hash,
    /// Good for one attempt: what was used when the new one could not be delivered.
    spare: Option<Hash>,
    /// What the last attempt used, until it is known whether the new one was delivered.
    used: Option<Hash>,
}

impl Credential {
    /// The credential of a new session and the token for its client.
    ///
    /// # Errors
    /// [`NoRandom`]
    pub fn new() -> Result<(Self, Token), NoRandom> {
        let token = Token::random()?;
        Ok((Self { current: Hash::of(token.reveal()), spare: None, used: None }, token))
    }

    /// Whether a token opens the session; changes nothing.
    pub fn accepts(&self, presented: &str) -> bool {
        let hash = Hash::of(presented);
        (Hash::is(Some(self.current), hash) | Hash::is(self.spare, hash)).into()
    }

    /// Takes a token and gives out the next one; every other is void. `None`: it does not open the session, and nothing
    /// has changed. Call it as the last step of a return, then [`Credential::delivered`] or [`Credential::undelivered`].
    ///
    /// # Errors
    /// [`NoRandom`]; nothing has changed.
    pub fn rotate(&mut self, presented: &str) -> Result<Option<Token>, NoRandom> {
        if !self.accepts(presented) {
            return Ok(None);
        }
        let token = Token::random()?;
        let hash = Hash::of(presented);
        let again = bool::from(Hash::is(self.spare, hash));
        *self = Self { current: Hash::of(token.reveal()), spare: None, used: (!again).then_some(hash) };
        Ok(Some(token))
    }

    /// The new token reached the socket.
    pub fn delivered(&mut self) {
        self.used = None;
    }

    /// It did not: the token just used is good once more. The new one stays good too, since some of it may have arrived.
    pub fn undelivered(&mut self) {
        self.spare = self.used.take();
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_43_url_safe_characters_and_never_printed() {
        let (credential, token) = Credential::new().unwrap();
        assert_eq!(token.reveal().len(), 43);
        assert!(token.reveal().bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
        assert_eq!(URL_SAFE_NO_PAD.decode(token.reveal()).unwrap().len(), BYTES);
        let printed = format!("{token:?} {credential:?}");
        assert_eq!(printed, "Token(..) Credential(..)");
        assert_ne!(token, Token::random().unwrap());
    }

    #[test]
    fn each_return_voids_the_token_it_used() {
        let (mut credential, first) = Credential::new().unwrap();
        assert!(credential.accepts(first.reveal()) && !credential.accepts("") && !credential.accepts("b0Qk"));
        let second = credential.rotate(first.reveal()).unwrap().unwrap();
        credential.delivered();
        assert!(!credential.accepts(first.reveal()) && credential.accepts(second.reveal()));
        assert_eq!(credential.rotate(first.reveal()), Ok(None));
        credential.undelivered(); // nothing was pending
        assert!(!credential.accepts(first.reveal()) && credential.accepts(second.reveal()));
    }

    #[test]
    fn a_return_that_was_not_told_may_be_tried_once_more() {
        let (mut credential, first) = Credential::new().unwrap();
        let second = credential.rotate(first.reveal()).unwrap().unwrap();
        credential.undelivered();
        assert!(credential.accepts(first.reveal()) && credential.accepts(second.reveal()));
        let third = credential.rotate(first.reveal()).unwrap().unwrap();
        credential.undelivered();
        assert!(!credential.accepts(first.reveal()), "one more attempt, not two");
        assert!(!credential.accepts(second.reveal()) && credential.accepts(third.reveal()));
    }

    #[test]
    fn a_second_chance_ends_with_the_next_return() {
        let (mut credential, first) = Credential::new().unwrap();
        let second = credential.rotate(first.reveal()).unwrap().unwrap();
        credential.undelivered();
        let third = credential.rotate(second.reveal()).unwrap().unwrap();
        credential.delivered();
        assert!(!credential.accepts(first.reveal()) && credential.accepts(third.reveal()));
    }
}
