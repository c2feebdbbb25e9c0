//! From bytes to the packets of an Ogg Opus stream, page by page.
//!
//! Packets are put together over pages; one that lost a part is dropped, and the page after it says so. Chained streams
//! follow one another, each with its own head.

use std::collections::VecDeque;

use super::{HeadError, OpusHead, OpusTags, Page, PageParser};

/// Longest header packet kept; what is longer (pictures) is passed over.
const MAX_HEADER: usize = 1 << 20;
/// Longest audio packet (RFC 7845 §3: 61,440 bytes).
const MAX_PACKET: usize = 61_440;

/// Why reading cannot give audio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OggReadError {
    /// The bytes ended without an Opus stream.
    #[error("no Ogg Opus stream in {bytes} bytes; check that the file is .opus or .ogg with Opus audio")]
    NotOggOpus {
        /// Bytes read.
        bytes: u64,
    },
    /// A stream's head cannot be used; a stream chained after it still can.
    #[error(transparent)]
    Head(#[from] HeadError),
}

/// Packets that end on one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AudioPage {
    /// Whole packets in order.
    pub packets: Vec<Vec<u8>>,
    /// Position (48 kHz, pre-skip included) at the end of the last of them, if the page says it.
    pub granule: Option<u64>,
    /// The stream's last page.
    pub last: bool,
    /// Packets before these were lost.
    pub lost: bool,
}

/// What a stream holds, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OggItem {
    /// A stream begins.
    Head(OpusHead),
    /// Its tags.
    Tags(OpusTags),
    /// Its audio.
    Audio(AudioPage),
    /// It ended: with its last page, at the head of the next one, or with the bytes.
    End,
}

/// Streaming reader.
#[derive(Debug, Default)]
pub struct OggOpusReader {
    pages: PageParser,
    bytes: u64,
    link: Option<Link>,
    ready: VecDeque<Result<OggItem, OggReadError>>,
    any: bool,
    finished: bool,
}

#[derive(Debug)]
struct Link {
    serial: u32,
    next: u32,
    tags_due: bool,
    data_seen: bool,
    /// The packet that goes on with the next page.
    partial: Option<Vec<u8>>,
    lost: bool,
}

impl OggOpusReader {
    /// A reader at the start of a file or stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.pages.push(bytes);
    }

    /// Says that no more bytes come.
    pub fn finish(&mut self) {
        self.pages.finish();
        self.finished = true;
    }

    /// The next item that the bytes so far allow; `Ok(None)` means more bytes are needed or, after [`Self::finish`], that
    /// all was given. After an error the reader goes on with the next stream.
    ///
    /// # Errors
    /// [`OggReadError::Head`] for a stream whose head cannot be used; [`OggReadError::NotOggOpus`], after [`Self::finish`], if there
    /// was none at all.
    pub fn next_item(&mut self) -> Result<Option<OggItem>, OggReadError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return item.map(Some);
            }
            if let Some(page) = self.pages.next_page() {
                self.take(page);
            } else if self.finished && self.link.take().is_some() {
                self.ready.push_back(Ok(OggItem::End));
            } else if self.finished && !std::mem::replace(&mut self.any, true) {
                return Err(OggReadError::NotOggOpus { bytes: self.bytes });
            } else {
                return Ok(None);
            }
        }
    }

    /// Bytes that belonged to no whole page.
    pub fn skipped(&self) -> u64 {
        self.pages.skipped()
    }

    fn take(&mut self, page: Page) {
        if page.first {
            if page.body.starts_with(b"OpusHead") && self.link.as_ref().is_none_or(|l| l.data_seen) {
                self.begin(&page);
            }
            return;
        }
        let Some(link) = self.link.as_mut().filter(|l| l.serial == page.serial) else { return };
        if link.data_seen && page.sequence == link.next.wrapping_sub(1) {
            return;
        }
        let last = page.last;
        link.take(page, &mut self.ready);
        if last {
            self.link = None;
            self.ready.push_back(Ok(OggItem::End));
        }
    }

    fn begin(&mut self, page: &Page) {
        if self.link.take().is_some() {
            self.ready.push_back(Ok(OggItem::End));
        }
        self.any = true;
        match OpusHead::parse(&page.body) {
            Ok(head) => {
                self.ready.push_back(Ok(OggItem::Head(head)));
                self.link = Some(Link {
                    serial: page.serial,
                    next: page.sequence.wrapping_add(1),
                    tags_due: true,
                    data_seen: false,
                    partial: None,
                    lost: false,
                });
            }
            Err(error) => self.ready.push_back(Err(error.into())),
        }
    }
}

impl Link {
    fn take(&mut self, page: Page, ready: &mut VecDeque<Result<OggItem, OggReadError>>) {
        if page.sequence != self.next {
            self.lost = true;
            self.partial = None;
        }
        self.next = page.sequence.wrapping_add(1);
        self.data_seen = true;
        let mut packets = self.split(&page);
        if self.tags_due && !packets.is_empty() {
            self.tags_due = false;
            // A stream whose tags were lost or left out starts with audio.
            if let Some(tags) = OpusTags::parse(&packets[0]) {
                packets.remove(0);
                ready.push_back(Ok(OggItem::Tags(tags)));
                if packets.is_empty() && !page.last {
                    return;
                }
            }
        }
        if !packets.is_empty() || page.last {
            let granule = u64::try_from(page.granule).ok();
            let lost = std::mem::take(&mut self.lost);
            ready.push_back(Ok(OggItem::Audio(AudioPage { packets, granule, last: page.last, lost })));
        }
    }

    /// The packets that end on a page; the one that does not end becomes `partial`.
    fn split(&mut self, page: &Page) -> Vec<Vec<u8>> {
        let limit = if self.tags_due { MAX_HEADER } else { MAX_PACKET };
        let mut current = if page.continued {
            // Without its beginning the first packet is passed over.
            self.lost |= self.partial.is_none();
            self.partial.take()
        } else {
            self.lost |= self.partial.take().is_some();
            Some(Vec::new())
        };
        let mut packets = Vec::new();
        let mut at = 0;
        for &length in &page.lacing {
            let end = at + usize::from(length);
            if let Some(packet) = &mut current {
                if packet.len() + usize::from(length) > limit {
                    current = None;
                    self.lost = true;
                } else {
                    packet.extend_from_slice(&page.body[at..end]);
                }
            }
            at = end;
            if length < 255 {
                packets.extend(current.replace(Vec::new()));
            }
        }
        if page.lacing.last() == Some(&255) {
            self.partial = current;
        }
        packets
    }
}
