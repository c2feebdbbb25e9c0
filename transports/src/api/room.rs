//! Memory for the bodies of all requests together.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::door::HttpError;

/// Bytes are counted in pages of this size.
const PAGE: usize = 4096;

/// Room for bodies that have arrived and are not done with.
#[derive(Clone)]
pub(super) struct Room(Arc<Semaphore>);

/// What one request holds of it. Dropped, it is given back.
pub(super) struct Held {
    room: Room,
    bytes: usize,
    pages: Option<OwnedSemaphorePermit>,
}

impl Room {
    /// Room for so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new((bytes / PAGE).clamp(1, Semaphore::MAX_PERMITS))))
    }
    /// Nothing yet.
    pub(super) fn hold(&self) -> Held {
        Held { room: self.clone(), bytes: 0, pages: None }
    }
}

impl Held {
    /// More has arrived.
    ///
    /// # Errors
    /// 503: others hold all there is. What is held so far stays held until it is dropped.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), HttpError> {
        let have = self.bytes.div_ceil(PAGE);
        self.bytes += bytes;
        let more = self.bytes.div_ceil(PAGE) - have;
        if more == 0 {
            return Ok(());
        }
        let full = || HttpError::unavailable("too much is being uploaded at once; try again").retry_after(1);
        let more = u32::try_from(more).map_err(|_| full())?;
        let pages = self.room.0.clone().try_acquire_many_owned(more).map_err(|_| full())?;
        match &mut self.pages {
            Some(held) => held.merge(pages),
            none => *none = Some(pages),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_shared_and_comes_back() {
        let room = Room::new(10 * PAGE);
        let (mut a, mut b) = (room.hold(), room.hold());
        (0..PAGE).for_each(|_| a.grow(6).unwrap());
        b.grow(4 * PAGE).unwrap();
        assert_eq!(b.grow(1).unwrap_err().status().as_u16(), 503);
        drop(a);
        b.grow(5 * PAGE).unwrap();
        drop(b);
        assert_eq!(room.0.available_permits(), 10);
    }
}
