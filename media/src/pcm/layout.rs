//! Which speaker each channel of a frame belongs to.

use std::fmt;

/// A number of channels and, where a file states them, their speaker positions as a `WAVEFORMATEXTENSIBLE` mask (bit 0
/// front left, 1 front right, 2 front centre, 3 low frequency, 4 back left, 5 back right, ...). A mask of 0 means
/// "not stated".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    channels: u16,
    mask: u32,
}

impl Layout {
    /// One channel.
    pub const MONO: Layout = Layout { channels: 1, mask: 0x4 };
    /// Left and right.
    pub const STEREO: Layout = Layout { channels: 2, mask: 0x3 };

    /// The usual layout of so many channels; positions are not stated above two.
    pub const fn of(channels: u16) -> Layout {
        match channels {
            1 => Self::MONO,
            2 => Self::STEREO,
            _ => Layout { channels, mask: 0 },
        }
    }

    /// Channels with stated positions; a mask that names another number of speakers is dropped.
    pub const fn with_mask(channels: u16, mask: u32) -> Layout {
        if mask.count_ones() == channels as u32 { Layout { channels, mask } } else { Layout::of(channels) }
    }

    /// Channels in a frame.
    pub const fn channels(self) -> u16 {
        self.channels
    }

    /// Speaker positions, 0 if not stated.
    pub const fn mask(self) -> u32 {
        self.mask
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.channels {
            1 => f.write_str("mono"),
            2 => f.write_str("stereo"),
            n => write!(f, "{n} channels"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_that_does_not_fit_is_dropped() {
        assert_eq!(Layout::with_mask(6, 0x3F).mask(), 0x3F);
        assert_eq!(Layout::with_mask(6, 0x3), Layout::of(6));
        assert_eq!(Layout::with_mask(1, 0), Layout::MONO);
        assert_eq!(Layout::of(2).to_string(), "stereo");
        assert_eq!(Layout::of(6).to_string(), "6 channels");
    }
}
