//! `speech.playout`: gives audio out at the pace at which it is heard, and tells what has been heard.
//!
//! Frames leave on a grid of media time, never in a burst, a short lead ahead of the listener. The credit of what comes
//! in returns as it is played, so a fence finds at most the lead in the player. A fence drops what has not been played.

use std::sync::Arc;

use omni_flow::units::Dur;
use omni_flow::{
    Amount, Body, BuildCx, BuildError, Ctx, Epoch, Event, Kind, Lane, Make, MediaTime, Medium, Mono, Node, NodeError,
    Opt, OptionError, Out, Pcm, Playback, Port, SampleType, Schema, Sent, Signal, Stamp, Terminal,
};
use serde::Deserialize;

use crate::playout::{Playout, PlayoutConfig};

/// The node type `speech.playout`.
pub struct SpeechPlayout;

/// Options of `speech.playout`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PlayoutOptions {
    frame: Option<Dur>,
    lead: Option<Dur>,
}

impl PlayoutOptions {
    fn config(&self, rate: u32) -> PlayoutConfig {
        let mut c = PlayoutConfig::new(rate);
        if let Some(f) = self.frame {
            c.frame = f.0;
        }
        if let Some(l) = self.lead {
            c.lead = l.0;
        }
        c
    }
}

impl Make for SpeechPlayout {
    const NAME: &'static str = "speech.playout";
    type Config = PlayoutOptions;
    fn schema() -> Schema {
        let audio = Kind { channels: Some(1), sample: Some(SampleType::F32), ..Kind::of(Medium::Audio) };
        Schema::new("Paces audio to a listener by its media time, and reports what has been played")
            .input(Port::new("in", audio.clone(), "audio as fast as it is made"))
            .output(Port::new("audio", audio, "frames at the pace of a player").like("in"))
            .output(
                Port::new(
                    "played",
                    Kind::of(Medium::Signal),
                    "how much of the answer has been heard, told at its end and at a fence",
                )
                .optional(),
            )
            .option(Opt::new("frame", "duration", "20ms", "length of a frame"))
            .option(Opt::new("lead", "duration", "60ms", "how far ahead of the listener frames leave"))
            .example("playout: { use: speech.playout, in: voice.audio, lane: reply }")
    }
    fn refine(config: &PlayoutOptions, _: &mut Schema) -> Result<(), OptionError> {
        let hint = "a frame of 5ms to 120ms and a lead of at most 10s";
        Playout::new(config.config(24_000)).map(drop).map_err(|e| OptionError::new("frame", e.to_string(), hint))
    }
    fn build(config: &PlayoutOptions, _: &BuildCx) -> Result<Body, BuildError> {
        let config = config.clone();
        Ok(Body::node(move || PlayoutNode { options: config.clone() }))
    }
}

struct PlayoutNode {
    options: PlayoutOptions,
}

/// One rate's player; a change of rate begins a new one.
struct Player {
    rate: u32,
    machine: Playout,
    /// The stamp that frames answer.
    stamp: Stamp,
    /// Chunks taken whose credit has not been returned, each with the position at which its last sample leaves.
    owed: std::collections::VecDeque<(u64, Amount)>,
    pushed: u64,
    /// Where answers end, of those whose end has not left.
    overs: std::collections::VecDeque<u64>,
    /// Ends of segments that have left, and when the latest will have been heard if that has not been told.
    ends: u64,
    tell_at: Option<Mono>,
}

