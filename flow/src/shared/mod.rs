//! Shared stages: one model, many sessions.
//!
//! A [`Stage`] holds what is the same for all (the weights); a *slot* holds what belongs to one stream (a cache, a
//! decoder's left context). A session leases a slot ([`StageHandle::lease`]) and asks for one bounded *unit* of work at
//! a time ([`Leased::advance`]), when its output has room. Units of several sessions run together in batches, on the
//! compute pool, in the order of [`crate::pool::Order`].
//!
//! Who owns a slot's state decides everything else: the session between units, the stage during one. The lease travels
//! inside the state and is given back by its drop, wherever that happens, so a slot can only be leased again after the
//! stage has let go of it. A panic costs the state it happened in and nothing else.

mod batch;
mod config;
mod erased;
mod handle;
mod leased;
mod member;
mod queue;
mod slots;
mod stage;

pub use batch::{Batcher, Readiness};
pub use config::{StageConfig, StageStats};
pub use erased::{AnyLeased, AnyStage};
pub use handle::StageHandle;
pub use leased::{Advance, Leased};
pub use member::{Batch, Member};
pub use slots::{LeaseError, SlotId, SlotStats};
pub use stage::{Stage, StageError};

#[cfg(all(test, not(omni_loom)))]
mod tests;
