//! What a node says of itself, in the forms in which people and programs read it.
//!
//! | question | file |
//! | --- | --- |
//! | what would the forwarder do with an Interest for a name, and why? | [`explanation`] |
//! | what did it do with this packet, and which Interests got no answer? | [`traced`] |
//! | how is a line of the log written? | [`log_line`] |
//! | does a counter count losses, or normal work? | [`counters`] |
//!
//! The router's control thread, its observer and the command line read the same facts, so they live below all three.
//! The crate knows packets and datasets, no socket and no clock.

pub mod counters;
pub mod explanation;
pub mod log_line;
pub mod traced;
