//! The node types of this program: all of the library's.

pub use omni_flow_nodes::registry::registry;
