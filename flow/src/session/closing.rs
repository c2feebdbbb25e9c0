//! The wish that a session comes to its end by itself: nodes that make chunks without an input stop making them.

use tokio::sync::Notify;

use crate::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, Default)]
pub(crate) struct Closing {
    asked: AtomicBool,
    told: Notify,
}

impl Closing {
    pub(crate) fn ask(&self) {
        self.asked.store(true, Ordering::Release);
        self.told.notify_waiters();
    }
    pub(crate) fn asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }
    /// Waits until it was asked.
    ///
    /// # Cancel safety
    /// Dropping it only stops the wait.
    pub(crate) async fn wait(&self) {
        let mut told = std::pin::pin!(self.told.notified());
        // Entered before the look, so that what is asked in between is not missed.
        told.as_mut().enable();
        if !self.asked() {
            told.await;
        }
    }
}
