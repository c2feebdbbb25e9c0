//! What flows over each edge: declared kinds, `like` outputs followed through the graph, and mismatches.

use super::check::Check;
use super::cycle;
use super::edge::Wire;
use super::node::Draft;
use crate::file::{Code, Diagnostic};
use crate::{Kind, Medium};

/// The kind of each output; `None` where the node's options could not be read.
pub(super) struct Kinds(Vec<Vec<Option<Kind>>>);

impl Kinds {
    pub fn unknown(drafts: &[Draft<'_>]) -> Self {
        Self(drafts.iter().map(|d| vec![None; d.schema.as_ref().map_or(0, |s| s.outputs.len())]).collect())
    }
    pub fn output(&self, at: (usize, usize)) -> Option<Kind> {
        self.0.get(at.0)?.get(at.1)?.clone()
    }
}

/// Follows kinds from sources to ends, and reports each edge whose ends do not agree.
pub(super) fn resolve(c: &mut Check<'_>, drafts: &[Draft<'_>], wires: &[Wire]) -> Kinds {
    let mut kinds = Kinds::unknown(drafts);
    for n in cycle::order(drafts.len(), wires) {
        let Some(schema) = drafts[n].schema.as_ref().filter(|_| drafts[n].configured.is_some()) else { continue };
        for (p, port) in schema.outputs.iter().enumerate() {
            kinds.0[n][p] = match port.like.as_deref().and_then(|l| schema.find_input(l)) {
                None => Some(port.kind.clone()),
                Some(i) => match wires.iter().find(|w| w.to == (n, i)) {
                    None => Some(port.kind.clone()),
                    Some(w) => kinds.output(w.from).map(|fed| like(&port.kind, &fed, &schema.inputs[i].kind)),
                },
            };
        }
    }
    for w in wires {
        let (Some(gives), Some(takes)) = (kinds.output(w.from), drafts[w.to.0].input_kind(w.to.1)) else { continue };
        if gives.feeds(&takes) {
            continue;
        }
        let (a, b) = (&drafts[w.from.0], &drafts[w.to.0]);
        let name = |d: &Draft<'_>, ports: usize, port: &str| {
            if ports > 1 { format!("{}.{port}", d.name) } else { d.name.to_owned() }
        };
        let (Some(sa), Some(sb)) = (&a.schema, &b.schema) else { continue };
        let from = name(a, sa.outputs.len(), &sa.outputs[w.from.1].name);
        let to = name(b, sb.inputs.len(), &sb.inputs[w.to.1].name);
        let m = format!("`{to}` takes {takes}, `{from}` gives {gives}");
        let d = Diagnostic::error(Code::KindMismatch, w.span, m);
        c.out.push(d.hint(hint(c, &gives, &takes, &from)));
    }
    kinds
}

/// What an output gives that is like an input: the kind that feeds it, with what either port says more exactly.
fn like(own: &Kind, fed: &Kind, input: &Kind) -> Kind {
    let base = if fed.medium == Medium::Any { input } else { fed };
    if own.medium != Medium::Any && own.medium != base.medium {
        return own.clone();
    }
    Kind {
        medium: base.medium,
        rate: own.rate.or(base.rate).or(input.rate),
        channels: own.channels.or(base.channels).or(input.channels),
        sample: own.sample.or(base.sample).or(input.sample),
        codec: own.codec.clone().or_else(|| base.codec.clone()).or_else(|| input.codec.clone()),
    }
}

/// The converter to put between, and how.
fn hint(c: &Check<'_>, gives: &Kind, takes: &Kind, from: &str) -> String {
    use Medium::*;
    let between =
        |name: &str, more: String| format!("put `{name}` between them: `{{ use: {name}{more}, in: {from} }}`");
    let codec = |k: &Kind| k.codec.clone().unwrap_or_else(|| "opus".to_owned());
    match (gives.medium, takes.medium) {
        (Audio, Audio) if takes.rate.is_some() && gives.rate != takes.rate => {
            between("audio.resample", takes.rate.map_or(String::new(), |r| format!(", rate: {r}")))
        }
        (Audio, Audio) if takes.channels.is_some() && gives.channels != takes.channels => {
            let rate = takes.rate.or(gives.rate).map_or(String::new(), |r| format!(", rate: {r}"));
            between("audio.resample", format!("{rate}, channels: {}", takes.channels.unwrap_or(1)))
        }
        (Audio, Audio) => "put `audio.frame` between them, or let the producer give what the consumer takes".to_owned(),
        (Audio, Packet) => between(&format!("audio.{}-encode", codec(takes)), String::new()),
        (Packet, Audio) => between(&format!("audio.{}-decode", codec(gives)), String::new()),
        (Audio, Text) => "put a recogniser such as `model.whisper` between them".to_owned(),
        (Text, Audio) => "put a speech model such as `model.talker` with `model.code2wav` between them".to_owned(),
        _ => {
            // Any type that takes the one and gives the other.
            let fits = c.registry.iter().find(|(_, s)| {
                s.inputs.len() == 1
                    && s.outputs.len() == 1
                    && s.inputs[0].kind.medium == gives.medium
                    && s.outputs[0].kind.medium == takes.medium
                    && gives.feeds(&s.inputs[0].kind)
                    && s.outputs[0].kind.feeds(takes)
            });
            match fits {
                Some((name, _)) => between(name, String::new()),
                None => format!("no known node makes {} out of {}", takes.medium.name(), gives.medium.name()),
            }
        }
    }
}
