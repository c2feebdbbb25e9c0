//! The one door to threads' primitives: `std`, or `loom` when a model is being checked (`--cfg omni_loom`).
//!
//! Locks do not poison here: a panic is confined to one node, and the state under each lock is valid between any two
//! statements, so the next holder may go on.

#[cfg(omni_loom)]
pub(crate) use loom::sync::{Arc, Condvar, MutexGuard, atomic};
#[cfg(not(omni_loom))]
pub(crate) use std::sync::{Arc, Condvar, MutexGuard, atomic};

/// A lock that does not poison.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(Inner<T>);

#[cfg(omni_loom)]
type Inner<T> = loom::sync::Mutex<T>;
#[cfg(not(omni_loom))]
type Inner<T> = std::sync::Mutex<T>;

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Inner::new(value))
    }
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Takes the lock.
pub(crate) fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock()
}
/// Sleeps until notified.
pub(crate) fn wait<'a, T>(c: &Condvar, g: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    c.wait(g).unwrap_or_else(std::sync::PoisonError::into_inner)
}
