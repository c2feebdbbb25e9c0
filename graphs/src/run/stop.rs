//! Ctrl-C and the system's wish to end: counted, so that the first drains and the second stops.

use tokio::sync::watch;

/// How often the user has asked to stop. Cheap to clone.
#[derive(Clone)]
pub struct Stop(watch::Receiver<u32>);

impl Stop {
    /// Begins to listen. From here on Ctrl-C no longer ends the program by itself.
    pub fn listen() -> Self {
        let (tx, rx) = watch::channel(0);
        tokio::spawn(async move {
            while pressed().await {
                tx.send_modify(|n| *n += 1);
            }
            // Signals cannot be had: nobody will ever ask, and those who wait must go on waiting.
            std::future::pending::<()>().await;
        });
        Self(rx)
    }
    /// Waits until the user has asked `times` times.
    ///
    /// # Cancel safety
    /// Dropped while waiting, no press is lost.
    pub async fn asked(&self, times: u32) {
        let mut rx = self.0.clone();
        if rx.wait_for(|n| *n >= times).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Waits for one press; false if signals cannot be had.
async fn pressed() -> bool {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let Ok(mut term) = signal(SignalKind::terminate()) else { return tokio::signal::ctrl_c().await.is_ok() };
        tokio::select! {
            r = tokio::signal::ctrl_c() => r.is_ok(),
            r = term.recv() => r.is_some(),
        }
    }
    #[cfg(not(unix))]
    {
        tokio::signal::ctrl_c().await.is_ok()
    }
}