impl Node for PlayoutNode {
    async fn run(self, mut cx: Ctx) -> Result<(), NodeError> {
        let mut input = cx.input::<Pcm>("in")?;
        let mut audio = cx.output::<Pcm>("audio")?;
        let mut played = cx.output::<Signal>("played")?;
        input.hold_credit();
        let clock = cx.clock().clone();
        let playback: Arc<Playback> = cx.playback().clone();
        let mut player: Option<Player> = None;
        let mut waiting: Option<Waiting> = None;
        let mut ended = false;
        loop {
            let now = clock.now();
            // What there is room for goes into the player.
            if let Some(mut w) = waiting.take() {
                let other_rate = player.as_ref().is_some_and(|p| p.rate != w.pcm.rate());
                if other_rate && player.as_ref().is_some_and(|p| p.machine.held() == 0) {
                    player = None;
                }
                if player.is_none() {
                    player = Some(Player::new(self.options.config(w.pcm.rate()))?);
                }
                let whole = match &mut player {
                    Some(p) if p.rate == w.pcm.rate() => {
                        let whole = p.push(&mut w, now)?;
                        // The end of an answer without samples waits for no frame.
                        p.settle(&input);
                        whole
                    }
                    // Audio of another rate must leave first.
                    _ => false,
                };
                if !whole {
                    waiting = Some(w);
                }
            }
            // What is due goes out.
            if let Some(p) = &mut player {
                while let Some(frame) = p.machine.poll(clock.now()) {
                    let sent = p.give(frame, &mut audio, &playback, cx.lane(), clock.now()).await;
                    if sent == Sent::Gone {
                        return Ok(());
                    }
                    p.settle(&input);
                }
                if p.close(&mut audio).await == Sent::Gone {
                    return Ok(());
                }
                let over = ended && waiting.is_none() && p.machine.held() == 0;
                if p.heard_out(clock.now(), over) {
                    p.report(&mut played, clock.now()).await;
                    if over {
                        return Ok(());
                    }
                }
            } else if ended && waiting.is_none() {
                return Ok(());
            }
            let due = player.as_ref().and_then(|p| p.next(clock.now()));
            let lane = cx.lane();
            tokio::select! {
                biased;
                // First, so that nothing newer than a fence is taken before it: it would be dropped with the old.
                epoch = cx.fenced(), if lane != Lane::MAIN => {
                    fence(&mut player, &mut waiting, &input, &mut played, &playback, clock.now(), Some((lane, epoch)))
                        .await;
                }
                event = input.next(), if waiting.is_none() && !ended => match event {
                    Event::Data(stamp, pcm) => waiting = Some(Waiting { stamp, pcm, taken: 0 }),
                    // The same fence comes by the lane, with the epoch to tell it under.
                    Event::Fence(_) if player.as_ref().is_some_and(|p| cx.is_stale(&p.stamp)) => {}
                    Event::Fence(_) => {
                        fence(&mut player, &mut waiting, &input, &mut played, &playback, clock.now(), None).await;
                    }
                    Event::End(Terminal::End) => {
                        ended = true;
                        if let Some(p) = &mut player {
                            p.machine.end_segment(clock.now())?;
                        }
                    }
                    Event::End(Terminal::Error(e)) => return Err(e.into()),
                },
                () = wait(&clock, due) => {}
            }
        }
    }
}

/// A chunk that was taken and has not gone into the player as a whole.
struct Waiting {
    stamp: Stamp,
    pcm: Pcm,
    /// Samples of it that have.
    taken: usize,
}

