//! The layout of the blocks, as GGUF files have them; little-endian, without gaps.
//!
//! | format | bytes | a block of 32 weights | weight |
//! |---|---|---|---|
//! | `Q4_0` | 18 | `d: f16`, 16 bytes of nibbles | `d * (q - 8)` |
//! | `Q4_1` | 20 | `d: f16`, `m: f16`, 16 bytes of nibbles | `d * q + m` |
//! | `Q8_0` | 34 | `d: f16`, 32 bytes `i8` | `d * q` |
//!
//! The low nibble of byte `i` belongs to weight `i`, the high one to weight `i + 16`.

/// Weights per block, in every format.
pub const BLOCK: usize = 32;

pub(super) const Q4_0: usize = 18;
pub(super) const Q4_1: usize = 20;
pub(super) const Q8_0: usize = 34;

/// How a block stores its weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// 4 bits around zero and a scale: 4.5 bits per weight.
    Q4_0,
    /// 4 bits, a scale and an offset: 5 bits per weight.
    Q4_1,
    /// 8 bits and a scale: 8.5 bits per weight.
    Q8_0,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 3] = [Format::Q4_0, Format::Q4_1, Format::Q8_0];

    /// Bytes of one block.
    pub const fn block_bytes(self) -> usize {
        match self {
            Format::Q4_0 => Q4_0,
            Format::Q4_1 => Q4_1,
            Format::Q8_0 => Q8_0,
        }
    }

    /// Bytes of a row of `columns` weights.
    ///
    /// # Panics
    /// If `columns` is no multiple of [`BLOCK`].
    pub const fn row_bytes(self, columns: usize) -> usize {
        assert!(columns.is_multiple_of(BLOCK), "a row is made of whole blocks");
        columns / BLOCK * self.block_bytes()
    }
}

/// A 16-bit number of a block, which has it at bytes `AT` and `AT + 1`.
#[inline]
pub(super) fn half_at<const AT: usize, const N: usize>(block: &[u8; N]) -> u16 {
    const { assert!(AT + 2 <= N) };
    u16::from_le_bytes([block[AT], block[AT + 1]])
}

/// The 16 bytes of nibbles at the end of a block.
#[inline]
pub(super) fn nibbles<const N: usize>(block: &[u8; N]) -> &[u8; 16] {
    const { assert!(N >= 16) };
    match block.last_chunk() {
        Some(bytes) => bytes,
        None => unreachable!(),
    }
}

/// The 32 bytes of a block of [`Format::Q8_0`].
#[inline]
pub(super) fn bytes(block: &[u8; Q8_0]) -> &[u8; BLOCK] {
    match block.last_chunk() {
        Some(bytes) => bytes,
        None => unreachable!(),
    }
}

/// The 32 numbers of 4 bits, in the order of the weights.
#[inline]
pub(super) fn spread(nibbles: &[u8; 16]) -> [u8; BLOCK] {
    std::array::from_fn(|i| if i < 16 { nibbles[i] & 15 } else { nibbles[i - 16] >> 4 })
}
