//! HTTP errors in the shape of the stock API.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::gate::GateError;

/// An answer other than success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpError {
    status: StatusCode,
    message: String,
    param: Option<String>,
    /// Seconds after which another try may do.
    retry_after: Option<u32>,
}

impl HttpError {
    /// An error of this status.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), param: None, retry_after: None }
    }
    /// 400: the request is wrong, and stays so.
    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }
    /// 404.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }
    /// 503: later, perhaps.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }
    /// 404 of a route that the graph does not bind.
    pub fn not_bound(name: &str) -> Self {
        Self::not_found(format!("{name} is not available"))
    }
    /// 404 of a model that is not served.
    pub fn no_model(name: &str) -> Self {
        let shown: String = name.chars().take(64).collect();
        Self::not_found(format!("The model `{shown}` does not exist.")).about("model")
    }
    /// 413.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }
    /// 500.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }
    /// The same, about one parameter.
    #[must_use]
    pub fn about(self, param: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..self }
    }
    /// The same, with `Retry-After`.
    #[must_use]
    pub fn retry_after(self, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }
    /// Its status.
    pub fn status(&self) -> StatusCode {
        self.status
    }
    /// What it says.
    pub fn message(&self) -> &str {
        &self.message
    }
    /// The object under `error`.
    pub fn body(&self) -> Value {
        json!({"message": self.message, "type": self.kind(), "param": self.param, "code": self.status.as_u16()})
    }
    fn kind(&self) -> &'static str {
        match self.status {
            StatusCode::UNAUTHORIZED => "AuthenticationError",
            StatusCode::FORBIDDEN => "PermissionDeniedError",
            StatusCode::NOT_FOUND => "NotFoundError",
            StatusCode::CONFLICT => "ConflictError",
            StatusCode::PAYLOAD_TOO_LARGE => "PayloadTooLargeError",
            StatusCode::UNSUPPORTED_MEDIA_TYPE => "UnsupportedMediaTypeError",
            StatusCode::TOO_MANY_REQUESTS => "RateLimitError",
            StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailableError",
            StatusCode::GATEWAY_TIMEOUT => "TimeoutError",
            s if s.is_server_error() => "InternalServerError",
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
        Self::new(status, e.to_string())
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(json!({"error": self.body()}))).into_response();
        if let Some(s) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(s));
        }
        response
    }
}
