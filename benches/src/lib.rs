//! What the measurements share: clocks, medians, and the smallest nodes there can be.
//!
//! These machines are shared and noisy: every figure is a median of several rounds, and stands beside a floor measured
//! in the same round.

use std::time::Duration;

use omni_flow::*;
use serde::Deserialize;

/// CPU time that this process has used, all threads.
pub fn cpu() -> Duration {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid, writable timespec for the length of the call.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut t) };
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// Resident memory of this process, bytes; 0 where `/proc` is missing.
pub fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|p| p.parse::<u64>().ok()).unwrap_or(0) * 4096
}

/// The most memory that this process ever had resident, bytes; 0 where `/proc` is missing.
pub fn resident_peak() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// The middle value.
pub fn median(mut v: Vec<f64>) -> f64 {
    v.sort_by(f64::total_cmp);
    v.get(v.len() / 2).copied().unwrap_or(f64::NAN)
}

/// No options.
#[derive(Deserialize)]
pub struct NoConfig {}

/// A step that passes everything on.
pub struct Pass;

impl Step for Pass {
    type In = Payload;
    type Out = Payload;
    fn step(&mut self, stamp: &Stamp, x: Payload, out: &mut Emit<Payload>) -> Result<(), StepError> {
        out.push(*stamp, x);
        Ok(())
    }
}
impl Make for Pass {
    const NAME: &'static str = "bench.pass";
    type Config = NoConfig;
    fn schema() -> Schema {
        Schema::new("passes everything on")
            .input(Port::new("in", Kind::of(Medium::Any), "anything"))
            .output(Port::new("out", Kind::of(Medium::Any), "the same").like("in"))
            .example("x: { use: bench.pass, in: y }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::step(|| Pass))
    }
}

/// A shared stage that answers each chunk with itself.
pub struct Mock;

impl shared::Stage for Mock {
    type In = Payload;
    type Out = Payload;
    type Slot = Option<(Stamp, Payload)>;
    fn open(&self, _: shared::SlotId) -> Result<Self::Slot, shared::StageError> {
        Ok(None)
    }
    fn slot_bytes(&self, _: &Self::Slot) -> u64 {
        0
    }
    fn accept(&self, slot: &mut Self::Slot, stamp: &Stamp, input: Payload) -> Result<(), shared::StageError> {
        *slot = Some((*stamp, input));
        Ok(())
    }
    fn ready(&self, slot: &Self::Slot) -> bool {
        slot.is_some()
    }
    fn unit(&self, m: &mut shared::Member<Self>) -> Result<(), shared::StageError> {
        if let Some((stamp, x)) = m.slot().take() {
            m.emit(stamp, x);
        }
        Ok(())
    }
    fn fence(&self, slot: &mut Self::Slot) {
        *slot = None;
    }
}
impl Make for Mock {
    const NAME: &'static str = "bench.mock";
    type Config = NoConfig;
    fn schema() -> Schema {
        Schema::new("a shared stage that does nothing")
            .input(Port::new("in", Kind::of(Medium::Any), "anything"))
            .output(Port::new("out", Kind::of(Medium::Any), "the same").like("in"))
            .shared()
            .example("x: { use: bench.mock, in: y, place: shared }")
    }
    fn build(_: &NoConfig, _: &BuildCx) -> Result<Body, BuildError> {
        Ok(Body::stage(Mock))
    }
}

/// A checked plan of a YAML text over the nodes of this crate.
///
/// # Panics
/// With all findings if the text is wrong.
pub fn plan(yaml: &str) -> Plan {
    let mut r = Registry::base();
    r.add::<Pass>().and_then(|r| r.add::<Mock>()).unwrap_or_else(|e| panic!("{e}"));
    let file = GraphFile::parse("bench.yaml", yaml).unwrap_or_else(|d| panic!("{d}"));
    file.check(&r, &CheckCx::default()).unwrap_or_else(|d| panic!("{d}")).0
}

/// A chain of `n` steps between the client's ends, on audio of 16 kHz.
pub fn chain(n: usize, extra: &str) -> String {
    let mut y = format!(
        "graph: chain\nsession: {{ mode: turn }}\n{extra}nodes:\n  mic: {{ use: session.in, audio: {{ rate: 16000 }} }}\n"
    );
    let mut before = "mic".to_owned();
    for i in 0..n {
        y += &format!("  n{i}: {{ use: bench.pass, in: {before} }}\n");
        before = format!("n{i}");
    }
    y + &format!("  out: {{ use: session.out, in: {{ from: {before}, window: {{ span: 500ms }} }} }}\n")
}
