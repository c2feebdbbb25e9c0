//! What the task of a connection does when it breaks.

use tokio::time::{Instant, sleep};

use super::driver::Driver;
use super::error::ClientError;
use super::event::Event;
use super::open::{self, Lost, Opened};
use super::options::Reconnect;

impl Driver {
    /// Comes back, or says why not.
    pub(super) async fn recover(&mut self, why: ClientError) -> Result<(), ClientError> {
        let never = matches!(why, ClientError::TooLarge { .. } | ClientError::Protocol(_));
        if never || self.closing.is_some() || self.options.reconnect == Reconnect::Never {
            return Err(why);
        }
        let fresh = self.options.reconnect == Reconnect::Fresh;
        let mut why = why;
        for n in 0.. {
            if self.opened.token.is_none() && !fresh {
                return Err(why);
            }
            let Some(wait) = self.options.backoff.wait(n, random()) else { return Err(why) };
            tracing::info!(%why, ?wait, "the connection broke; coming back");
            let (carrier, options) = (&self.carrier, &self.options);
            let attempt = async {
                sleep(wait).await;
                match &self.opened.token {
                    Some(token) => {
                        let Opened { session, track, .. } = &self.opened;
                        open::resume(carrier, options, session, token, *track).await
                    }
                    None => match open::open(carrier, options, self.config.as_ref()).await {
                        Ok(opened) => Ok(opened),
                        Err(e) if e.retryable() => Err(Lost::Retry(e)),
                        Err(e) => Err(Lost::Gone(e)),
                    },
                }
            };
            let attempt = tokio::select! {
                done = attempt => done,
                _ = &mut self.alive => return Err(ClientError::Ended),
            };
            match attempt {
                Ok(opened) => {
                    let resumed = self.opened.token.is_some();
                    self.back(opened, resumed);
                    return Ok(());
                }
                Err(Lost::Retry(e)) => why = e,
                // Another session then.
                Err(Lost::Gone(_)) if fresh && self.opened.token.is_some() => self.opened.token = None,
                Err(Lost::Gone(e)) => return Err(e),
            }
        }
        Err(why)
    }
    fn back(&mut self, opened: Opened, resumed: bool) {
        let now = Instant::now();
        let old = std::mem::replace(&mut self.opened, opened);
        tokio::spawn(old.wire.close(self.options.timeouts.close));
        let session = std::mem::take(&mut self.opened.session);
        self.session(session);
        (self.unanswered, self.heartbeat) = (0, now + self.options.timeouts.heartbeat);
        (self.deaf, self.blocked) = (false, None);
        if resumed {
            self.live.values_mut().for_each(|l| l.heard = now);
        } else {
            self.queue.clear();
            let lost = || ClientError::Lost("the session was lost, and another one opened".to_owned());
            self.live.drain().for_each(|(_, l)| l.collector.fail(lost()));
            for asked in self.asked.drain(..) {
                let _ = asked.reply.send(Err(lost()));
            }
        }
        self.tell(None, Event::Reconnected { resumed });
    }
}

/// From 0 to 1; 0.5 if the system has no random numbers.
fn random() -> f64 {
    let mut bytes = [0; 4];
    match getrandom::fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 0.5,
    }
}
