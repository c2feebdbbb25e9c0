//! The turn machine itself.
//!
//! One window at a time: a run of windows at or above the threshold that lasts `min_speech` begins a turn; the silence
//! clock starts at the first window below the silence bound, windows between bound and threshold let it run but cannot
//! end the turn, windows at or above the threshold stop it. By hand, all audio is collected until a commit. A ring keeps
//! the audio that an item may still need. A window that a change of rules falls into is judged in two parts, each with the
//! probability of the whole.

use super::{Commit, EndReason, TurnError, TurnEvent, TurnMode, TurnRules, WINDOW};
use std::collections::VecDeque;

/// Audio that may wait for its probability, samples (10 s).
const MOST_AHEAD: u64 = 160_000;
/// The longest item that is collected by hand, samples (262 s): the 16 MiB of input that a session may hold.
const MOST_BY_HAND: u64 = 1 << 22;
/// Changes that may wait for their place.
const MOST_CHANGES: usize = 64;

/// What changes at a place of the stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// These rules hold for the audio from there on. An open turn goes on under them; one that goes on by hand is ended
    /// by a commit alone, and a guess at its end is withdrawn.
    Rules(TurnRules),
    /// What was collected before is dropped, and an open turn with it. Detection begins anew.
    Clear,
}

/// Cuts one stream into turns. See the module for what it promises.
#[derive(Clone, Debug)]
pub struct TurnMachine {
    rules: TurnRules,
    /// The audio from `kept_from` on.
    ring: VecDeque<f32>,
    kept_from: u64,
    /// End of the audio pushed: the stream's clock.
    clock: u64,
    /// First sample of the next window.
    window: u64,
    /// End of the latest item, or the latest clear or commit.
    reset: u64,
    state: State,
    /// Changes whose place has not come, in its order.
    changes: VecDeque<(u64, Change)>,
    next_guess: u64,
    bad_probabilities: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// No turn. `run` = first sample of the unbroken windows of speech that end here.
    Idle {
        run: Option<u64>,
    },
    Open(Open),
    ByHand(ByHand),
}

/// What is collected until a commit.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ByHand {
    start: u64,
    speech_end: u64,
    /// It began as a turn that was told.
    announced: bool,
}

