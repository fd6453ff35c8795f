//! How commands print: aligned text for people, JSON for programs, and the width and colours of the terminal.
//!
//! | question | file |
//! | --- | --- |
//! | how are results printed, as text and as JSON? | [`output`] |
//! | which columns of a table fit into a line? | [`columns`] |
//! | how are sizes, rates and times written? | [`quantity`] |
//! | may these bytes go to a terminal? | [`text_only`] |
//! | how wide is the terminal, and does it show colours? | [`terminal`] |
//!
//! The crate knows nothing of NDN. The tools and `nfdc` use it.

pub mod columns;
pub mod output;
pub mod quantity;
pub mod terminal;
pub mod text_only;
