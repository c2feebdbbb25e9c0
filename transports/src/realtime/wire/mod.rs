//! The events on the wire.
//!
//! [`client::parse`] turns one text message into a [`client::ClientEvent`] or a [`code::Refusal`];
//! [`project::project`] turns a [`server::ServerEvent`] into the JSON object that a [`profile::Profile`] sends for it.
//! Nothing here decides anything: base64 is not decoded, order and meaning belong to the session.

pub mod client;
pub mod code;
pub mod fields;
pub mod profile;
pub mod project;
pub mod server;