impl State {
    /// Nothing has been heard before `at`.
    const fn new(mode: TurnMode, at: u64) -> Self {
        match mode {
            TurnMode::Vad => Self::Idle { run: None },
            TurnMode::Manual => Self::ByHand(ByHand { start: at, speech_end: at, announced: false }),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Open {
    start: u64,
    speech_end: u64,
    /// Start of the silence clock.
    silence: Option<u64>,
    guess: Option<u64>,
    /// False while an item that goes on after the longest one holds no speech yet.
    announced: bool,
}

impl TurnMachine {
    /// A machine at the beginning of a stream.
    pub const fn new(rules: TurnRules) -> Self {
        Self {
            rules,
            ring: VecDeque::new(),
            kept_from: 0,
            clock: 0,
            window: 0,
            reset: 0,
            state: State::new(rules.mode, 0),
            changes: VecDeque::new(),
            next_guess: 0,
            bad_probabilities: 0,
        }
    }
    /// The rules that hold now.
    pub const fn rules(&self) -> TurnRules {
        self.rules
    }
    /// Samples pushed since the stream began; never goes back.
    pub const fn clock(&self) -> u64 {
        self.clock
    }
    /// First sample of the window that the next probability is for. It moves to the clock at a clear or commit, where
    /// the detector must drop the part of a window it holds too.
    pub const fn window_start(&self) -> u64 {
        self.window
    }
    /// Samples held at this moment; never more than the longest item (by hand 262 s), the prefix, one run and what waits.
    pub fn held(&self) -> usize {
        self.ring.len()
    }
    /// Whether a turn is open.
    pub const fn is_open(&self) -> bool {
        matches!(self.state, State::Open(Open { announced: true, .. }) | State::ByHand(ByHand { announced: true, .. }))
    }
    /// Probabilities that were no number between 0 and 1 so far; a NaN counts as 0, others are clamped.
    pub const fn bad_probabilities(&self) -> u64 {
        self.bad_probabilities
    }

    /// Takes audio, in pieces of any size. Nothing is decided before the probability of a whole window comes.
    ///
    /// # Errors
    /// [`TurnError::AudioAhead`] if more than 10 s would wait for probabilities; nothing was taken.
    pub fn audio(&mut self, samples: &[f32]) -> Result<(), TurnError> {
        let held = self.clock - self.window + samples.len() as u64;
        if held > MOST_AHEAD {
            return Err(TurnError::AudioAhead { held, most: MOST_AHEAD });
        }
        self.ring.extend(samples);
        self.clock += samples.len() as u64;
        Ok(())
    }
    /// Takes the probability of the next window and appends what follows from it to `out`.
    ///
    /// # Errors
    /// [`TurnError::NoAudio`] if the window's audio has not been pushed in full; nothing changed.
    pub fn probability(&mut self, p: f32, out: &mut Vec<TurnEvent>) -> Result<(), TurnError> {
        if self.clock - self.window < WINDOW as u64 {
            return Err(TurnError::NoAudio { at: self.window });
        }
        self.judge(p, self.window + WINDOW as u64, out);
        Ok(())
    }
    /// Takes audio together with its probability: a whole window, or the shorter one that a commit cuts off. More than a
    /// window is taken in windows, all of the same probability. No audio may be waiting.
    pub fn window(&mut self, samples: &[f32], p: f32, out: &mut Vec<TurnEvent>) {
        for piece in samples.chunks(WINDOW) {
            self.ring.extend(piece);
            self.clock += piece.len() as u64;
            self.judge(p, self.clock, out);
        }
    }
    /// Notes what changes before the first sample at or after `at`. If that has been judged already, it changes before the
    /// next one that has not. Changes of one place act in the order in which they were noted; a commit at that place
    /// comes before them.
    ///
    /// # Errors
    /// [`TurnError::Changes`] if 64 wait already; nothing changed.
    pub fn change(&mut self, at: u64, change: Change) -> Result<(), TurnError> {
        if self.changes.len() >= MOST_CHANGES {
            return Err(TurnError::Changes { most: MOST_CHANGES });
        }
        let place = self.changes.partition_point(|c| c.0 <= at);
        self.changes.insert(place, (at, change));
        Ok(())
    }
    /// Takes audio and asks `detect` for each whole window, in order. Returns nothing; events are appended to `out`.
    pub fn push(&mut self, samples: &[f32], mut detect: impl FnMut(&[f32]) -> f32, out: &mut Vec<TurnEvent>) {
        let mut window = [0.0; WINDOW];
        let mut rest = samples;
        while !rest.is_empty() {
            let missing = WINDOW.saturating_sub((self.clock - self.window) as usize).max(1);
            let (now, later) = rest.split_at(missing.min(rest.len()));
            rest = later;
            self.ring.extend(now);
            self.clock += now.len() as u64;
            while self.clock - self.window >= WINDOW as u64 {
                let at = (self.window - self.kept_from) as usize;
                window.iter_mut().zip(self.ring.range(at..)).for_each(|(w, &s)| *w = s);
                self.judge(detect(&window), self.window + WINDOW as u64, out);
            }
        }
    }
    /// Ends the stream. `last` is the probability of the last, short window (filled with zeros by the detector), if
    /// there is one. An open turn ends here; a run too short to be speech is dropped, and so is what was collected by hand
    /// and not committed.
    pub fn end(&mut self, last: Option<f32>, out: &mut Vec<TurnEvent>) {
        if let Some(p) = last.filter(|_| self.clock > self.window) {
            let end = self.clock.min(self.window + WINDOW as u64);
            self.judge(p, end, out);
        }
        while let Some((_, change)) = self.changes.pop_front_if(|c| c.0 <= self.clock) {
            self.apply(change, out);
        }
        if self.rules.mode == TurnMode::Vad {
            self.close(EndReason::EndOfInput, out);
        }
        self.restart(self.clock);
    }
    /// Ends the turn at the clock, for a client that says so itself: the open one; by hand, all that was collected; else
    /// an empty one. Exactly one [`TurnEvent::TurnEnded`] with [`EndReason::Commit`] tells it.
    pub fn commit(&mut self, out: &mut Vec<TurnEvent>) -> Commit {
        let (start, end) = (self.reset, self.clock);
        let found = if self.close(EndReason::Commit, out) {
            Commit::Speech
        } else {
            let (reason, guess, audio) = (EndReason::Commit, None, Vec::new());
            out.push(TurnEvent::TurnEnded { start: end, end, speech_end: end, reason, guess, audio });
            if start == end { Commit::Empty } else { Commit::NoSpeech { start, end } }
        };
        self.restart(end);
        found
    }
    /// Drops the pending audio and the open turn. The clock goes on.
    pub fn clear(&mut self, out: &mut Vec<TurnEvent>) {
        self.clear_before(self.clock, out);
    }

    /// One window `self.window .. end` with probability `p`, in parts if something changes within.
    fn judge(&mut self, p: f32, end: u64, out: &mut Vec<TurnEvent>) {
        while let Some((at, change)) = self.changes.pop_front_if(|c| c.0 < end) {
            if at > self.window {
                self.advance(p, at, out);
            }
            self.apply(change, out);
        }
        if end > self.window {
            self.advance(p, end, out);
        }
    }
    /// Changes what is to change at `self.window`.
    fn apply(&mut self, change: Change, out: &mut Vec<TurnEvent>) {
        let rules = match change {
            Change::Clear => return self.clear_before(self.window, out),
            Change::Rules(rules) => rules,
        };
        let before = std::mem::replace(&mut self.rules, rules).mode;
        if before == rules.mode {
            return;
        }
        let nothing = State::new(rules.mode, self.window);
        self.state = match self.state {
            State::Open(Open { start, speech_end, guess, announced: true, .. }) => {
                out.extend(guess.map(|id| TurnEvent::GuessCancelled { id }));
                State::ByHand(ByHand { start, speech_end, announced: true })
            }
            State::ByHand(ByHand { start, speech_end, announced: true }) => {
                State::Open(Open { start, speech_end, silence: None, guess: None, announced: true })
            }
            _ => nothing,
        };
    }
    fn clear_before(&mut self, at: u64, out: &mut Vec<TurnEvent>) {
        let start = match self.state {
            State::Open(open) => {
                out.extend(open.guess.map(|id| TurnEvent::GuessCancelled { id }));
                open.announced.then_some(open.start)
            }
            State::ByHand(hand) => (hand.start < at).then_some(hand.start),
            State::Idle { .. } => None,
        };
        out.push(TurnEvent::TurnCleared { at, start });
        self.restart(at);
    }
    /// One part of a window `self.window .. end` with probability `p`.
    fn advance(&mut self, p: f32, end: u64, out: &mut Vec<TurnEvent>) {
        if !(0.0..=1.0).contains(&p) {
            self.bad_probabilities += 1;
        }
        let p = if p.is_nan() { 0.0 } else { p };
        let (speech, silent) = (p >= self.rules.threshold, p < self.rules.bound);
        let at = std::mem::replace(&mut self.window, end);
        if let State::Idle { run } = self.state {
            let run = if speech { Some(run.unwrap_or(at)) } else { None };
            self.state = State::Idle { run };
            if let Some(first) = run.filter(|first| end - first >= self.rules.min_speech) {
                // Rules may have changed to a longer prefix than was kept until now.
                let start = self.reset.max(self.kept_from).max(first.saturating_sub(self.rules.prefix));
                self.state = State::Open(Open { start, speech_end: end, silence: None, guess: None, announced: true });
                out.push(self.started(start, first, false));
            }
        } else if let State::ByHand(hand) = &mut self.state {
            if speech {
                hand.speech_end = end;
            }
            let hand = *hand;
            self.cut_by_hand(hand, end, out);
        } else if let State::Open(mut open) = self.state {
            if speech {
                out.extend(open.guess.take().map(|id| TurnEvent::GuessCancelled { id }));
                if !open.announced {
                    out.push(self.started(open.start, at, true));
                }
                open = Open { announced: true, silence: None, speech_end: end, ..open };
            } else if silent {
                open.silence = open.silence.or(Some(at));
            } else if open.silence.is_none() {
                // Between bound and threshold with no silence before: speech that fades.
                open.speech_end = end;
            }
            self.state = State::Open(open);
        }
        // An item longer than the longest is cut before anything else is said about its end.
        while let State::Open(open) = self.state {
            let cut = open.start.saturating_add(self.rules.longest);
            if cut > end {
                break;
            }
            self.cut(open, cut, end, out);
        }
        if let State::Open(open) = self.state {
            self.silence(open, silent, end, out);
        }
        self.trim();
    }
    /// Ends `open` at `cut`, within the window that ends at `end`, and goes on with a new item there.
    fn cut(&mut self, open: Open, cut: u64, end: u64, out: &mut Vec<TurnEvent>) {
        if open.announced {
            out.push(self.ended(open, cut, EndReason::Longest));
        }
        self.reset = cut;
        let more = open.silence.is_none() && cut < end;
        let next = Open { start: cut, speech_end: open.speech_end.max(cut), guess: None, announced: more, ..open };
        if more {
            out.push(self.started(cut, cut, true));
        }
        self.state = State::Open(next);
    }
    /// Ends what was collected by hand where it is as long as it may be, and goes on collecting there.
    fn cut_by_hand(&mut self, mut hand: ByHand, end: u64, out: &mut Vec<TurnEvent>) {
        while end - hand.start >= MOST_BY_HAND {
            let cut = hand.start + MOST_BY_HAND;
            out.push(self.ended(hand.into(), cut, EndReason::Longest));
            self.reset = cut;
            hand = ByHand { start: cut, speech_end: hand.speech_end.max(cut), announced: false };
        }
        self.state = State::ByHand(hand);
    }
    /// Looks at the silence clock after a window.
    fn silence(&mut self, mut open: Open, silent: bool, end: u64, out: &mut Vec<TurnEvent>) {
        let Some(quiet) = open.silence.map(|from| end - from).filter(|_| silent) else { return };
        if quiet >= self.rules.silence {
            if open.announced {
                out.push(self.ended(open, end, EndReason::Silence));
                self.reset = end;
            }
            // An item that went on without speech vanishes; its samples may still be the prefix of the next one.
            self.state = State::Idle { run: None };
        } else if open.announced && open.guess.is_none() && self.rules.speculate.is_some_and(|s| quiet >= s) {
            let id = self.next_guess;
            self.next_guess += 1;
            out.push(TurnEvent::Guess { id, start: open.start, end, audio: self.samples(open.start, end) });
            open.guess = Some(id);
            self.state = State::Open(open);
        }
    }
    /// Ends an announced open turn, or what was collected by hand, at the clock. True if there was one.
    fn close(&mut self, reason: EndReason, out: &mut Vec<TurnEvent>) -> bool {
        let end = self.clock;
        let mut open = match self.state {
            State::Open(open) if open.announced => open,
            State::ByHand(hand) if hand.start < end => {
                out.push(self.ended(hand.into(), end, reason));
                return true;
            }
            _ => return false,
        };
        // Audio that waits for its probability may lead over the longest length.
        while end - open.start > self.rules.longest {
            let cut = open.start + self.rules.longest;
            out.push(self.ended(open, cut, EndReason::Longest));
            out.push(self.started(cut, cut, true));
            open = Open { start: cut, speech_end: open.speech_end.max(cut), guess: None, ..open };
        }
        out.push(self.ended(open, end, reason));
        true
    }
    const fn started(&self, start: u64, speech: u64, continued: bool) -> TurnEvent {
        TurnEvent::SpeechStarted { start, speech, continued, interrupt: self.rules.interrupt }
    }
    fn ended(&self, open: Open, end: u64, reason: EndReason) -> TurnEvent {
        let speech_end = open.speech_end.clamp(open.start, end);
        let audio = self.samples(open.start, end);
        TurnEvent::TurnEnded { start: open.start, end, speech_end, reason, guess: open.guess, audio }
    }
    /// Begins anew at `at`; the ring keeps what comes from there on.
    fn restart(&mut self, at: u64) {
        (self.reset, self.window) = (at, at);
        self.state = State::new(self.rules.mode, at);
        self.forget(at);
    }
    fn samples(&self, start: u64, end: u64) -> Vec<f32> {
        let at = |position: u64| (position.saturating_sub(self.kept_from) as usize).min(self.ring.len());
        self.ring.range(at(start)..at(end)).copied().collect()
    }
    /// Drops what no item can need any more.
    fn trim(&mut self) {
        let need = match self.state {
            State::Open(open) => open.start,
            State::ByHand(hand) => hand.start,
            State::Idle { run } => self.reset.max(run.unwrap_or(self.window).saturating_sub(self.rules.prefix)),
        };
        self.forget(need);
    }
    fn forget(&mut self, before: u64) {
        let old = before.saturating_sub(self.kept_from).min(self.ring.len() as u64);
        self.ring.drain(..old as usize);
        self.kept_from += old;
    }
}

impl From<ByHand> for Open {
    fn from(hand: ByHand) -> Self {
        Self { start: hand.start, speech_end: hand.speech_end, silence: None, guess: None, announced: true }
    }
}

#[cfg(test)]
mod tests;
