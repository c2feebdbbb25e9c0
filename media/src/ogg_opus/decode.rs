//! From Ogg Opus bytes to samples, exact to the sample at every output rate.
//!
//! A stream whose last page says position `E` gives `round((E − start − pre-skip)·rate/48000)` frames, starting at frame
//! `floor(pre-skip·rate/48000)` of what the codec makes. Lost pages are concealed for the time that the positions say, up
//! to 10 s; longer gaps are left out and counted. The last packet of each page is held until the next page has come,
//! because an end page without packets may still trim it.

use super::{AudioPage, OggItem, OggOpusReader, OggReadError, OpusHead};
use crate::opus::{DecodeError, OpusDecoder, PacketInfo, SHORTEST, TICKS};

/// Longest gap that is filled, in ticks.
const MAX_GAP: u64 = 10 * TICKS as u64;

/// Counters over all streams of the input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OggOpusStats {
    /// Streams begun.
    pub streams: u64,
    /// Pages before which something was lost.
    pub losses: u64,
    /// Ticks (48 kHz) concealed for lost packets.
    pub concealed: u64,
    /// Ticks of silence where the positions jump without a loss.
    pub silence: u64,
    /// Gaps above 10 s and positions that went back: left out.
    pub discontinuities: u64,
    /// Packets that broke the framing rules or that the codec refused.
    pub illegal: u64,
}

/// Streaming decoder of a whole file with all its chained streams.
#[derive(Debug)]
pub struct OggOpusDecoder {
    reader: OggOpusReader,
    decoder: OpusDecoder,
    link: Option<Link>,
    out: Vec<f32>,
    stats: OggOpusStats,
}

#[derive(Debug)]
struct Link {
    head: OpusHead,
    /// Position at which the stream began; known with the first page. Below 0 after positions went back.
    base: Option<i128>,
    /// Ticks decoded or filled.
    ticks: u64,
    /// Frames at the output rate still to drop at the start.
    skip: u64,
    /// Frames given out.
    given: u64,
    /// Interleaved samples not given out yet.
    pending: Vec<f32>,
}

impl OggOpusDecoder {
    /// A decoder to `rate` Hz (one of [`crate::opus::RATES`]) and 1 or 2 `channels`, whatever the streams hold.
    ///
    /// # Errors
    /// [`DecodeError::Rate`], [`DecodeError::Channels`].
    pub fn new(rate: u32, channels: u8) -> Result<Self, DecodeError> {
        Ok(Self {
            reader: OggOpusReader::new(),
            decoder: OpusDecoder::new(rate, channels)?,
            link: None,
            out: Vec::new(),
            stats: OggOpusStats::default(),
        })
    }

