//! Ogg pages (RFC 3533 §6): an incremental parser that resynchronises after damage, and the writer of one page.
//!
//! Holds at most one page (65,307 bytes) beyond what the last push brought.

const MAGIC: &[u8; 4] = b"OggS";
const HEADER: usize = 27;

/// One page whose checksum was right.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The first packet began on an earlier page.
    pub continued: bool,
    /// First page of its stream.
    pub first: bool,
    /// Last page of its stream.
    pub last: bool,
    /// Position at the end of the last packet that ends here; −1 if none ends here.
    pub granule: i64,
    /// Which stream.
    pub serial: u32,
    /// Number of the page in its stream.
    pub sequence: u32,
    /// Lacing values: a packet is a run of 255s and one value below.
    pub lacing: Vec<u8>,
    /// The packets' bytes.
    pub body: Vec<u8>,
}

impl Page {
    /// Appends the page with its checksum to `out`. At most 255 lacing values, whose sum is the body's length.
    pub fn write(&self, out: &mut Vec<u8>) {
        debug_assert!(self.lacing.len() <= 255);
        debug_assert_eq!(self.lacing.iter().map(|&l| usize::from(l)).sum::<usize>(), self.body.len());
        let start = out.len();
        out.extend_from_slice(MAGIC);
        out.push(0);
        out.push(u8::from(self.continued) | u8::from(self.first) << 1 | u8::from(self.last) << 2);
        out.extend_from_slice(&self.granule.to_le_bytes());
        out.extend_from_slice(&self.serial.to_le_bytes());
        out.extend_from_slice(&self.sequence.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.push(self.lacing.len() as u8);
        out.extend_from_slice(&self.lacing);
        out.extend_from_slice(&self.body);
        let sum = checksum(&out[start..]);
        out[start + 22..start + 26].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Finds pages in a stream of bytes.
#[derive(Debug, Default)]
pub struct PageParser {
    buffer: Vec<u8>,
    start: usize,
    ended: bool,
    skipped: u64,
}

impl PageParser {
    /// A parser at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Says that no more bytes come: a page that is cut short no longer hides whole ones inside it.
    pub fn finish(&mut self) {
        self.ended = true;
    }

    /// The next whole page with a right checksum, if the bytes so far hold one.
    pub fn next_page(&mut self) -> Option<Page> {
        loop {
            let rest = &self.buffer[self.start..];
            let Some(at) = rest.windows(4).position(|w| w == MAGIC) else {
                let keep = if self.ended { 0 } else { rest.len().min(3) };
                self.skip(rest.len() - keep);
                return None;
            };
            self.skip(at);
            match read(&self.buffer[self.start..]) {
                Found::Page(page, length) => {
                    self.start += length;
                    return Some(page);
                }
                Found::Short if !self.ended => return None,
                Found::Short | Found::Damaged => self.skip(1),
            }
        }
    }

    /// Bytes passed over because they belonged to no page with a right checksum.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Bytes held.
    pub fn held(&self) -> usize {
        self.buffer.len() - self.start
    }

    fn skip(&mut self, bytes: usize) {
        self.start += bytes;
        self.skipped += bytes as u64;
    }
}

enum Found {
    Page(Page, usize),
    Short,
    Damaged,
}

fn read(bytes: &[u8]) -> Found {
    if bytes.get(4).is_some_and(|&version| version != 0) {
        return Found::Damaged;
    }
    let Some(header) = bytes.first_chunk::<HEADER>() else { return Found::Short };
    let segments = usize::from(header[26]);
    let Some(lacing) = bytes.get(HEADER..HEADER + segments) else { return Found::Short };
    let body_at = HEADER + segments;
    let length = body_at + lacing.iter().map(|&l| usize::from(l)).sum::<usize>();
    let Some(page) = bytes.get(..length) else { return Found::Short };
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if checksum(page) != word(22) {
        return Found::Damaged;
    }
    let flags = header[5];
    let page = Page {
        continued: flags & 1 != 0,
        first: flags & 2 != 0,
        last: flags & 4 != 0,
        granule: (u64::from(word(10)) << 32 | u64::from(word(6))) as i64,
        serial: word(14),
        sequence: word(18),
        lacing: lacing.to_vec(),
        body: page[body_at..].to_vec(),
    };
    Found::Page(page, length)
}

/// CRC-32 of a page, polynomial 0x04c11db7, bits from the top, start 0, its own field taken as 0.
fn checksum(page: &[u8]) -> u32 {
    page.iter().enumerate().fold(0, |sum: u32, (at, &byte)| {
        let byte = if (22..26).contains(&at) { 0 } else { byte };
        sum << 8 ^ TABLE[usize::from((sum >> 24) as u8 ^ byte)]
    })
}

static TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut sum = (index as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            sum = sum << 1 ^ if sum >> 31 == 1 { 0x04c1_1db7 } else { 0 };
            bit += 1;
        }
        table[index] = sum;
        index += 1;
    }
    table
};
