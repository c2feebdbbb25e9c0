//! Serving a graph to a network: what its file says about it, the socket that it listens on, TLS.

mod listen;
mod routes;
mod settings;
mod tls;

pub use listen::{Address, AddressError, App, Listener, Shield};
pub use routes::routes;
pub use settings::{Metrics, Settings, SettingsError};
pub use tls::{Tls, TlsError};
