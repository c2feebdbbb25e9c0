//! One WebSocket between a client and a host.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::realtime::host::{Hello, Host, Out};

/// Limits of one socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message that the socket layer takes at all, so that it can be refused in words.
    pub frame: usize,
    /// Between two pings; zero is none.
    pub ping: Duration,
    /// Pings without an answer before the peer counts as lost.
    pub missed: u32,
    /// The longest that one write may take.
    pub write: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { frame: 64 << 20, ping: Duration::from_secs(20), missed: 2, write: Duration::from_secs(30) }
    }
}

/// Something that is no event: a binary frame.
const BINARY: &str = "\"a binary frame\"";

pub(super) async fn serve(host: Arc<Host>, hello: Hello, socket: WebSocket, limits: Limits) {
    let _present = host.present();
    let (mut sink, mut stream) = socket.split();
    let (tx, messages) = mpsc::channel(1);
    let (out, mut rx) = mpsc::channel(1);
    let silent = AtomicU32::new(0);
    let silent = &silent;
    let reader = async move {
        while let Some(Ok(message)) = stream.next().await {
            let text = match message {
                Message::Text(text) => text.as_str().to_owned(),
                Message::Binary(_) => BINARY.to_owned(),
                Message::Pong(_) => {
                    silent.store(0, Ordering::Relaxed);
                    continue;
                }
                // Pings are answered by the socket layer.
                Message::Ping(_) => continue,
                Message::Close(_) => break,
            };
            silent.store(0, Ordering::Relaxed);
            if tx.send(text).await.is_err() {
                break;
            }
        }
    };
    let writer = async move {
        let mut pings = interval(if limits.ping.is_zero() { Duration::from_secs(3600) } else { limits.ping });
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pings.tick().await;
        loop {
            let message = tokio::select! {
                biased;
                next = rx.recv() => match next {
                    Some(Out::Text(text)) => Message::Text((*text).into()),
                    Some(Out::Close(code, reason)) => {
                        // A reason has room for 123 bytes.
                        let reason: String = reason.chars().take(30).collect();
                        let close = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
                        let _ = timeout(limits.write, sink.send(close)).await;
                        break;
                    }
                    None => break,
                },
                _ = pings.tick(), if !limits.ping.is_zero() => {
                    if silent.fetch_add(1, Ordering::Relaxed) >= limits.missed {
                        break;
                    }
                    Message::Ping(Vec::new().into())
                }
            };
            if !matches!(timeout(limits.write, sink.send(message)).await, Ok(Ok(()))) {
                break;
            }
        }
    };
    let talk = async {
        tokio::join!(host.connect(hello, messages, out), reader);
    };
    // Once nothing can be written any more, or all has been, the rest does not matter.
    tokio::select! {
        () = writer => {}
        () = async { talk.await; std::future::pending().await } => {}
    }
}
