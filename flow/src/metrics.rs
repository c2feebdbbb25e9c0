//! The engine's figures as metrics, through the `metrics` facade: whatever recorder the program installs gets them.
//!
//! Published by the engine's watchdog at most once a second while there are sessions, once more when the last one has
//! gone, and then not at all. Summed per graph over live sessions and all that have closed, so series are bounded by the
//! graph file. Reading costs a lock per edge and second; the data path knows nothing of it.
//!
//! The facade's counters are whole numbers: totals in seconds are published as gauges that only grow. A gauge without a
//! value (the oldest chunk of an empty edge) is NaN, which no alert matches.

mod families;
mod graph;
mod publish;
mod snapshot;

pub use families::{Family, LIST, MetricType, describe_metrics};
pub(crate) use graph::GraphTotals;
pub(crate) use publish::publish;
pub use snapshot::{EdgeSnapshot, GraphSnapshot, NodeSnapshot};
