//! What every response has: a request id, and a place in the counters.

use axum::extract::{MatchedPath, Request};
use axum::http::StatusCode;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::door::HttpError;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Echoes or makes `x-request-id`, counts the response, and gives refused methods the body of an error.
pub async fn observe(request: Request, next: Next) -> Response {
    let id = request.headers().get(REQUEST_ID).filter(|v| v.len() <= 128).cloned().unwrap_or_else(|| {
        let mut bytes = [0; 16];
        // Without a source of randomness an id is still an id.
        let _ = getrandom::fill(&mut bytes);
        let text = format!("req_{:032x}", u128::from_le_bytes(bytes));
        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("req_0"))
    });
    // The pattern, not the path: what clients write is no label.
    let route = request.extensions().get::<MatchedPath>().map_or("other".to_owned(), |m| m.as_str().to_owned());
    let mut response = next.run(request).await;
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        let allow = response.headers_mut().remove(axum::http::header::ALLOW);
        response = HttpError::new(StatusCode::METHOD_NOT_ALLOWED, "the route has no such method").into_response();
        if let Some(allow) = allow {
            response.headers_mut().insert(axum::http::header::ALLOW, allow);
        }
    }
    let status = response.status().as_u16().to_string();
    metrics::counter!("omni_flow_http_requests_total", "route" => route, "status" => status).increment(1);
    response.headers_mut().insert(REQUEST_ID, id);
    response
}
