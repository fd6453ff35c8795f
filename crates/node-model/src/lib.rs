//! The reports of a node about itself, in forms for people and programs.
//!
//! | question | file |
//! | --- | --- |
//! | what would the forwarder do with an Interest for a name, and why? | [`explanation`] |
//! | what did it do with this packet, and which Interests got no answer? | [`traced`] |
//! | how is a line of the log written? | [`log_line`] |
//! | does a counter count losses, or normal work? | [`counters`] |
//! | where does a node show itself by HTTP? | [`observer_address`] |
//!
//! The router's control thread, its observer and the command line use the same facts, so this crate is below all three.
//! It knows packets and datasets, but no socket and no clock.

pub mod counters;
pub mod explanation;
pub mod log_line;
pub mod observer_address;
pub mod traced;
