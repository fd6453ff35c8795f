//! Settings of the Content Store of the whole router, and the text form of its policy.

use crate::operator::CsChange;
use namewire_engine::EngineConfig;
use namewire_packet::NameBuf;
use namewire_tables::CsPolicy;
use namewire_tables::cs_policy::catalogue::UnknownPolicy;
use std::sync::Arc;

/// Over all workers, or the share of one.
#[derive(Clone)]
pub(crate) struct CsSettings {
    pub(crate) policy: CsPolicy,
    pub(crate) capacity_bytes: u64,
    pub(crate) capacity_packets: u64,
    pub(crate) admit: bool,
    pub(crate) serve: bool,
    pub(crate) counted_prefixes: Arc<[NameBuf]>,
}

impl CsSettings {
    pub(crate) fn of(engine: &EngineConfig) -> Self {
        CsSettings {
            policy: engine.cs_policy,
            capacity_bytes: engine.cs_capacity_bytes,
            capacity_packets: engine.cs_capacity_packets,
            admit: engine.cs_admit,
            serve: engine.cs_serve,
            counted_prefixes: engine.cs_counted_prefixes.clone().into(),
        }
    }

    /// What the change says; the rest stays.
    pub(crate) fn take(&mut self, change: CsChange) {
        fn set<T>(setting: &mut T, change: Option<T>) {
            if let Some(change) = change {
                *setting = change;
            }
        }
        set(&mut self.capacity_bytes, change.capacity_bytes);
        set(&mut self.capacity_packets, change.capacity_packets);
        set(&mut self.policy.eviction, change.eviction);
        set(&mut self.policy.admission, change.admission);
        set(&mut self.policy.options, change.options);
        set(&mut self.admit, change.admit);
        set(&mut self.serve, change.serve);
        set(&mut self.counted_prefixes, change.counted_prefixes.map(Arc::from));
    }

    /// The share of one of so many workers.
    pub(crate) fn share(&self, workers: u64) -> Self {
        CsSettings {
            policy: share_of_policy(self.policy, workers),
            capacity_bytes: self.capacity_bytes.div_ceil(workers),
            capacity_packets: self.capacity_packets.div_ceil(workers),
            ..self.clone()
        }
    }
}

/// What is said of Interests of the whole router is divided among its workers.
pub(crate) fn share_of_policy(policy: CsPolicy, workers: u64) -> CsPolicy {
    let mut share = policy;
    let (history, window) = (&mut share.options.filter.history, &mut share.options.tiny_lfu.window);
    *history = history.map(|interests| u64::from(interests).div_ceil(workers) as u32);
    *window = window.map(|interests| interests.div_ceil(workers));
    share
}

/// `admission/eviction`.
pub(crate) fn policy_text(policy: CsPolicy) -> String {
    format!("{}/{}", policy.admission.as_str(), policy.eviction.as_str())
}

/// The policy that a text names, `admission/eviction` or an eviction alone. What is left empty
/// stays as it is in `now`, and so do the options.
///
/// # Errors
/// If one of the two is not known.
pub(crate) fn parse_policy(text: &str, now: CsPolicy) -> Result<CsPolicy, UnknownPolicy> {
    let (admission, eviction) = text.split_once('/').unwrap_or(("", text));
    let mut policy = now;
    if !admission.is_empty() {
        policy.admission = admission.parse()?;
    }
    if !eviction.is_empty() {
        policy.eviction = eviction.parse()?;
    }
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_tables::{AdmissionName, EvictionName};

    #[test]
    fn a_text_names_what_changes() {
        let now = CsPolicy { admission: AdmissionName::Filter, ..EvictionName::PriorityFifo.into() };
        let named = |text| parse_policy(text, now).map(policy_text);
        for (text, full) in [
            ("", "filter/priority-fifo"),
            ("/", "filter/priority-fifo"),
            ("lru", "filter/lru"),
            ("/lru", "filter/lru"),
            ("all/", "all/priority-fifo"),
            ("all/fifo", "all/fifo"),
        ] {
            assert_eq!(named(text), Ok(full.to_owned()), "{text}");
        }
        for (text, unknown) in [("best", "best"), ("fifo/lru", "fifo"), ("all/lru/", "lru/"), ("LRU", "LRU")] {
            assert_eq!(named(text), Err(UnknownPolicy(unknown.to_owned())), "{text}");
        }
    }
}
