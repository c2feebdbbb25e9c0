//! What crosses between the two halves of a remote edge.

use crate::{Amount, Chunk, Epoch, Terminal};

/// One frame. `Data`, `Fence` and `End` go with the media, `Limit`, `Fence` and `Stop` against it.
#[derive(Clone, Debug)]
pub enum Frame {
    /// A chunk. Travels on the data path; all others travel on the control path and may overtake it.
    Data {
        /// The epoch of the edge's lane that the chunk belongs to: the same as in its stamp.
        epoch: Epoch,
        /// Its number within that epoch, from 0 without a gap.
        seq: u64,
        /// Stamp and payload.
        chunk: Chunk,
    },
    /// All older epochs are worthless. Sent by whichever side learns of it first; the largest one counts.
    Fence {
        /// The lane's new epoch.
        epoch: Epoch,
    },
    /// No data follows.
    End {
        /// The epoch of the last data.
        epoch: Epoch,
        /// How many chunks of that epoch were sent: the terminal comes after them.
        count: u64,
        /// How the stream ended.
        terminal: Terminal,
    },
    /// The receiver allows so much in all within `epoch`. May be lost, repeated or reordered: the largest one counts.
    Limit {
        /// The epoch that the total belongs to.
        epoch: Epoch,
        /// Total since that epoch began.
        allowed: Amount,
    },
    /// The receiver takes nothing more: it has the terminal, or its consumer went away.
    Stop,
}

impl Frame {
    /// True for frames of the data path.
    pub const fn is_data(&self) -> bool {
        matches!(self, Self::Data { .. })
    }
    /// Its name in messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Data { .. } => "data",
            Self::Fence { .. } => "fence",
            Self::End { .. } => "end",
            Self::Limit { .. } => "limit",
            Self::Stop => "stop",
        }
    }
}
