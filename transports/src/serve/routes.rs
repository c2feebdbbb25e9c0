//! All routes at one address.

use std::io;

use axum::Router;
use axum::middleware::from_fn;

use super::settings::{Metrics, Settings};
use crate::api;
use crate::door::{self, Door};

/// Everything that `settings` say is served of a graph: the door, its page if there is anybody to talk with, the routes of
/// [`api`], and `scrape` if metrics are beside them.
///
/// # Errors
/// As [`api::routes`].
pub fn routes(door: Door, settings: &Settings, scrape: Router) -> io::Result<Router> {
    let api = api::routes(&door, settings.api.clone())?;
    let page = if door.host.is_some() { door::page() } else { Router::new() };
    let router = door::router(door).merge(api).merge(page);
    let router = if settings.metrics == Metrics::Beside { router.merge(scrape) } else { router };
    Ok(router.layer(from_fn(api::observe)))
}
