//! The keys of the sections that are not nodes, and what their values may be.
//!
//! One table: a dotted path and a shape. A key that ends in `-s` or `-ms` is the same key with a bare number of that
//! unit; a key that names bytes takes a number of bytes or a size with its unit. `_` and `-` are alike.

use std::collections::HashMap;

use crate::file::de::{boolean, from_tree, integer, number};
use crate::file::secrets::{is_secret, reference};
use crate::file::{Code, Diagnostic, Tree, kebab};
use crate::pool::Limits;
use crate::units::{Dur, Size};

/// What a value may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shape {
    Text,
    Words(&'static [&'static str]),
    Flag,
    /// A whole number, at least this.
    Count(i64),
    /// A whole number from the first to the second.
    Range(i64, i64),
    /// Any whole number.
    Int,
    /// A number, at least this, at most that.
    Number(f64, f64),
    /// A duration above zero.
    Time,
    /// A duration, zero allowed.
    TimeFrom0,
    /// A duration above zero, or nothing.
    TimeOrOff,
    /// Bytes, above zero.
    Bytes,
    List,
    Any,
}
use Shape::*;

/// Every key of `session`, `serve`, `scheduler` and `placement`.
const SECTION_KEYS: &[(&str, Shape)] = &[
    ("session.mode", Words(&["turn", "duplex"])),
    ("session.max-sessions", Count(1)),
    ("session.idle-ttl", TimeOrOff),
    ("session.disconnect-grace", Time),
    ("session.reaper-interval", Time),
    ("session.resume-replay-ttl", Time),
    ("session.resume-replay-max-bytes", Bytes),
    ("session.max-pending-input-bytes", Bytes),
    ("session.max-pending-commits", Count(1)),
    ("session.max-pending-output-bytes", Bytes),
    ("session.max-pending-output-events", Count(1)),
    ("session.output-reserve-bytes", Bytes),
    ("session.output-reserve-events", Count(1)),
    ("session.max-silence-units", Count(0)),
    ("session.history-check.max-bytes", Bytes),
    ("session.history-check.max-answers", Count(1)),
    ("session.history-check.budget", Time),
    ("session.video.max-frames", Count(1)),
    ("session.video.max-frame-chars", Count(1)),
    ("session.video.max-pixels", Count(1)),
    ("session.warmup-units", Int),
    ("session.short-acks", List),
    ("session.overlap.short-ack", TimeFrom0),
    ("session.overlap.barge-in", TimeFrom0),
    ("session.overlap.silence-rms", Number(0.0, f64::MAX)),
    ("session.vad.threshold", Number(0.150_000_001, 1.0)),
    ("session.vad.prefix-padding", TimeFrom0),
    ("session.vad.silence-duration", TimeFrom0),
    ("session.vad.min-speech-duration", TimeFrom0),
    ("session.vad.model-path", Text),
    ("session.max-utterance", Time),
    ("session.capabilities", Any),
    ("serve.listen", Text),
    ("serve.routes", List),
    ("serve.allow-anonymous", Flag),
    ("serve.api-keys", List),
    ("serve.allowed-origins", List),
    ("serve.allowed-media-path", Text),
    ("serve.metrics.listen", Text),
    ("serve.front-ends", Count(1)),
    ("serve.init-timeout", Time),
    ("serve.drain", Time),
    ("serve.write-stall", Time),
    ("serve.realtime.max-message-bytes", Bytes),
    ("serve.realtime.max-frame-bytes", Bytes),
    ("serve.realtime.first-message", Time),
    ("serve.realtime.idle-timeout", Time),
    ("serve.realtime.ping", TimeFrom0),
    ("serve.realtime.missed-pongs", Count(1)),
    ("serve.realtime.default-input-rate-hz", Range(8_000, 48_000)),
    ("serve.realtime.default-turn-detection", Words(&["none", "server_vad"])),
    ("serve.realtime.close-drain", Time),
    ("serve.speech.batch-max-items", Count(1)),
    ("serve.speech.max-instructions-chars", Count(1)),
    ("serve.speech-ws.first-message", Time),
    ("serve.speech-ws.idle", Time),
    ("serve.speech-ws.max-config-bytes", Bytes),
    ("serve.speech-ws.max-message-bytes", Bytes),
    ("serve.voices.max-bytes", Bytes),
    ("serve.voices.max-uploaded", Count(1)),
    ("serve.voices.policy", Words(&["overwrite", "immutable"])),
    ("serve.voices.cache-bytes", Bytes),
    ("serve.voices.dir", Text),
    ("serve.voices.precomputed-dir", Text),
    ("serve.transcriptions.max-bytes", Bytes),
    ("serve.media.max-bytes", Bytes),
    ("serve.media.timeout", Time),
    ("serve.media.max-redirects", Count(0)),
    ("serve.video-chat.first-message", Time),
    ("serve.video-chat.idle", Time),
    ("serve.video-chat.max-frame-bytes", Bytes),
    ("serve.video-chat.max-audio-bytes", Bytes),
    ("serve.video-chat.queue", Count(1)),
    ("serve.video-out.first-message", Time),
    ("serve.video-out.stall", Time),
    ("serve.video-out.max-start-bytes", Bytes),
    ("serve.video-out.max-control-bytes", Bytes),
    ("serve.videos.max-upload-bytes", Bytes),
    ("serve.videos.max-mask-bytes", Bytes),
    ("serve.storage.path", Text),
    ("serve.storage.dir", Text),
    ("serve.storage.file-concurrency", Count(1)),
    ("serve.storage.file-ttl", TimeOrOff),
    ("serve.storage.sweep", Time),
    ("serve.storage.ttl-sweep-interval", Time),
    ("serve.openpi.max-message-bytes", Bytes),
    ("serve.openpi.idle", Time),
    ("scheduler.starvation-picks", Count(1)),
    ("scheduler.starvation", Time),
    ("placement.heartbeat", Time),
];

