//! A carrier within one process: two bounded queues each way. For tests, and the reference for real carriers.

use std::sync::Arc;

use tokio::sync::{Mutex, mpsc};

use super::{Carrier, CarrierLost};
use crate::Epoch;
use crate::link::Frame;
use crate::sync::atomic::{AtomicU32, Ordering};

/// One end of an in-process carrier. Control overtakes data; cut data never arrives.
pub struct Loopback {
    control: mpsc::Sender<Frame>,
    data: mpsc::Sender<Frame>,
    arriving: Mutex<Arriving>,
    /// Data of older epochs is not taken out any more: what this end has cut, and what its peer has.
    cut: Arc<AtomicU32>,
    peer_cut: Arc<AtomicU32>,
}

struct Arriving {
    control: mpsc::Receiver<Frame>,
    data: mpsc::Receiver<Frame>,
}

/// The two ends of an in-process carrier. Each path holds up to `frames` frames each way, at least 1.
pub fn loopback(frames: usize) -> (Loopback, Loopback) {
    let frames = frames.max(1);
    let (ac, bc) = (mpsc::channel(frames), mpsc::channel(frames));
    let (ad, bd) = (mpsc::channel(frames), mpsc::channel(frames));
    let (a, b): (Arc<AtomicU32>, Arc<AtomicU32>) = (Arc::default(), Arc::default());
    let end = |control, data, c, d, cut: &Arc<AtomicU32>, peer: &Arc<AtomicU32>| Loopback {
        control,
        data,
        arriving: Mutex::new(Arriving { control: c, data: d }),
        cut: cut.clone(),
        peer_cut: peer.clone(),
    };
    (end(ac.0, ad.0, bc.1, bd.1, &a, &b), end(bc.0, bd.0, ac.1, ad.1, &b, &a))
}

fn closed() -> CarrierLost {
    CarrierLost { reason: "the other end of the loopback is gone".to_owned() }
}

impl Carrier for Loopback {
    async fn send(&self, frame: Frame) -> Result<(), CarrierLost> {
        let path = if frame.is_data() { &self.data } else { &self.control };
        path.send(frame).await.map_err(|_| closed())
    }
    async fn recv(&self) -> Result<Frame, CarrierLost> {
        // One task receives; the lock is only so that `recv` can take `&self`.
        let mut from = self.arriving.lock().await;
        let Arriving { control, data } = &mut *from;
        loop {
            let frame = tokio::select! {
                biased;
                Some(f) = control.recv() => f,
                Some(f) = data.recv() => f,
                else => return Err(closed()),
            };
            let cut = self.peer_cut.load(Ordering::Acquire);
            if !matches!(&frame, Frame::Data { epoch, .. } if epoch.0 < cut) {
                return Ok(frame);
            }
        }
    }
    fn cut(&self, epoch: Epoch) {
        self.cut.fetch_max(epoch.0, Ordering::AcqRel);
    }
}
