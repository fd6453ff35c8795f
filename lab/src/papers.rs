//! The papers' figures: the files of `lab/papers/`, read by the part of a paper that has them.

use anyhow::Context as _;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub const NAME_TRIE_18: &str = include_str!("../papers/nametrie18.json");
pub const TAG_NET_16: &str = include_str!("../papers/tagnet16.json");
pub const TAKEMASA_17: &str = include_str!("../papers/takemasa17.json");
pub const TAKEMASA_19: &str = include_str!("../papers/takemasa19.json");
pub const YUAN_15: &str = include_str!("../papers/yuan15.json");

/// The figures of a paper at this place (a JSON pointer), for example `/table_4_5/columns`.
///
/// # Errors
/// If there are none, or others than expected.
pub fn figures<T: DeserializeOwned>(paper: &str, place: &str) -> anyhow::Result<T> {
    let mut paper: Value = serde_json::from_str(paper)?;
    let figures = paper.pointer_mut(place).map(Value::take).with_context(|| format!("the paper has no {place}"))?;
    serde_json::from_value(figures).with_context(|| format!("the paper's {place}"))
}
