//! A response body that is made while it is read.
//!
//! One piece waits at most: a reader that stops reading stops the producer, and with it the graph. A body that ends without
//! having been finished breaks its connection off, so that nobody takes a part for the whole.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream::unfold;
use omni_flow::Clock;
use serde_json::Value;
use tokio::sync::mpsc;

use super::run::{Fail, Owned};

/// Where the pieces of a body go.
pub(super) struct Writer {
    tx: mpsc::Sender<Bytes>,
    whole: Arc<AtomicBool>,
    clock: Clock,
    stall: Duration,
}

impl Writer {
    /// Waits until the reader has taken the piece before this one.
    ///
    /// # Errors
    /// [`Fail::Gone`], or [`Fail::Stalled`] if that took too long.
    pub(super) async fn write(&self, piece: impl Into<Bytes>) -> Result<(), Fail> {
        let piece = piece.into();
        if piece.is_empty() {
            return Ok(());
        }
        match self.clock.timeout(self.stall, self.tx.send(piece)).await {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) => Err(Fail::Gone),
            None => Err(Fail::Stalled),
        }
    }
    /// An event of a stream of events; `named` ones have their type as their name.
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub(super) async fn event(&self, data: &Value, named: bool) -> Result<(), Fail> {
        let name = data.get("type").and_then(Value::as_str).filter(|_| named);
        let text = match name {
            Some(name) => format!("event: {name}\ndata: {data}\n\n"),
            None => format!("data: {data}\n\n"),
        };
        self.write(text).await
    }
    /// The body is whole.
    pub(super) fn finish(self) {
        self.whole.store(true, Ordering::Release);
    }
}

/// A body that `produce` makes. Dropped, the production is too.
pub(super) fn body<F>(clock: &Clock, stall: Duration, produce: impl FnOnce(Writer) -> F) -> Body
where
    F: Future<Output = ()> + Send + 'static,
{
    let (tx, rx) = mpsc::channel(1);
    let whole = Arc::new(AtomicBool::new(false));
    let task = Owned::spawn(produce(Writer { tx, whole: whole.clone(), clock: clock.clone(), stall }));
    Body::from_stream(unfold(Some((rx, whole, task)), async |state| {
        let (mut rx, whole, task) = state?;
        match rx.recv().await {
            Some(piece) => Some((Ok(piece), Some((rx, whole, task)))),
            None if whole.load(Ordering::Acquire) => None,
            None => Some((Err(io::Error::other("the answer was broken off")), None)),
        }
    }))
}