    /// Takes the next bytes and appends the samples they complete to `out`. After an error (the head of a stream cannot
    /// be used) the call can be repeated with no bytes to go on behind it.
    ///
    /// # Errors
    /// [`OggReadError::Head`]: the head of a stream cannot be used; that stream is left out.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<f32>) -> Result<(), OggReadError> {
        self.reader.push(bytes);
        self.drain(out)
    }

    /// Ends the input and appends what is left.
    ///
    /// # Errors
    /// [`OggReadError::NotOggOpus`] if the input held no Opus stream; [`OggReadError::Head`].
    pub fn finish(&mut self, out: &mut Vec<f32>) -> Result<(), OggReadError> {
        self.reader.finish();
        self.drain(out)
    }

    /// Head of the current stream.
    pub fn head(&self) -> Option<OpusHead> {
        self.link.as_ref().map(|l| l.head)
    }

    /// Counters so far.
    pub fn stats(&self) -> OggOpusStats {
        self.stats
    }

    fn drain(&mut self, out: &mut Vec<f32>) -> Result<(), OggReadError> {
        let result = loop {
            match self.reader.next_item() {
                Ok(Some(item)) => self.take(item),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        out.append(&mut self.out);
        result
    }

    fn take(&mut self, item: OggItem) {
        match item {
            OggItem::Head(head) => {
                self.stats.streams += 1;
                // A decoder that cannot be made anew keeps its history: audible, not wrong in time.
                let _ = self.decoder.reset();
                let skip = u64::from(head.pre_skip) * u64::from(self.decoder.rate()) / u64::from(TICKS);
                self.link = Some(Link { head, base: None, ticks: 0, skip, given: 0, pending: Vec::new() });
            }
            OggItem::Tags(_) => {}
            OggItem::Audio(page) => {
                if let Some(mut link) = self.link.take() {
                    self.page(&mut link, &page);
                    self.link = Some(link);
                }
            }
            OggItem::End => {
                if let Some(mut link) = self.link.take() {
                    self.give(&mut link, 0);
                }
            }
        }
    }

    fn page(&mut self, link: &mut Link, page: &AudioPage) {
        let mut legal: Vec<(&[u8], PacketInfo)> = Vec::with_capacity(page.packets.len());
        for packet in &page.packets {
            match PacketInfo::parse(packet) {
                Ok(info) => legal.push((packet, info)),
                Err(_) => self.stats.illegal += 1,
            }
        }
        let lost = page.lost || legal.len() < page.packets.len();
        self.stats.losses += u64::from(lost);
        let ticks: u64 = legal.iter().map(|(_, info)| u64::from(info.ticks())).sum();
        if let Some(end) = page.granule {
            let start = i128::from(end) - i128::from(ticks);
            let base = *link.base.get_or_insert_with(|| {
                // A first page that ends before its packets do can only be trimmed at its end.
                if lost && start <= i128::from(MAX_GAP) { 0 } else { start.max(0) }
            });
            let gap = start - base - i128::from(link.ticks);
            // An end page without packets only trims.
            if gap > 0 && !(page.last && legal.is_empty() && !lost) {
                self.fill(link, gap, lost, legal.first());
            } else if gap < 0 && !page.last {
                self.stats.discontinuities += u64::from(link.ticks > 0);
                link.base = Some(base + gap);
            }
        }
        let mut held = 0;
        for (packet, info) in &legal {
            let before = link.pending.len();
            if self.decoder.decode(packet, &mut link.pending).is_err() {
                self.stats.illegal += 1;
                let _ = self.decoder.reset();
                let frames = info.samples(self.decoder.rate());
                link.pending.resize(before + frames * self.channels(), 0.0);
            }
            link.ticks += u64::from(info.ticks());
            held = link.pending.len() - before;
        }
        if page.last {
            if let (Some(end), Some(base)) = (page.granule, link.base) {
                self.trim(link, u64::try_from(i128::from(end) - base).unwrap_or(0));
            }
            held = 0;
        }
        self.give(link, held);
    }

    /// Fills a gap in the positions: concealment for lost packets, silence where nothing was lost.
    fn fill(&mut self, link: &mut Link, gap: i128, lost: bool, next: Option<&(&[u8], PacketInfo)>) {
        let gap = match u64::try_from(gap) {
            Ok(gap) if gap <= MAX_GAP => gap,
            _ => {
                self.stats.discontinuities += 1;
                let _ = self.decoder.reset();
                link.base = link.base.map(|base| base + gap);
                return;
            }
        };
        let (rate, channels) = (u64::from(self.decoder.rate()), self.channels());
        let frames_at = |ticks: u64| ticks * rate / u64::from(TICKS);
        let due = (frames_at(link.ticks + gap) - frames_at(link.ticks)) as usize;
        let before = link.pending.len();
        if lost {
            self.stats.concealed += gap;
            let whole = (gap / u64::from(SHORTEST) * u64::from(SHORTEST)) as u32;
            let frames = (u64::from(whole) * rate / u64::from(TICKS)) as usize;
            let done = match next {
                Some((packet, _)) => self.decoder.decode_fec(packet, frames, &mut link.pending),
                None => self.decoder.conceal(frames, &mut link.pending),
            };
            if done.is_err() {
                link.pending.truncate(before);
            }
        } else {
            self.stats.silence += gap;
        }
        link.pending.resize(before + due * channels, 0.0);
        link.ticks += gap;
    }

    /// Cuts the pending samples so that the stream has its exact length; `ticks` from its start, pre-skip included.
    fn trim(&self, link: &mut Link, ticks: u64) {
        let content = u128::from(ticks.saturating_sub(u64::from(link.head.pre_skip)));
        let frames = (2 * content * u128::from(self.decoder.rate()) + u128::from(TICKS)) / (2 * u128::from(TICKS));
        let left = frames.saturating_sub(u128::from(link.given)) + u128::from(link.skip);
        let samples = usize::try_from(left).unwrap_or(usize::MAX).saturating_mul(self.channels());
        link.pending.truncate(samples);
    }

    /// Gives out the pending samples but the last `held`.
    fn give(&mut self, link: &mut Link, held: usize) {
        let channels = self.channels();
        let ready = link.pending.len() - held.min(link.pending.len());
        let dropped = link.skip.min((ready / channels) as u64);
        link.skip -= dropped;
        let from = dropped as usize * channels;
        let gain = link.head.gain_factor();
        let fresh = &link.pending[from..ready];
        if link.head.gain == 0 {
            self.out.extend_from_slice(fresh);
        } else {
            self.out.extend(fresh.iter().map(|v| v * gain));
        }
        link.given += (fresh.len() / channels) as u64;
        link.pending.drain(..ready);
    }

    fn channels(&self) -> usize {
        usize::from(self.decoder.channels())
    }
}
