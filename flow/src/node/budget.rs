//! What reports steps that take longer than their node's `step-budget`.
//!
//! A step is one call of [`Step::step`](crate::Step::step) or `end`, one unit of a shared stage (of a batch, its share) or
//! one [`Ctx::offload`](crate::Ctx::offload). Each that exceeds the budget is counted; at most one warning per node and
//! five seconds says so. One that still runs is reported by the engine's watchdog, within half a second, as long as it
//! does not hold up the only async worker, on which the watchdog runs too. A node without the key has none of this.

use std::sync::Arc;
use std::time::Duration;

use super::StepError;
use super::any::AnyStep;
use crate::probe::NodeProbe;
use crate::sync::Mutex;
use crate::units::Dur;
use crate::{Chunk, Clock, Mono, Stamp};

/// Warnings of one node are at least this far apart.
const EVERY: Duration = Duration::from_secs(5);

/// Lets one through per period and counts the others. Pure: it is given `now`.
#[derive(Debug, Default)]
struct Alarm {
    last: Option<Mono>,
    suppressed: u64,
}

impl Alarm {
    /// How many were suppressed since the one before, if this one may pass.
    fn ring(&mut self, now: Mono) -> Option<u64> {
        if self.last.is_some_and(|t| now.since(t) < EVERY) {
            self.suppressed += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.suppressed))
    }
}

/// The budget of one node of a graph, for all its sessions.
pub(crate) struct Budget {
    /// `graph/node`
    path: String,
    limit: Duration,
    hint: &'static str,
    clock: Clock,
    alarm: Mutex<Alarm>,
}

impl Budget {
    /// `on_task`: its steps run on async workers.
    pub(crate) fn new(path: String, limit: Duration, on_task: bool, clock: Clock) -> Self {
        let hint = if on_task {
            "it holds up an async worker: write `place: pool`, or raise `step-budget`"
        } else {
            "give it smaller chunks or more processors, or raise `step-budget`"
        };
        Self { path, limit, hint, clock, alarm: Mutex::default() }
    }
    fn report(&self, took: Duration, still: bool) {
        let Some(suppressed) = self.alarm.lock().ring(self.clock.now()) else { return };
        let what = if still { "a step still runs after" } else { "a step took" };
        let more = if suppressed > 0 { format!("; {suppressed} more since the last report") } else { String::new() };
        tracing::warn!(
            node = self.path,
            took_ms = took.as_secs_f64() * 1e3,
            suppressed,
            "{}: {what} {took:?}, its budget is {}{more}; {}",
            self.path,
            Dur(self.limit),
            self.hint
        );
    }
}

/// The steps of one node that run now, in one session or in one stage.
pub(crate) struct StepWatch {
    budget: Arc<Budget>,
    running: Mutex<Running>,
}

#[derive(Default)]
struct Running {
    next: u64,
    steps: Vec<Run>,
}

struct Run {
    id: u64,
    since: Mono,
    /// Streams that it works for: each is charged with its share.
    units: u32,
    reported: bool,
}

impl StepWatch {
    pub(crate) fn new(budget: Arc<Budget>) -> Self {
        Self { budget, running: Mutex::default() }
    }
    pub(crate) fn exceeds(&self, took: Duration) -> bool {
        took > self.budget.limit
    }
    fn begin(&self, units: usize) -> u64 {
        let since = self.budget.clock.now();
        let mut r = self.running.lock();
        let id = r.next;
        r.next += 1;
        r.steps.push(Run { id, since, units: units.clamp(1, u32::MAX as usize) as u32, reported: false });
        id
    }
    /// True if the step exceeded the budget.
    fn end(&self, id: u64) -> bool {
        let now = self.budget.clock.now();
        let run = {
            let mut r = self.running.lock();
            let Some(at) = r.steps.iter().position(|s| s.id == id) else { return false };
            r.steps.swap_remove(at)
        };
        let took = now.since(run.since) / run.units;
        let over = self.exceeds(took);
        if over && !run.reported {
            self.budget.report(took, false);
        }
        over
    }
    /// Reports what has been running for too long by now, each step once.
    pub(crate) fn look(&self, now: Mono) {
        let mut late = Vec::new();
        for s in &mut self.running.lock().steps {
            let took = now.since(s.since) / s.units;
            if !s.reported && self.exceeds(took) {
                s.reported = true;
                late.push(took);
            }
        }
        late.into_iter().for_each(|took| self.budget.report(took, true));
    }
}

/// A step that runs; dropped, it has ended, well or not.
pub(crate) struct Watched {
    probe: Arc<NodeProbe>,
    id: u64,
}

impl Watched {
    /// `units` units of work begin; `None` if the node has no budget.
    pub(crate) fn begin(probe: &Arc<NodeProbe>, units: usize) -> Option<Self> {
        let id = probe.watch()?.begin(units);
        Some(Self { probe: probe.clone(), id })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if self.probe.watch().is_some_and(|w| w.end(self.id)) {
            self.probe.over_budget();
        }
    }
}

