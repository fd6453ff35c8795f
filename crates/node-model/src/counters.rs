//! Counters of `status/drops`: which count losses and refusals, and which count normal work?
//!
//! The dataset has both, because programs read it by name. Output for people separates them: it never shows a counter
//! of normal work under "drops".

/// How the names of counters of normal work begin.
const EVENTS: [&str; 10] = [
    "limit.cs-evicted",
    "limit.cs-version-replaced",
    "path-mtu.",
    "tag.in-",
    "tag.out-packets",
    "core.",
    "reliability.",
    "congestion.",
    "link.in-tag-packets",
    "link.out-tag-packets",
];

/// True if the counter of this name counts what a router does in normal work, and no loss.
pub fn is_event(counter: &str) -> bool {
    EVENTS.iter().any(|prefix| counter.starts_with(prefix))
}
