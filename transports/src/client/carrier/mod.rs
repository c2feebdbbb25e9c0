//! What carries events: a socket or a host in this process. Both are two channels of texts.

mod address;
mod socket;
pub(super) mod tls;

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub(super) use address::Address;

use super::error::ClientError;
use super::options::Options;
use crate::realtime::host::{Hello, Host, Out, Said};

/// Texts that a carrier holds each way.
const HELD: usize = 4;

/// Where sessions are opened.
pub(super) enum Carrier {
    /// Over a socket.
    Socket(Address),
    /// In this process.
    Host(Arc<Host>),
}

/// One connection.
pub(super) struct Wire {
    /// Commands. Dropped, the connection is closed.
    pub(super) tx: mpsc::Sender<Said>,
    /// Events. It ends without [`Out::Close`] if the connection broke.
    pub(super) rx: mpsc::Receiver<Out>,
    why: Arc<Mutex<Option<ClientError>>>,
    task: JoinHandle<()>,
}

impl Wire {
    /// Why the connection broke.
    pub(super) fn why(&self) -> ClientError {
        self.why.lock().take().unwrap_or_else(|| ClientError::Lost("it ended without a farewell".to_owned()))
    }
    /// Says goodbye and waits until all is let go of.
    pub(super) async fn close(self, limit: std::time::Duration) {
        let Self { tx, mut rx, task, .. } = self;
        let _ = tx.try_send(Said::Bye);
        drop(tx);
        let mut task = task;
        let gone = async {
            // What still comes must not keep the other side.
            loop {
                tokio::select! {
                    _ = &mut task => return,
                    Some(_) = rx.recv() => {}
                }
            }
        };
        if tokio::time::timeout(limit, gone).await.is_err() {
            task.abort();
        }
    }
}

impl Carrier {
    /// Opens a connection. With `resume` the server waits for `session.resume`.
    ///
    /// # Errors
    /// [`ClientError::Connect`], [`ClientError::Refused`], [`ClientError::Timeout`].
    pub(super) async fn open(&self, options: &Options, resume: bool) -> Result<Wire, ClientError> {
        let why = Arc::new(Mutex::new(None));
        match self {
            Self::Host(host) => {
                let (tx, messages) = mpsc::channel(HELD);
                let (out, rx) = mpsc::channel(HELD);
                let hello = Hello { profile: options.profile, autostart: !resume, model: options.model.clone() };
                let host = host.clone();
                let task = tokio::spawn(async move { host.connect(hello, messages, out).await });
                Ok(Wire { tx, rx, why, task })
            }
            Self::Socket(address) => {
                let limit = options.timeouts.connect;
                let open = socket::open(address, options, resume);
                let socket = tokio::time::timeout(limit, open).await;
                let socket = socket.map_err(|_| ClientError::Timeout { what: "connecting", limit })??;
                let (tx, messages) = mpsc::channel(HELD);
                let (out, rx) = mpsc::channel(HELD);
                let task = tokio::spawn(socket::serve(
                    socket,
                    messages,
                    out,
                    why.clone(),
                    options.timeouts,
                    options.limits.frame,
                ));
                Ok(Wire { tx, rx, why, task })
            }
        }
    }
}
