//! `/metrics`: what a recorder has, as text for Prometheus.

use std::sync::Arc;

use axum::Router;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse as _;
use axum::routing::get;

use super::error::HttpError;
use super::gate::Gate;

/// The type of the text format, version 0.0.4.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The route `/metrics`, behind `gate`. `render` gives the text.
pub fn scrape(gate: Arc<Gate>, render: impl Fn() -> String + Send + Sync + 'static) -> Router {
    let render = Arc::new(render);
    let answer = move |headers: HeaderMap| {
        let (gate, render) = (gate.clone(), render.clone());
        async move {
            match gate.admit(&headers, &[]) {
                Ok(()) => ([(CONTENT_TYPE, TEXT)], render()).into_response(),
                Err(e) => HttpError::from(e).into_response(),
            }
        }
    };
    Router::new().route("/metrics", get(answer))
}
