//! Fetching over HTTP into a part file: goes on where an earlier try stopped.
//!
//! Runs on a thread and a small runtime of its own, so that it may be called from anywhere.

use super::cache::Part;
use super::{Event, FetchError, FetchOptions, Progress};
use reqwest::{StatusCode, header};
use std::time::Duration;

/// Tries that each brought the file further.
const TRIES: u32 = 20;

/// Appends the rest of `url` to `part`. With `size`, neither more nor less is accepted.
pub(crate) fn fetch(
    url: &str,
    size: Option<u64>,
    part: &mut Part,
    name: &str,
    options: &FetchOptions,
    progress: &dyn Progress,
) -> Result<(), FetchError> {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| network(url, e))?;
        runtime.block_on(tries(url, size, part, name, options, progress))
    };
    std::thread::scope(|s| s.spawn(run).join()).unwrap_or_else(|_| Err(network(url, "the fetching thread died")))
}

async fn tries(
    url: &str,
    size: Option<u64>,
    part: &mut Part,
    name: &str,
    options: &FetchOptions,
    progress: &dyn Progress,
) -> Result<(), FetchError> {
    let client = reqwest::Client::builder()
        .connect_timeout(options.connect_timeout)
        .read_timeout(options.stall_timeout)
        .user_agent(concat!("omni-flow/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|e| network(url, reason(&e)))?;
    let mut attempt = 1;
    loop {
        let before = part.len;
        let result = once(&client, url, size, part, name, progress).await;
        match result {
            // A connection that never stood will not stand in a second either; one that broke may.
            Err(FetchError::Network { .. } | FetchError::Size { .. }) if attempt < TRIES && part.len > before => {}
            other => return other,
        }
        tokio::time::sleep(Duration::from_millis(200) * attempt.min(10)).await;
        attempt += 1;
    }
}

async fn once(
    client: &reqwest::Client,
    url: &str,
    size: Option<u64>,
    part: &mut Part,
    name: &str,
    progress: &dyn Progress,
) -> Result<(), FetchError> {
    if size.is_some_and(|s| part.len > s) {
        part.restart()?;
    }
    if part.len > 0 && size == Some(part.len) {
        return Ok(());
    }
    let mut request = client.get(url).header(header::ACCEPT_ENCODING, "identity");
    if part.len > 0 {
        request = request.header(header::RANGE, format!("bytes={}-", part.len));
    }
    let mut response = request.send().await.map_err(|e| network(url, reason(&e)))?;
    match response.status() {
        StatusCode::PARTIAL_CONTENT if range_start(&response) == Some(part.len) => {}
        // The range does not fit what is there: begin again without one.
        StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE if part.len > 0 => {
            part.restart()?;
            response = client.get(url).send().await.map_err(|e| network(url, reason(&e)))?;
            if response.status() != StatusCode::OK {
                return Err(FetchError::Http { url: url.to_owned(), status: response.status().as_u16() });
            }
        }
        StatusCode::OK => part.restart()?,
        status => return Err(FetchError::Http { url: url.to_owned(), status: status.as_u16() }),
    }
    let total = size.or_else(|| response.content_length().map(|n| n + part.len));
    progress.event(Event::Begin { file: name, total, have: part.len });
    loop {
        if progress.cancelled() {
            return Err(FetchError::Cancelled);
        }
        // What has arrived before a failure is kept.
        let Some(chunk) = response.chunk().await.map_err(|e| network(url, reason(&e)))? else { break };
        part.write(&chunk)?;
        progress.event(Event::At { file: name, done: part.len });
        if size.is_some_and(|s| part.len > s) {
            let got = part.len;
            part.restart()?;
            return Err(FetchError::Size { url: url.to_owned(), got, expected: size.unwrap_or(0) });
        }
    }
    match total {
        Some(expected) if expected != part.len => {
            Err(FetchError::Size { url: url.to_owned(), got: part.len, expected })
        }
        _ => Ok(()),
    }
}

/// First byte of a `Content-Range: bytes 5-9/10`.
fn range_start(response: &reqwest::Response) -> Option<u64> {
    let value = response.headers().get(header::CONTENT_RANGE)?.to_str().ok()?;
    value.strip_prefix("bytes ")?.split_once('-')?.0.trim().parse().ok()
}

fn network(url: &str, reason: impl ToString) -> FetchError {
    FetchError::Network { url: url.to_owned(), reason: reason.to_string() }
}

/// The innermost cause: the outer ones repeat the address.
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
