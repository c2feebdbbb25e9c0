//! What a server tells whoever started it.

use std::net::SocketAddr;
use std::time::Duration;

use omni_flow::Graph;
use omni_flow_transports::api::Ends;
use serde_json::json;

use crate::cli::RunArgs;
use crate::output;
use crate::run::say;

/// It serves now, and `talks` over the Realtime protocol or only answers requests.
pub fn ready(
    args: &RunArgs,
    graph: &Graph,
    (at, talks): (SocketAddr, bool),
    secure: bool,
    fingerprint: Option<&str>,
    took: Duration,
) {
    let (http, ws) = if secure { ("https", "wss") } else { ("http", "ws") };
    let plan = graph.plan();
    let shown = shown(at);
    if args.json {
        let mut line = json!({"event": "serving", "graph": plan.name, "url": format!("{http}://{shown}"),
            "started_s": took.as_secs_f64(), "max_sessions": plan.session.max_sessions});
        if let Some(f) = fingerprint {
            line["certificate_sha256"] = f.into();
        }
        return output::json_line(&line);
    }
    let max = plan.session.max_sessions;
    let what = if talks { "conversations" } else { "requests" };
    let mut text = format!("ready in {:.2} s, {max} {what} at once\n\n", took.as_secs_f64());
    if talks {
        text += &format!("  talk in the browser   {http}://{shown}\n");
        text += &format!("  Realtime clients      {ws}://{shown}/v1/realtime\n");
    }
    let Ends { speech, transcription, chat } = Ends::of(plan);
    let bound = [
        (speech.is_some(), "speech of text", "POST /v1/audio/speech"),
        (transcription.is_some(), "text of speech", "POST /v1/audio/transcriptions"),
        (chat.is_some(), "answers", "POST /v1/chat/completions"),
    ];
    for (_, what, route) in bound.iter().filter(|(there, ..)| *there) {
        let (method, path) = route.split_once(' ').unwrap_or(("", route));
        text += &format!("  {what:<21} {http}://{shown}{path} ({method})\n");
    }
    if bound.iter().any(|(there, ..)| *there) {
        text += &format!("  all routes            {http}://{shown}/openapi.json\n");
    }
    text += &format!("  health and metrics    {http}://{shown}/health, {http}://{shown}/metrics\n");
    if let Some(f) = fingerprint {
        text += &format!("\n  certificate for development, SHA-256:\n  {f}\n");
    }
    text += "\nCtrl-C stops it: answers under way come to their end; a second one stops at once.";
    eprintln!("{text}");
}

/// The address as a client on this machine writes it.
fn shown(at: SocketAddr) -> SocketAddr {
    let ip = match at {
        SocketAddr::V4(a) if a.ip().is_unspecified() => std::net::Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(a) if a.ip().is_unspecified() => std::net::Ipv6Addr::LOCALHOST.into(),
        other => other.ip(),
    };
    SocketAddr::new(ip, at.port())
}

/// It has been asked to stop.
pub fn stopping(args: &RunArgs, drain: Duration) {
    let limit = drain.as_secs_f64();
    say(args, &format!("stopping: answers under way end within {limit} s; Ctrl-C again stops at once"));
}

/// Nobody is left.
pub fn stopped(args: &RunArgs) {
    match args.json {
        true => output::last(format!("{}\n", json!({"event": "stopped"}))),
        false => eprintln!("stopped"),
    }
}