/// Those that nothing acts on yet, and all below them; `serve.front-ends` may say that it is one.
const NOT_YET: [&str; 17] = [
    "session.history-check",
    "session.video",
    "session.warmup-units",
    "session.vad.model-path",
    "session.max-utterance",
    "serve.allowed-media-path",
    "serve.init-timeout",
    "serve.voices.cache-bytes",
    "serve.voices.precomputed-dir",
    "serve.media",
    "serve.video-chat",
    "serve.video-out",
    "serve.videos",
    "serve.storage",
    "serve.openpi",
    "placement",
    "serve.realtime.close-drain",
];

/// Keys of `chunk`, per output port or for all.
const CHUNK_KEYS: &[(&str, Shape)] = &[
    ("size", Count(1)),
    ("initial", Count(0)),
    ("ramp", List),
    ("adaptive", Flag),
    ("min", Count(1)),
    ("margin", TimeFrom0),
    ("divisor", Count(1)),
    ("delta-min", Count(1)),
    ("factor", Number(1.0, f64::MAX)),
    ("max", Count(1)),
    ("rtf", Number(0.0, f64::MAX)),
];

/// What may stand in a part of a graph file.
pub(crate) struct Table {
    keys: &'static [(&'static str, Shape)],
    /// Those that are only known, with all below them: refused as not there yet.
    not_yet: &'static [&'static str],
}
/// `session`, `serve`, `scheduler` and `placement`.
pub(crate) const SECTIONS: Table = Table { keys: SECTION_KEYS, not_yet: &NOT_YET };
/// `chunk` of a node.
pub(crate) const CHUNK: Table = Table { keys: CHUNK_KEYS, not_yet: &[] };

