//! The bytes of an audio file, from a file, a pipe or memory, of which the first may be looked at ahead.

use std::fs::File;
use std::io::{self, Cursor, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

/// Anything that holds a file: can be read and sought.
pub trait Media: Read + Seek + Send + Sync {}
impl<T: Read + Seek + Send + Sync> Media for T {}

/// Bytes that are looked at to find out what a file is.
const HEAD: usize = 64;

/// An input with its length, if it has one that can be relied on (then it can also be sought).
pub struct Input {
    media: Box<dyn Media>,
    len: Option<u64>,
    head: Vec<u8>,
    /// Of `head`, what was read again already; only where the input cannot go back.
    replayed: usize,
}

impl Input {
    /// Opens a path: a file, a named pipe, a device.
    ///
    /// # Errors
    /// The error of the system.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let meta = file.metadata()?;
        if meta.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        Ok(if meta.is_file() { Self::media(file, meta.len()) } else { Self::pipe(file) })
    }

    /// A file of `len` bytes.
    pub fn media(media: impl Media + 'static, len: u64) -> Self {
        Self { media: Box::new(media), len: Some(len), head: Vec::new(), replayed: 0 }
    }

    /// A file in memory.
    pub fn memory(bytes: Vec<u8>) -> Self {
        let len = bytes.len() as u64;
        Self::media(Cursor::new(bytes), len)
    }

    /// Anything that can only be read from front to back.
    pub fn pipe(input: impl Read + Send + Sync + 'static) -> Self {
        Self { media: Box::new(Forward(input)), len: None, head: Vec::new(), replayed: 0 }
    }

    /// Length in bytes, if it can be relied on.
    pub fn len(&self) -> Option<u64> {
        self.len
    }

    /// Whether it is known to hold nothing.
    pub fn is_empty(&self) -> bool {
        self.len == Some(0)
    }

    /// The first 64 bytes, or all if there are fewer; reading still starts at the first.
    pub(super) fn peek(&mut self) -> io::Result<&[u8]> {
        let mut head = [0; HEAD];
        let mut filled = 0;
        while filled < HEAD {
            match self.media.read(&mut head[filled..]) {
                Ok(0) => break,
                Ok(n) => filled = (filled + n).min(HEAD),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.head = head[..filled].to_vec();
        self.replayed = 0;
        if self.len.is_some() {
            self.media.seek(SeekFrom::Start(0))?;
            self.replayed = filled;
        }
        Ok(&self.head)
    }
}

impl Read for Input {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let waiting = &self.head[self.replayed..];
        if waiting.is_empty() {
            // Not every reader behind this one tries again when a signal interrupts it.
            loop {
                match self.media.read(buf) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    result => return result,
                }
            }
        }
        let n = waiting.len().min(buf.len());
        buf[..n].copy_from_slice(&waiting[..n]);
        self.replayed += n;
        Ok(n)
    }
}

impl Seek for Input {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.media.seek(to)
    }
}

#[cfg(feature = "symphonia")]
impl symphonia::core::io::MediaSource for Input {
    fn is_seekable(&self) -> bool {
        self.len.is_some()
    }
    fn byte_len(&self) -> Option<u64> {
        self.len
    }
}

/// Reads, and refuses to seek.
struct Forward<R>(R);

impl<R: Read> Read for Forward<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}

impl<R> Seek for Forward<R> {
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        Err(ErrorKind::NotSeekable.into())
    }
}
