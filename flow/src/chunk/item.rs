//! The Rust types that a typed port can carry.

use std::sync::Arc;

use super::{Frame, Medium, Packet, Payload, Pcm, Signal, Tensor, Tokens};

/// A type that is one kind of [`Payload`]. Implemented for each payload type and for `Payload` itself ("any").
pub trait Item: Sized + Send + 'static {
    /// The medium of a port of this type.
    const MEDIUM: Medium;
    /// Takes the value out of a payload.
    ///
    /// # Errors
    /// The payload itself, if it is of another kind.
    fn from_payload(p: Payload) -> Result<Self, Payload>;
    /// The value as a payload.
    fn into_payload(self) -> Payload;
}

macro_rules! item {
    ($t:ty, $variant:ident, $medium:ident) => {
        impl Item for $t {
            const MEDIUM: Medium = Medium::$medium;
            fn from_payload(p: Payload) -> Result<Self, Payload> {
                match p {
                    Payload::$variant(x) => Ok(x),
                    other => Err(other),
                }
            }
            fn into_payload(self) -> Payload {
                Payload::$variant(self)
            }
        }
    };
}
item!(Pcm, Audio, Audio);
item!(Frame, Video, Video);
item!(Arc<str>, Text, Text);
item!(Tokens, Tokens, Tokens);
item!(Tensor, Tensor, Tensor);
item!(Packet, Packet, Packet);
item!(Signal, Signal, Signal);

impl Item for Payload {
    const MEDIUM: Medium = Medium::Any;
    fn from_payload(p: Payload) -> Result<Self, Payload> {
        Ok(p)
    }
    fn into_payload(self) -> Payload {
        self
    }
}
