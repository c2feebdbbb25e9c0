//! The page: a browser's end of a served graph, at `/`.
//!
//! Plain files in this folder, embedded in the program, with no build step and no request to anybody else. They are public;
//! what they ask the server for is behind its gate. Addresses inside are relative, so that the routes can be nested.
//!
//! | file | what |
//! |---|---|
//! | `index.html`, `style.css`, `icon.svg` | what stands there |
//! | `app.js` | joins the others to the document |
//! | `conversation.js` | one conversation: turns, interruptions, what was heard of an answer |
//! | `realtime.js` | the socket: opening, coming back after a loss, events in and out |
//! | `sound.js`, `capture.js`, `playback.js`, `resample.js` | microphone and loudspeaker; the middle two run as audio worklets |
//! | `transcript.js`, `wave.js`, `timing.js` | what is seen of the conversation |
//! | `graph.js`, `layout.js`, `stats.js` | what is seen of the graph |
//! | `texts.js` | what is said when something is wrong |

use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sha2::{Digest as _, Sha256};

use crate::door::HttpError;

/// Nothing from anywhere else, nothing inline, in nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// One file of the page.
struct Asset {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
    /// Names this very content.
    tag: String,
}

macro_rules! assets {
    ($($name:literal $kind:expr;)*) => {
        [$(Asset::new($name, $kind, include_str!($name))),*]
    };
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SVG: &str = "image/svg+xml";
const JS: &str = "text/javascript; charset=utf-8";

static ASSETS: LazyLock<[Asset; 17]> = LazyLock::new(|| {
    assets! {
        "index.html" HTML;
        "style.css" CSS;
        "icon.svg" SVG;
        "app.js" JS;
        "conversation.js" JS;
        "realtime.js" JS;
        "sound.js" JS;
        "capture.js" JS;
        "playback.js" JS;
        "resample.js" JS;
        "transcript.js" JS;
        "wave.js" JS;
        "timing.js" JS;
        "graph.js" JS;
        "layout.js" JS;
        "stats.js" JS;
        "texts.js" JS;
    }
});

impl Asset {
    fn new(name: &'static str, kind: &'static str, text: &'static str) -> Self {
        let hash = Sha256::digest(text.as_bytes());
        let tag = hash[..12].iter().fold(String::from("\""), |tag, byte| format!("{tag}{byte:02x}")) + "\"";
        Self { name, kind, text, tag }
    }
    fn answer(&self, asked: &HeaderMap) -> Response {
        let known = asked.get_all(IF_NONE_MATCH).iter().filter_map(|v| v.to_str().ok()).any(|v| self.matches(v));
        let mut response = match known {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => self.text.into_response(),
        };
        let headers = response.headers_mut();
        let mut put = |name: HeaderName, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name, value);
            }
        };
        put(CONTENT_TYPE, self.kind);
        put(ETAG, &self.tag);
        // Kept, but never used unasked: a new program has a new page.
        put(CACHE_CONTROL, "no-cache");
        put(CONTENT_SECURITY_POLICY, POLICY);
        put(X_CONTENT_TYPE_OPTIONS, "nosniff");
        put(X_FRAME_OPTIONS, "DENY");
        put(REFERRER_POLICY, "no-referrer");
        put(HeaderName::from_static("permissions-policy"), "microphone=(self), camera=(), geolocation=()");
        put(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
        put(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
        response
    }
    fn matches(&self, asked: &str) -> bool {
        let tags = asked.split(',').map(|t| t.trim());
        tags.map(|t| t.strip_prefix("W/").unwrap_or(t)).any(|t| t == "*" || t == self.tag)
    }
}

/// The routes of the page: `/` and `/page/...`.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/", get(index)).route("/page/{name}", get(asset))
}

async fn index(headers: HeaderMap) -> Response {
    ASSETS[0].answer(&headers)
}

async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, HttpError> {
    // The document is at `/` alone: its addresses are relative to that.
    let found = ASSETS.iter().skip(1).find(|a| a.name == name);
    let shown = || name.chars().filter(|c| !c.is_control()).take(64).collect::<String>();
    found.map(|a| a.answer(&headers)).ok_or_else(|| HttpError::not_found(format!("/page/{} is not available", shown())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every address that a file names is a file of the page.
    #[test]
    fn files_name_each_other_and_nobody_else() {
        let mut named = 0;
        for asset in ASSETS.iter() {
            // Names of namespaces are no addresses.
            let text = asset.text.replace("http://www.w3.org/", "");
            for outside in ["http://", "https://", "//cdn", "ws://"] {
                assert!(!text.contains(outside), "{} names {outside}", asset.name);
            }
            for quoted in text.split(['"', '\'', '`']) {
                let Some(name) = quoted.strip_prefix("./").or_else(|| quoted.strip_prefix("page/")) else { continue };
                assert!(ASSETS.iter().any(|a| a.name == name), "{} names {name}", asset.name);
                named += 1;
            }
            assert!(asset.text.lines().count() <= 500, "{} is too long", asset.name);
        }
        assert!(named >= ASSETS.len() - 1, "{named}");
    }

    #[test]
    fn a_tag_is_matched_in_a_list_and_as_weak() {
        let asset = &ASSETS[0];
        let tag = asset.tag.clone();
        for asked in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
            assert!(asset.matches(&asked), "{asked}");
        }
        for asked in ["", "\"x\"", &tag[1..]] {
            assert!(!asset.matches(asked), "{asked}");
        }
        assert_ne!(ASSETS[0].tag, ASSETS[1].tag);
    }
}