/// Checks the keys below `prefix` against `table`; an empty prefix is the table's top.
pub(crate) fn check(tree: &Tree, prefix: &str, table: &Table, out: &mut Vec<Diagnostic>) {
    let keys = table.keys;
    let Some(entries) = tree.as_map() else {
        if !tree.is_null() {
            let d = Diagnostic::error(Code::WrongType, tree.span, format!("found {}, needs a map", tree.shape()));
            out.push(d.hint("write `{ key: value }`"));
        }
        return;
    };
    let mut seen: HashMap<String, crate::Span> = HashMap::new();
    for e in entries {
        let key = kebab(&e.key);
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        let leaf = |p: &str| keys.iter().find(|(k, _)| *k == p).map(|(_, s)| *s);
        let (path, shape, scale) = match leaf(&path) {
            Some(s) => (path, Some(s), None),
            None => match bare(&path).and_then(|(p, ms)| leaf(p).filter(is_time).map(|s| (p, s, ms))) {
                Some((p, s, ms)) => (p.to_owned(), Some(s), Some(ms)),
                None => (path, None, None),
            },
        };
        if let Some(first) = seen.get(&path) {
            let d = Diagnostic::error(Code::DuplicateKey, e.key_span, format!("`{}` is given twice", e.key));
            out.push(d.label(*first, "first given here").hint("remove one of them"));
            continue;
        }
        seen.insert(path.clone(), e.key_span);
        if is_secret(&key) {
            secret(&e.key, &e.value, out);
        }
        match shape {
            // The reference's `--log-stats`: metrics on or off, or more exactly.
            None if path == "serve.metrics" && e.value.as_text().is_some() => {
                out.extend(fits(&e.value, &e.key, Flag, None));
            }
            Some(s) => {
                let wrong = fits(&e.value, &e.key, s, scale);
                let below = |k: &str| path.strip_prefix(k).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
                if wrong.is_none() && table.not_yet.iter().any(|k| below(k)) {
                    let d = Diagnostic::error(Code::NotYet, e.key_span, format!("`{path}` is not on this place yet"));
                    out.push(d.hint("this version does not act on it; leave the key out"));
                }
                out.extend(wrong);
            }
            None if keys.iter().any(|(k, _)| k.strip_prefix(path.as_str()).is_some_and(|r| r.starts_with('.'))) => {
                check(&e.value, &path, table, out);
            }
            None => {
                let start = if prefix.is_empty() { String::new() } else { format!("{prefix}.") };
                let known = keys.iter().filter_map(|(k, _)| k.strip_prefix(start.as_str())?.split('.').next());
                let mut known: Vec<&str> = known.collect();
                known.dedup();
                let whose = if prefix.is_empty() { String::new() } else { format!(" in `{prefix}`") };
                let d = Diagnostic::error(Code::UnknownKey, e.key_span, format!("unknown key `{}`{whose}", e.key));
                out.push(d.nearest(&e.key, known));
            }
        }
    }
}

/// Refuses literal secrets, in lists too.
pub(crate) fn secret(key: &str, value: &Tree, out: &mut Vec<Diagnostic>) {
    if let Some(items) = value.as_seq() {
        items.iter().for_each(|t| secret(key, t, out));
    } else if value.as_text().is_some_and(|t| reference(t).is_none()) {
        let name = kebab(key).replace('-', "_").to_uppercase();
        let d = Diagnostic::error(Code::Secret, value.span, format!("`{key}` holds a secret as text"));
        out.push(d.hint(format!("write `{key}: ${{env:{name}}}` and set that variable")));
    }
}

fn is_time(s: &Shape) -> bool {
    matches!(s, Time | TimeFrom0 | TimeOrOff)
}

/// The key without its unit; true for milliseconds.
fn bare(path: &str) -> Option<(&str, bool)> {
    path.strip_suffix("-ms").map(|p| (p, true)).or_else(|| path.strip_suffix("-s").map(|p| (p, false)))
}

