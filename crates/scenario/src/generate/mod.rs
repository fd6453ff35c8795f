//! Large networks: `namewire-sim make` writes the files that a scenario names.
//!
//! | network | module |
//! | --- | --- |
//! | satellites and ground stations, with links that change | [`constellation`] |
//! | routers in a plane, on a grid, and with few hubs | [`graphs`] |
//! | links of any network that break and are mended | [`failures`] |

pub mod constellation;
pub mod failures;
pub mod graphs;

/// A link of `links.csv`.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct LinkRow {
    pub a: String,
    pub b: String,
    pub delay: String,
    pub up: &'static str,
}

/// A delay as files have it, to the microsecond.
pub(crate) fn delay_text(seconds: f64) -> String {
    format!("{:.3}ms", (seconds * 1e6).round() / 1e3)
}
