//! Charts on pages and in files: how they look, for all programs of Namewire.
//!
//! | question | module |
//! | --- | --- |
//! | what is a chart? | [`chart`] |
//! | how is it drawn, on a page, as SVG and as PNG? | [`draw`] |
//! | what do our pages look like? | [`PAGE_STYLE`] |
//!
//! The lab and the simulator use it. It knows nothing of NDN.

pub mod chart;
pub mod draw;

pub use chart::{Axis, Chart, Point, Series, figure};

/// The CSS of a page with charts and tables, light and dark.
pub const PAGE_STYLE: &str = include_str!("page.css");