/// A step whose calls are watched.
struct WatchedStep {
    step: Box<dyn AnyStep>,
    probe: Arc<NodeProbe>,
}

/// The step, watched if its node has a budget.
pub(crate) fn watched(step: Box<dyn AnyStep>, probe: &Arc<NodeProbe>) -> Box<dyn AnyStep> {
    if probe.watch().is_some() { Box::new(WatchedStep { step, probe: probe.clone() }) } else { step }
}

impl AnyStep for WatchedStep {
    fn step(&mut self, chunk: Chunk, out: &mut Vec<Chunk>) -> Result<(), StepError> {
        let _watched = Watched::begin(&self.probe, 1);
        self.step.step(chunk, out)
    }
    fn fence(&mut self) {
        self.step.fence();
    }
    fn end(&mut self, stamp: &Stamp, out: &mut Vec<Chunk>) -> Result<(), StepError> {
        let _watched = Watched::begin(&self.probe, 1);
        self.step.end(stamp, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::SimTime;
    use proptest::prelude::*;

    proptest! {
        /// Against the rule in words: at least five seconds apart, and nothing is forgotten.
        #[test]
        fn warnings_are_far_apart_and_all_are_counted(gaps in prop::collection::vec(0u64..8_000, 1..60)) {
            let (mut alarm, mut now, mut last) = (Alarm::default(), Mono(0), None::<Mono>);
            let (mut passed, mut told) = (0u64, 0u64);
            for gap in &gaps {
                now = now.plus(Duration::from_millis(*gap));
                let due = last.is_none_or(|t| now.since(t) >= EVERY);
                let rung = alarm.ring(now);
                prop_assert_eq!(rung.is_some(), due);
                if let Some(n) = rung {
                    last = Some(now);
                    passed += 1;
                    told += n;
                }
            }
            prop_assert_eq!(passed + told + alarm.suppressed, gaps.len() as u64);
        }
    }

    fn probe(limit_ms: u64) -> (Arc<SimTime>, Arc<NodeProbe>) {
        let time = Arc::new(SimTime::default());
        let clock = Clock::sim(time.clone());
        let budget = Budget::new("g/n".to_owned(), Duration::from_millis(limit_ms), true, clock);
        (time, Arc::new(NodeProbe::new(Some(Arc::new(budget)))))
    }
    fn wait(time: &Arc<SimTime>, ms: u64) {
        let clock = Clock::sim(time.clone());
        let mut sleep = std::pin::pin!(clock.sleep(Duration::from_millis(ms)));
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        while std::future::Future::poll(sleep.as_mut(), &mut cx).is_pending() {
            time.advance();
        }
    }
    fn suppressed(p: &NodeProbe) -> (bool, u64) {
        let alarm = p.watch().unwrap().budget.alarm.lock();
        (alarm.last.is_some(), alarm.suppressed)
    }

    #[test]
    fn a_step_is_counted_once_and_reported_once() {
        let (time, p) = probe(10);
        let count = |p: &NodeProbe| p.stats("n").over_budget;
        let w = Watched::begin(&p, 1);
        wait(&time, 10);
        drop(w);
        assert_eq!((count(&p), suppressed(&p)), (0, (false, 0)), "the budget may be used up");
        let w = Watched::begin(&p, 1);
        wait(&time, 11);
        p.watch().unwrap().look(time.now());
        assert_eq!((count(&p), suppressed(&p)), (0, (true, 0)), "reported while it runs");
        p.watch().unwrap().look(time.now());
        wait(&time, 500);
        drop(w);
        assert_eq!((count(&p), suppressed(&p)), (1, (true, 0)), "counted at its end, not reported again");
        let w = Watched::begin(&p, 1);
        wait(&time, 11);
        drop(w);
        assert_eq!((count(&p), suppressed(&p)), (2, (true, 1)), "soon after: counted, not said");
        let w = Watched::begin(&p, 4);
        wait(&time, 40);
        p.watch().unwrap().look(time.now());
        drop(w);
        assert_eq!(count(&p), 2, "a batch of four has four budgets");
        assert!(p.watch().unwrap().running.lock().steps.is_empty());
        let gone = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _w = Watched::begin(&p, 1);
            wait(&time, 6_000);
            std::panic::panic_any("told to");
        }));
        assert!(gone.is_err());
        assert_eq!((count(&p), suppressed(&p)), (3, (true, 0)), "a step that panics is a step");
    }

    #[test]
    fn steps_side_by_side_are_told_apart() {
        let (time, p) = probe(10);
        let a = Watched::begin(&p, 1);
        wait(&time, 8);
        let b = Watched::begin(&p, 1);
        wait(&time, 8);
        drop(b);
        assert_eq!(p.stats("n").over_budget, 0);
        drop(a);
        assert_eq!(p.stats("n").over_budget, 1);
    }

    #[test]
    fn without_a_budget_there_is_nothing() {
        let p = Arc::new(NodeProbe::new(None));
        assert!(Watched::begin(&p, 1).is_none());
    }
}
