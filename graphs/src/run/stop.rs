//! Ctrl-C and the system's wish to end: counted, so that the first drains and the second stops.

use tokio::sync::watch;

use crate::output::LAST;

/// How often the user has asked to stop. Cheap to clone.
#[derive(Clone)]
pub struct Stop(watch::Receiver<u32>);

impl Stop {
    /// Begins to listen, on a thread of its own: whatever the others wait for (a reader that stopped reading standard
    /// output), the second press ends the program. From here on Ctrl-C no longer ends it by itself.
    pub fn listen() -> Self {
        let (tx, rx) = watch::channel(0);
        let listen = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            // Signals cannot be had: nobody will ever ask, and those who wait must go on waiting.
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                while pressed().await {
                    tx.send_modify(|n| *n += 1);
                    if *tx.borrow() >= 2 {
                        // So much is left to end in order.
                        tokio::time::sleep(LAST).await;
                        std::process::exit(130);
                    }
                }
                std::future::pending::<()>().await;
            });
        };
        // Without the thread Ctrl-C goes on ending the program by itself.
        let _ = std::thread::Builder::new().name("signals".into()).spawn(listen);
        Self(rx)
    }
    /// How often the user has asked.
    pub fn times(&self) -> u32 {
        *self.0.borrow()
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
    /// Does the last `work` of a program, which may wait for ever (for a reader that stopped reading), on a thread of its
    /// own. True if it was done; false if the user has asked to stop and it was not done 2 s later.
    pub async fn or_done(&self, work: impl FnOnce() + Send + 'static) -> bool {
        let patience = async {
            self.asked(1).await;
            tokio::time::sleep(LAST).await;
        };
        tokio::select! {
            biased;
            _ = tokio::task::spawn_blocking(work) => true,
            () = patience => false,
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