async fn wait(clock: &omni_flow::Clock, due: Option<Mono>) {
    match due {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// What has not been played is dropped, its credit returns, and what was heard is told. If this node's own lane was
/// fenced, under the `newest` epoch: as a part of the old answer the report itself would be void.
async fn fence(
    player: &mut Option<Player>,
    waiting: &mut Option<Waiting>,
    input: &omni_flow::In<Pcm>,
    played: &mut Out<Signal>,
    playback: &Playback,
    now: Mono,
    newest: Option<(Lane, Epoch)>,
) {
    if let Some(w) = waiting.take() {
        input.release(amount(&w.stamp, &w.pcm));
    }
    if let Some(p) = player {
        if let Some((lane, epoch)) = newest {
            p.stamp.epochs = p.stamp.epochs.with(lane, epoch);
        }
        p.report(played, now).await;
        p.machine.fence(now);
        while let Some((_, a)) = p.owed.pop_front() {
            input.release(a);
        }
        p.pushed = 0;
        playback.cleared(now);
    }
    *player = None;
}

fn amount(stamp: &Stamp, pcm: &Pcm) -> Amount {
    Amount::one(pcm.buf().len() as u64, stamp.len)
}

impl Player {
    fn new(config: PlayoutConfig) -> Result<Self, NodeError> {
        let rate = config.rate;
        Ok(Self {
            rate,
            machine: Playout::new(config)?,
            stamp: Stamp::default(),
            owed: Default::default(),
            pushed: 0,
            overs: Default::default(),
            ends: 0,
            tell_at: None,
        })
    }
    /// Takes as much of a chunk as there is room for; true if that was the rest of it.
    fn push(&mut self, w: &mut Waiting, now: Mono) -> Result<bool, NodeError> {
        self.stamp = w.stamp;
        let n = (w.pcm.frames() - w.taken).min(self.machine.room());
        self.machine.push(&w.pcm.f32()[w.taken..w.taken + n], now)?;
        self.pushed += n as u64;
        w.taken += n;
        if w.taken < w.pcm.frames() {
            return Ok(false);
        }
        self.owed.push_back((self.pushed, amount(&w.stamp, &w.pcm)));
        if w.stamp.last {
            self.machine.end_segment(now)?;
        }
        if w.stamp.over {
            self.overs.push_back(self.pushed);
        }
        Ok(true)
    }
    async fn give(
        &mut self,
        frame: crate::playout::PlayoutFrame,
        out: &mut Out<Pcm>,
        playback: &Playback,
        lane: Lane,
        now: Mono,
    ) -> Sent {
        let n = frame.audio.len() as u64;
        let (pts, len) = (MediaTime::from_samples(frame.position, self.rate), MediaTime::from_samples(n, self.rate));
        let stamp = self.stamp.child(pts, len).last(self.ends_answer());
        let left = MediaTime::from_samples(self.machine.held() as u64, self.rate);
        playback.sent(lane, &stamp.epochs, now, now.plus((left + len).to_duration()));
        out.send(&stamp, Pcm::mono(self.rate, frame.audio)).await
    }
    /// True if an answer is over with what has left the machine, told once.
    fn ends_answer(&mut self) -> bool {
        let left = self.pushed - (self.machine.held() as u64).min(self.pushed);
        self.overs.pop_front_if(|end| *end <= left).is_some()
    }
    /// Tells the end of an answer all of whose samples had left before its end was known.
    async fn close(&mut self, out: &mut Out<Pcm>) -> Sent {
        while self.ends_answer() {
            let end = self.stamp.child(MediaTime::from_samples(self.pushed, self.rate), MediaTime::ZERO).last(true);
            let sent = out.send(&end, Pcm::mono(self.rate, Vec::new())).await;
            if sent == Sent::Gone {
                return sent;
            }
        }
        Sent::Queued
    }
    /// Returns the credit of chunks that have left in full.
    fn settle(&mut self, input: &omni_flow::In<Pcm>) {
        let left = self.pushed - (self.machine.held() as u64).min(self.pushed);
        while self.owed.front().is_some_and(|(end, _)| *end <= left) {
            if let Some((_, a)) = self.owed.pop_front() {
                input.release(a);
            }
        }
    }
    /// True if it is time to tell how much was heard: the last sample of a segment has been, or of all (`over`).
    fn heard_out(&mut self, now: Mono, over: bool) -> bool {
        let ends = self.machine.segments_ended();
        if ends > self.ends || over {
            let left = self.pushed - (self.machine.held() as u64).min(self.pushed);
            let sounding = left.saturating_sub(self.machine.played(now).position);
            self.ends = ends;
            self.tell_at = Some(now.plus(MediaTime::from_samples(sounding, self.rate).to_duration()));
        }
        self.tell_at.take_if(|at| *at <= now).is_some()
    }
    /// When there is something to do next.
    fn next(&self, now: Mono) -> Option<Mono> {
        self.machine.next_due(now).into_iter().chain(self.tell_at).min()
    }
    async fn report(&self, out: &mut Out<Signal>, now: Mono) {
        let until = self.machine.played_until(now);
        out.send(&self.stamp.child(until, MediaTime::ZERO), Signal::Played { until }).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Plays sentences of so many samples at 8 kHz; the last of each answer is marked. What leaves: samples, and whether the
    /// answer ends with it.
    fn play(sentences: &[(usize, bool)]) -> Vec<(usize, bool)> {
        let mut p = Player::new(PlayoutConfig::new(8_000)).unwrap();
        let (mut now, mut left) = (Mono::default(), Vec::new());
        for (n, over) in sentences {
            let stamp = Stamp::default().last(true).over(*over);
            let mut w = Waiting { stamp, pcm: Pcm::mono(8_000, vec![0.1; *n]), taken: 0 };
            while !p.push(&mut w, now).unwrap() {
                now = now.plus(Duration::from_millis(5));
                while let Some(f) = p.machine.poll(now) {
                    let ends = p.ends_answer();
                    left.push((f.audio.len(), ends));
                }
            }
            for _ in 0..400 {
                now = now.plus(Duration::from_millis(5));
                while let Some(f) = p.machine.poll(now) {
                    let ends = p.ends_answer();
                    left.push((f.audio.len(), ends));
                }
            }
            if p.ends_answer() {
                left.push((0, true));
            }
        }
        left
    }

    #[test]
    fn an_answer_ends_with_its_last_frame_and_not_with_a_sentence() {
        let left = play(&[(800, false), (850, true), (320, true)]);
        assert_eq!(left.iter().map(|(n, _)| n).sum::<usize>(), 1970);
        let ends: Vec<usize> = (0..left.len()).filter(|i| left[*i].1).collect();
        let before = |i: usize| left[..=i].iter().map(|(n, _)| n).sum::<usize>();
        assert_eq!(ends.iter().map(|i| before(*i)).collect::<Vec<_>>(), [1650, 1970]);
    }
    #[test]
    fn an_end_without_samples_is_told_all_the_same() {
        assert_eq!(play(&[(320, false), (0, true)]).last(), Some(&(0, true)));
        assert_eq!(play(&[(0, true)]), [(0, true)]);
    }
}
