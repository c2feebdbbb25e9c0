//! A shared stage whose types a graph does not know.
//!
//! The same operations over [`Payload`]; a payload of the wrong medium is a typed error, and the stream goes on.

use futures_core::future::BoxFuture;

use super::{Advance, LeaseError, Leased, SlotId, SlotStats, Stage, StageError, StageHandle, StageStats};
use crate::pool::Priority;
use crate::{Item, Medium, Payload, Stamp};

/// A [`StageHandle`] of any stage.
pub trait AnyStage: Send + Sync {
    /// [`StageHandle::lease`].
    ///
    /// # Errors
    /// [`LeaseError`].
    fn lease(&self) -> Result<Box<dyn AnyLeased>, LeaseError>;
    /// [`StageHandle::admit`]. Cancel safe.
    ///
    /// # Errors
    /// [`LeaseError`].
    fn admit(&self) -> BoxFuture<'_, Result<Box<dyn AnyLeased>, LeaseError>>;
    /// What it takes.
    fn takes(&self) -> Medium;
    /// What it gives.
    fn gives(&self) -> Medium;
    /// [`StageHandle::close`].
    fn close(&self);
    /// [`StageHandle::stats`].
    fn stats(&self) -> StageStats;
    /// [`StageHandle::slots`].
    fn slots(&self) -> Vec<SlotStats>;
}

/// A [`Leased`] slot of any stage.
pub trait AnyLeased: Send {
    /// [`Leased::id`].
    fn id(&self) -> SlotId;
    /// [`Leased::input`].
    ///
    /// # Errors
    /// [`StageError::WrongKind`], after which the stream goes on; else as [`Leased::input`].
    fn input(&mut self, stamp: &Stamp, payload: Payload) -> Result<bool, StageError>;
    /// [`Leased::end`].
    ///
    /// # Errors
    /// As [`Leased::end`].
    fn end(&mut self) -> Result<bool, StageError>;
    /// [`Leased::ready`].
    ///
    /// # Errors
    /// As [`Leased::ready`].
    fn ready(&mut self) -> Result<bool, StageError>;
    /// [`Leased::is_busy`].
    fn is_busy(&self) -> bool;
    /// [`Leased::fence`]. Cancel safe in the same way.
    ///
    /// # Errors
    /// As [`Leased::fence`].
    fn fence(&mut self) -> BoxFuture<'_, Result<(), StageError>>;
    /// [`Leased::advance`]. Cancel safe in the same way.
    ///
    /// # Errors
    /// As [`Leased::advance`].
    fn advance(&mut self, priority: Priority) -> BoxFuture<'_, Result<Advance<Payload>, StageError>>;
    /// [`Leased::close`].
    fn close(self: Box<Self>) -> BoxFuture<'static, ()>;
}

impl<S: Stage> AnyStage for StageHandle<S> {
    fn lease(&self) -> Result<Box<dyn AnyLeased>, LeaseError> {
        Ok(Box::new(Self::lease(self)?))
    }
    fn admit(&self) -> BoxFuture<'_, Result<Box<dyn AnyLeased>, LeaseError>> {
        Box::pin(async { Ok(Box::new(Self::admit(self).await?) as Box<dyn AnyLeased>) })
    }
    fn takes(&self) -> Medium {
        S::In::MEDIUM
    }
    fn gives(&self) -> Medium {
        S::Out::MEDIUM
    }
    fn close(&self) {
        Self::close(self);
    }
    fn stats(&self) -> StageStats {
        Self::stats(self)
    }
    fn slots(&self) -> Vec<SlotStats> {
        Self::slots(self)
    }
}

impl<S: Stage> AnyLeased for Leased<S> {
    fn id(&self) -> SlotId {
        Self::id(self)
    }
    fn input(&mut self, stamp: &Stamp, payload: Payload) -> Result<bool, StageError> {
        let wrong = |p: Payload| StageError::WrongKind { expected: S::In::MEDIUM, got: p.medium() };
        Self::input(self, stamp, S::In::from_payload(payload).map_err(wrong)?)
    }
    fn end(&mut self) -> Result<bool, StageError> {
        Self::end(self)
    }
    fn ready(&mut self) -> Result<bool, StageError> {
        Self::ready(self)
    }
    fn is_busy(&self) -> bool {
        Self::is_busy(self)
    }
    fn fence(&mut self) -> BoxFuture<'_, Result<(), StageError>> {
        Box::pin(Self::fence(self))
    }
    fn advance(&mut self, priority: Priority) -> BoxFuture<'_, Result<Advance<Payload>, StageError>> {
        Box::pin(async move {
            let Advance { outputs, more, took } = Self::advance(self, priority).await?;
            let outputs = outputs.into_iter().map(|(stamp, x)| (stamp, x.into_payload())).collect();
            Ok(Advance { outputs, more, took })
        })
    }
    fn close(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin((*self).close())
    }
}
