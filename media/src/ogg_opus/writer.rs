//! Packets into Ogg pages, streaming.
//!
//! A page holds at most the duration that was asked for (a single longer packet gets a page of its own) and leaves when
//! the packet after it has come, because the last page must be marked as such.

use super::{OpusHead, OpusTags, Page};
use crate::opus::{PacketError, PacketInfo};

/// Writer of one stream.
#[derive(Debug)]
pub struct OggOpusWriter {
    page: Page,
    page_ticks: u64,
    max_ticks: u64,
    granule: u64,
    out: Vec<u8>,
}

impl OggOpusWriter {
    /// Begins a stream: its two header pages can be taken at once. `serial` tells streams of one file apart;
    /// `max_page_ms` bounds the audio on a page (RFC 7845 advises at most 1000).
    pub fn new(head: &OpusHead, tags: &OpusTags, serial: u32, max_page_ms: u32) -> Self {
        let page = Page { serial, granule: -1, first: true, ..Page::default() };
        let mut writer =
            Self { page, page_ticks: 0, max_ticks: u64::from(max_page_ms) * 48, granule: 0, out: Vec::new() };
        for packet in [head.to_packet(), tags.to_packet()] {
            writer.lace(&packet);
            writer.page.granule = 0;
            writer.flush(false);
        }
        writer
    }

    /// Adds a packet. One that is refused changes nothing.
    ///
    /// # Errors
    /// [`PacketError`]: the framing of the packet is illegal.
    pub fn packet(&mut self, packet: &[u8]) -> Result<(), PacketError> {
        let ticks = u64::from(PacketInfo::parse(packet)?.ticks());
        if !self.page.lacing.is_empty() && self.page_ticks + ticks > self.max_ticks {
            self.flush(false);
        }
        self.lace(packet);
        self.granule += ticks;
        self.page.granule = self.granule as i64;
        self.page_ticks += ticks;
        Ok(())
    }

    /// Ends the stream. `end` is the position (48 kHz, pre-skip included) after the last sample to be heard, if that
    /// lies before the end of the last packet.
    pub fn finish(mut self, end: Option<u64>) -> Vec<u8> {
        let end = end.unwrap_or(self.granule).min(self.granule);
        self.page.granule = end as i64;
        self.flush(true);
        self.out
    }

    /// Position after the last packet.
    pub fn granule(&self) -> u64 {
        self.granule
    }

    /// The bytes that are ready, to be written by the caller.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Puts a packet's lacing values and bytes on pages.
    fn lace(&mut self, packet: &[u8]) {
        let mut rest = packet;
        loop {
            if self.page.lacing.len() == 255 {
                // Full. Inside a packet the next page continues it.
                self.flush(false);
                self.page.continued = rest.len() < packet.len();
            }
            let (now, later) = rest.split_at(rest.len().min(255));
            self.page.lacing.push(now.len() as u8);
            self.page.body.extend_from_slice(now);
            rest = later;
            if now.len() < 255 {
                return;
            }
        }
    }

    fn flush(&mut self, last: bool) {
        self.page.last = last;
        self.page.write(&mut self.out);
        self.page.sequence = self.page.sequence.wrapping_add(1);
        self.page.first = false;
        self.page.continued = false;
        self.page.granule = -1;
        self.page.lacing.clear();
        self.page.body.clear();
        self.page_ticks = 0;
    }
}
