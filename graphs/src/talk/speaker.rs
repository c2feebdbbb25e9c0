//! Plays answers while they come, and falls silent at once when told to.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Child;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use super::device::Device;

/// Audio that waits to be played; more waits in the channel.
const MOST: usize = 32 << 20;

/// A running speaker.
pub struct Speaker {
    tx: mpsc::Sender<Vec<u8>>,
    hush: Arc<Notify>,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Speaker {
    /// Starts one; its program starts with the first audio.
    pub fn new(device: Device) -> Self {
        let (tx, rx) = mpsc::channel(256);
        let hush = Arc::new(Notify::new());
        let task = tokio::spawn(play(device, rx, hush.clone()));
        Self { tx, hush, task }
    }
    /// Plays audio behind what waits. False: it does not play any more.
    ///
    /// # Cancel safety
    /// Dropped while waiting, the piece is not played.
    pub async fn play(&self, audio: Vec<u8>) -> bool {
        self.tx.send(audio).await.is_ok()
    }
    /// What is not played yet is void.
    pub fn hush(&self) {
        self.hush.notify_one();
    }
    /// Waits until all has been played.
    ///
    /// # Errors
    /// The program failed.
    pub async fn finish(self) -> anyhow::Result<()> {
        drop(self.tx);
        self.task.await?
    }
}

async fn play(device: Device, mut rx: mpsc::Receiver<Vec<u8>>, hush: Arc<Notify>) -> anyhow::Result<()> {
    let mut child: Option<Child> = None;
    let (mut queue, mut held, mut open) = (VecDeque::<Vec<u8>>::new(), 0, true);
    loop {
        if let (Some(_), None) = (queue.front(), &child) {
            child = Some(device.play()?);
        }
        let front = queue.front().map_or(&[][..], Vec::as_slice);
        let write = async {
            match child.as_mut().and_then(|c| c.stdin.as_mut()) {
                Some(stdin) => stdin.write(front).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = hush.notified() => {
                // What came before is void too, and what the program holds.
                while let Ok(audio) = rx.try_recv() {
                    drop(audio);
                }
                queue.clear();
                (child, held) = (None, 0);
            }
            audio = rx.recv(), if open && held < MOST => match audio {
                Some(audio) if !audio.is_empty() => {
                    held += audio.len();
                    queue.push_back(audio);
                }
                Some(_) => {}
                None => open = false,
            },
            written = write, if !front.is_empty() => {
                let n = written?;
                held -= n;
                if let Some(front) = queue.front_mut() {
                    front.drain(..n);
                    if front.is_empty() {
                        queue.pop_front();
                    }
                }
            }
            else => break,
        }
    }
    if let Some(mut child) = child {
        drop(child.stdin.take());
        child.wait().await?;
    }
    Ok(())
}
