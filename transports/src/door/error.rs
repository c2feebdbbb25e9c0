//! HTTP errors in the shape of the stock API.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::gate::GateError;

/// An answer other than success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpError {
    status: StatusCode,
    message: String,
    param: Option<String>,
}

impl HttpError {
    /// 404.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, message: message.into(), param: None }
    }
    /// 503: later, perhaps.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self { status: StatusCode::SERVICE_UNAVAILABLE, message: message.into(), param: None }
    }
    /// 404 of a route that the graph does not bind.
    pub fn not_bound(name: &str) -> Self {
        Self::not_found(format!("{name} is not available"))
    }
    /// The same, about one parameter.
    #[must_use]
    pub fn about(self, param: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..self }
    }
    fn kind(&self) -> &'static str {
        match self.status {
            StatusCode::UNAUTHORIZED => "AuthenticationError",
            StatusCode::FORBIDDEN => "PermissionDeniedError",
            StatusCode::NOT_FOUND => "NotFoundError",
            StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailableError",
            _ => "BadRequestError",
        }
    }
}

impl From<GateError> for HttpError {
    fn from(e: GateError) -> Self {
        let status = match e {
            GateError::Key => StatusCode::UNAUTHORIZED,
            GateError::Origin(_) => StatusCode::FORBIDDEN,
        };
        Self { status, message: e.to_string(), param: None }
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let body = json!({"error": {
            "message": self.message, "type": self.kind(), "param": self.param, "code": self.status.as_u16()}});
        (self.status, Json(body)).into_response()
    }
}
