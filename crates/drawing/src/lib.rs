//! Charts on pages and in files: how they look, for all programs of Namewire.
//!
//! | question | module |
//! | --- | --- |
//! | what is a chart? | [`chart`] |
//! | how is it drawn, on a page, as SVG and as PNG? | [`draw`] |
//! | what do our pages look like? | [`page`] |
//!
//! The lab and the simulator use it. It knows nothing of NDN.

pub mod chart;
pub mod draw;
mod page;

pub use chart::{Axis, Chart, Point, Series, figure};
pub use page::page;