/// What is wrong with a value. `bare` is set when the key carries the unit.
pub(crate) fn fits(t: &Tree, key: &str, shape: Shape, bare: Option<bool>) -> Option<Diagnostic> {
    let wrong = |m: String| Diagnostic::error(Code::WrongType, t.span, m);
    let range = |m: String| Diagnostic::error(Code::OutOfRange, t.span, m);
    if t.is_null() {
        return match shape {
            TimeOrOff | Any => None,
            _ => {
                Some(wrong(format!("`{key}` has no value")).hint("give a value, or leave the key out for its default"))
            }
        };
    }
    match shape {
        Any => None,
        List => t
            .as_seq()
            .is_none()
            .then(|| wrong(format!("`{key}` takes a list, found {}", t.shape())).hint("write `[a, b]`")),
        _ if t.as_text().is_none() => {
            Some(wrong(format!("`{key}` takes one value, found {}", t.shape())).hint("write `key: value`"))
        }
        Text => None,
        Flag => boolean(t.as_text()?).is_none().then(|| from_tree::<bool>(t).err()).flatten(),
        Words(words) => {
            let word = t.as_text()?;
            (!words.contains(&word)).then(|| {
                wrong(format!("`{word}` is no value of `{key}`"))
                    .hint(format!("allowed: {}", crate::file::ticks(words)))
            })
        }
        Int => from_tree::<i64>(t).err(),
        Count(min) => count(t, key, min, i64::MAX),
        Range(min, max) => count(t, key, min, max),
        Number(min, max) => match from_tree::<f64>(t) {
            Err(d) => Some(d),
            Ok(x) if x < min || x > max => {
                let upper = if max < f64::MAX { format!(" and at most {max}") } else { String::new() };
                let low = if min == 0.150_000_001 { "more than 0.15".to_owned() } else { format!("at least {min}") };
                Some(range(format!("`{key}: {x}` is out of range")).hint(format!("it is {low}{upper}")))
            }
            Ok(_) => None,
        },
        Bytes => {
            let n = match integer(t.as_text()?) {
                Some(n) => n,
                None => match from_tree::<Size>(t) {
                    Ok(n) => i128::from(n.0),
                    Err(d) => return Some(d.hint("write bytes as a whole number, or a size such as `4MiB`")),
                },
            };
            (n < 1).then(|| range(format!("`{key}` is {n}")).hint("it is at least 1"))
        }
        Time | TimeFrom0 | TimeOrOff => time(t, key, shape, bare),
    }
}

fn count(t: &Tree, key: &str, min: i64, max: i64) -> Option<Diagnostic> {
    match from_tree::<i64>(t) {
        Err(d) => Some(d),
        Ok(n) if n < min || n > max => {
            let upper = if max < i64::MAX { format!(" and at most {max}") } else { String::new() };
            let d = Diagnostic::error(Code::OutOfRange, t.span, format!("`{key}` is {n}"));
            Some(d.hint(format!("it is at least {min}{upper}")))
        }
        Ok(_) => None,
    }
}

fn time(t: &Tree, key: &str, shape: Shape, bare: Option<bool>) -> Option<Diagnostic> {
    let positive = shape != TimeFrom0;
    let range = |m: String| Diagnostic::error(Code::OutOfRange, t.span, m);
    let zero = match bare {
        Some(_) => match from_tree::<f64>(t) {
            Err(d) => return Some(d),
            Ok(x) if x < 0.0 => return Some(range(format!("`{key}` is {x}")).hint("it is not negative")),
            Ok(x) => x == 0.0,
        },
        None => match from_tree::<Dur>(t) {
            Ok(d) => d.0.is_zero(),
            Err(d) if number(t.as_text()?).is_some_and(|x| x < 0.0) || t.as_text()?.starts_with('-') => {
                return Some(Diagnostic { code: Code::OutOfRange, ..d }.hint("a duration is not negative"));
            }
            Err(d) => return Some(d),
        },
    };
    (positive && zero).then(|| range(format!("`{key}` is zero")).hint("it is above zero"))
}

/// The bounds of `scheduler`, if the file gives any. What is wrong with them was said before.
pub(super) fn scheduler(root: &Tree) -> Option<Limits> {
    let section = root.get("scheduler")?;
    let own = Limits::default();
    let picks = section.get("starvation-picks").and_then(|t| from_tree::<u64>(t).ok());
    let age = duration(section, "starvation");
    (picks.is_some() || age.is_some())
        .then(|| Limits { picks: picks.unwrap_or(own.picks), age: age.unwrap_or(own.age) })
}

/// The duration at a key or at the same key with `-s` or `-ms`, once [`check`] has passed.
pub(crate) fn duration(section: &Tree, key: &str) -> Option<std::time::Duration> {
    if let Some(t) = section.get(key) {
        return from_tree::<Dur>(t).ok().map(|d| d.0);
    }
    let of = |suffix: &str, unit: f64| {
        let x = number(section.get(&format!("{key}-{suffix}"))?.as_text()?)?;
        std::time::Duration::try_from_secs_f64(x * unit).ok()
    };
    of("s", 1.0).or_else(|| of("ms", 0.001))
}
