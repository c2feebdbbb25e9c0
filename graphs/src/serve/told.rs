//! What a server tells whoever started it.

use std::net::SocketAddr;
use std::time::Duration;

use omni_flow::Graph;
use serde_json::json;

use crate::cli::RunArgs;
use crate::output;
use crate::run::say;

/// It serves now.
pub fn ready(args: &RunArgs, graph: &Graph, at: SocketAddr, secure: bool, fingerprint: Option<&str>, took: Duration) {
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
    let mut text = format!("ready in {:.2} s, {max} conversations at once\n\n", took.as_secs_f64());
    text += &format!("  talk in the browser   {http}://{shown}\n");
    text += &format!("  Realtime clients      {ws}://{shown}/v1/realtime\n");
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
