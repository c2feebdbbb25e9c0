//! The socket that a server listens on: HTTP/1.1 with or without TLS, with bounds on what a client may do before it is
//! known, and an end in order.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tower_service::Service as _;

use super::tls::Tls;

/// A place to listen: an address or a name, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
    at: Vec<SocketAddr>,
}

/// Text that is no place to listen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Something is missing.
    #[error("`{0}` is not HOST:PORT; write for instance 127.0.0.1:8080")]
    Form(String),
    /// Nobody knows the name.
    #[error("`{0}` is no address of this machine: {1}")]
    Unknown(String, String),
}

impl FromStr for Address {
    type Err = AddressError;
    /// `HOST:PORT`; an IPv6 address stands in brackets.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let form = || AddressError::Form(text.to_owned());
        let (host, port) = text.trim().rsplit_once(':').ok_or_else(form)?;
        let port: u16 = port.parse().map_err(|_| form())?;
        let inner = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        if host.is_empty() || (inner.is_none() && host.contains(':')) {
            return Err(form());
        }
        let host = inner.unwrap_or(host);
        let at = (host, port).to_socket_addrs().map_err(|e| AddressError::Unknown(host.to_owned(), e.to_string()))?;
        let at: Vec<_> = at.collect();
        if at.is_empty() {
            return Err(AddressError::Unknown(host.to_owned(), "it has no address".to_owned()));
        }
        Ok(Self { host: host.to_owned(), port, at })
    }
}

impl Address {
    /// True if only this machine can reach it.
    pub fn is_loopback(&self) -> bool {
        self.at.iter().all(|a| a.ip().is_loopback())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// What a connection may do before anybody knows who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shield {
    /// The longest that a request's head, or the TLS handshake, may take.
    pub head: Duration,
    /// Bytes of a request's head; at least 8 KiB.
    pub head_bytes: usize,
    /// Connections at once; others wait.
    pub connections: usize,
}

impl Default for Shield {
    /// 10 s, 16 KiB, 4096 connections.
    fn default() -> Self {
        Self { head: Duration::from_secs(10), head_bytes: 16 << 10, connections: 4096 }
    }
}

/// What answers: nothing but "starting" until [`App::ready`].
#[derive(Clone, Default)]
pub struct App(Arc<OnceLock<Router>>);

impl App {
    /// From here on `router` answers; what it streams without an end of its own ends once `stop` is true. The first router
    /// stays.
    pub fn ready(&self, router: Router, stop: watch::Receiver<bool>) {
        let _ = self.0.set(router.layer(axum::Extension(crate::door::Stopping(stop))));
    }
    async fn call(&self, request: Request<Incoming>) -> Response {
        match self.0.get() {
            Some(router) => match router.clone().call(request.map(Body::new)).await {
                Ok(response) => response,
                Err(never) => match never {},
            },
            None => starting(request.uri().path()),
        }
    }
}

fn starting(path: &str) -> Response {
    let body = match path {
        "/health" | "/ready" => serde_json::json!({"status": "starting"}),
        _ => serde_json::json!({"error": {"message": "the server is starting", "type": "ServiceUnavailableError",
            "param": null, "code": 503}}),
    };
    let mut response = (StatusCode::SERVICE_UNAVAILABLE, axum::Json(body)).into_response();
    response.headers_mut().insert("retry-after", axum::http::HeaderValue::from_static("1"));
    response
}

/// A socket that listens.
pub struct Listener {
    socket: TcpListener,
    tls: Option<Tls>,
    shield: Shield,
}

impl Listener {
    /// Listens at the first address that can be had.
    ///
    /// # Errors
    /// What the system says: somebody else listens there, or it is not allowed.
    pub fn bind(address: &Address, tls: Option<Tls>, shield: Shield) -> io::Result<Self> {
        let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for at in &address.at {
            match crate::door::listen(*at) {
                Ok(socket) => return Ok(Self { socket, tls, shield }),
                Err(e) => failed = e,
            }
        }
        Err(failed)
    }
    /// Where it listens: the port is the real one if 0 was asked for.
    ///
    /// # Errors
    /// What the system says.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
    /// Serves until `stop` is true. From then on nothing is accepted; requests under way end, idle connections close, and
    /// whoever is not done when this future is dropped is cut off.
    ///
    /// # Cancel safety
    /// Dropped, all connections are closed, but for sockets that have become something else.
    pub async fn serve(self, app: App, mut stop: watch::Receiver<bool>) {
        let places = Arc::new(Semaphore::new(self.shield.connections.max(1)));
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let accepted = async {
                // A place first: who finds none waits in the system's queue.
                let place = places.clone().acquire_owned().await;
                (self.socket.accept().await, place)
            };
            let (accepted, place) = tokio::select! {
                biased;
                _ = stop.wait_for(|s| *s) => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
                accepted = accepted => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let one = connection(stream, self.tls.clone(), self.shield, app.clone(), stop.clone());
                    connections.spawn(async move {
                        let _place = place;
                        one.await;
                    });
                }
                // The client has gone already, or there are too many files: neither gets better by asking at once.
                Err(e) => {
                    tracing::debug!(error = %e, "a connection was not accepted");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
        drop(self.socket);
        while connections.join_next().await.is_some() {}
    }
}

async fn connection(stream: TcpStream, tls: Option<Tls>, shield: Shield, app: App, stop: watch::Receiver<bool>) {
    // Small events must not wait for each other.
    let _ = stream.set_nodelay(true);
    match tls {
        None => http(stream, shield, app, stop).await,
        Some(tls) => match tokio::time::timeout(shield.head, tls.acceptor.accept(stream)).await {
            Ok(Ok(stream)) => http(stream, shield, app, stop).await,
            Ok(Err(e)) => tracing::debug!(error = %e, "no TLS"),
            Err(_) => tracing::debug!("no TLS in time"),
        },
    }
}

async fn http<S>(stream: S, shield: Shield, app: App, mut stop: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| {
        let app = app.clone();
        async move { Ok::<_, std::convert::Infallible>(app.call(request).await) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(shield.head).max_buf_size(shield.head_bytes.max(8 << 10));
    let connection = builder.serve_connection(TokioIo::new(stream), service).with_upgrades();
    tokio::pin!(connection);
    tokio::select! {
        biased;
        _ = stop.wait_for(|s| *s) => {}
        ended = connection.as_mut() => {
            if let Err(e) = ended {
                tracing::debug!(error = %e, "a connection ended");
            }
            return;
        }
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_or_refused() {
        for (text, loopback) in
            [("127.0.0.1:8080", true), ("[::1]:80", true), ("0.0.0.0:0", false), ("localhost:1", true)]
        {
            let a: Address = text.parse().unwrap();
            assert_eq!((a.is_loopback(), a.to_string()), (loopback, text.to_owned()));
        }
        for text in ["", "8080", ":8080", "localhost", "127.0.0.1:x", "127.0.0.1:70000", "::1:80", "a b:80"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
