//! The crate's one door to locks and atomics: std's, or loom's when a model is checked (`--cfg omni_loom`).
//!
//! Locks are taken through [`lock`] and [`wait`], which ignore poisoning: nothing in this crate runs foreign code
//! under a lock, so a poisoned one still guards whole data.

#[cfg(omni_loom)]
pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};
#[cfg(not(omni_loom))]
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};

use std::sync::PoisonError;

/// Takes the lock, poisoned or not.
pub(crate) fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}
/// Sleeps until notified, poisoned or not.
pub(crate) fn wait<'a, T>(c: &Condvar, g: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    c.wait(g).unwrap_or_else(PoisonError::into_inner)
}
