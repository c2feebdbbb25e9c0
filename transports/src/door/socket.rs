//! One WebSocket between a client and a host.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::sync::{Notify, mpsc};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::realtime::host::{Hello, Host, Out, Said, event_id};
use crate::realtime::wire::code::{Code, Refusal};
use crate::realtime::wire::profile::Profile;
use crate::realtime::wire::project::{Envelope, project};
use crate::realtime::wire::server::ServerEvent;

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

/// Close codes: a message beyond all bounds, and what is no WebSocket.
const TOO_BIG: u16 = 1009;
const PROTOCOL: u16 = 1002;

/// The longest that a client is given to answer the close of its socket.
const CLOSING: Duration = Duration::from_secs(5);

/// Something that is no event: a binary frame.
const BINARY: &str = "\"a binary frame\"";

/// Says in one error that there is nothing to talk with, and closes.
pub(super) async fn refuse(mut socket: WebSocket, profile: Profile, message: &'static str, limits: Limits) {
    let event = ServerEvent::Error { refusal: Refusal::new(Code::NotFound, message), event_id: None };
    let envelope = Envelope { event_id: event_id(), server_event_seq: None };
    let tell = async {
        if let Some(event) = project(&event, profile, &envelope) {
            let _ = socket.send(Message::Text(event.to_string().into())).await;
        }
        let close = CloseFrame { code: 1000, reason: Code::NotFound.as_str().into() };
        let _ = socket.send(Message::Close(Some(close))).await;
        while let Some(Ok(_)) = socket.recv().await {}
    };
    let _ = timeout(limits.write.min(CLOSING), tell).await;
}

pub(super) async fn serve(host: Arc<Host>, hello: Hello, socket: WebSocket, limits: Limits) {
    let _present = host.present();
    let (mut sink, mut stream) = socket.split();
    let (tx, messages) = mpsc::channel(1);
    let (out, mut rx) = mpsc::channel(1);
    let silent = AtomicU32::new(0);
    let silent = &silent;
    let (broken, breaks) = (AtomicU16::new(0), Notify::new());
    let (broken, breaks) = (&broken, &breaks);
    let reader = async move {
        while let Some(message) = stream.next().await {
            let message = match message {
                Ok(message) => message,
                Err(e) => {
                    // The layer below says what is wrong in words only.
                    let code = if e.to_string().contains("too long") { TOO_BIG } else { PROTOCOL };
                    broken.store(code, Ordering::Relaxed);
                    breaks.notify_one();
                    break;
                }
            };
            let text = match message {
                Message::Text(text) => text.as_str().to_owned(),
                Message::Binary(_) => BINARY.to_owned(),
                Message::Pong(_) => {
                    silent.store(0, Ordering::Relaxed);
                    continue;
                }
                // Pings are answered by the socket layer.
                Message::Ping(_) => continue,
                Message::Close(_) => {
                    let _ = tx.send(Said::Bye).await;
                    break;
                }
            };
            silent.store(0, Ordering::Relaxed);
            // Read even if nobody takes it any more: a socket that is closed with something unread loses what was written.
            let _ = tx.send(Said::Text(text)).await;
        }
    };
    let writer = async move {
        let mut pings = interval(if limits.ping.is_zero() { Duration::from_secs(3600) } else { limits.ping });
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pings.tick().await;
        loop {
            let message = tokio::select! {
                biased;
                () = breaks.notified() => {
                    let code = broken.load(Ordering::Relaxed);
                    let close = Message::Close(Some(CloseFrame { code, reason: "".into() }));
                    let _ = timeout(limits.write, sink.send(close)).await;
                    break;
                }
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
    let mut reader = std::pin::pin!(reader);
    let mut unread = true;
    {
        let mut writer = std::pin::pin!(writer);
        let mut talk = std::pin::pin!(host.connect(hello, messages, out));
        let mut talks = true;
        // Until nothing can be written any more, or all has been.
        loop {
            tokio::select! {
                () = &mut writer => break,
                () = &mut reader, if unread => unread = false,
                () = &mut talk, if talks => talks = false,
            }
        }
    }
    if unread {
        let _ = timeout(CLOSING, reader).await;
    }
    if broken.load(Ordering::Relaxed) != 0 {
        // What it still sends cannot be read; closed at once, it would not learn why.
        sleep(CLOSING).await;
    }
}
