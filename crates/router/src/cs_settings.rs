//! Settings of the Content Store of the whole router, and the text form of its policy.

use namewire_configuration::Settings;
use namewire_designs::policies::catalogue::{AdmissionName, EvictionName, PolicyChoice, PolicyOptions, UnknownPolicy};
use namewire_engine::EngineConfig;
use namewire_handover::messages::ContentStore;
use namewire_packet::NameBuf;
use namewire_worker::CsShare;
use std::sync::Arc;

/// The settings over all workers.
pub(crate) struct CsSettings {
    pub(crate) policy: PolicyChoice,
    pub(crate) capacity_bytes: u64,
    pub(crate) capacity_packets: u64,
    pub(crate) admit: bool,
    pub(crate) serve: bool,
    pub(crate) counted_prefixes: Arc<[NameBuf]>,
}

impl CsSettings {
    pub(crate) fn of(engine: &EngineConfig, policy: PolicyChoice) -> Self {
        CsSettings {
            policy,
            capacity_bytes: engine.cs_capacity_bytes,
            capacity_packets: engine.cs_capacity_packets,
            admit: engine.cs_admit,
            serve: engine.cs_serve,
            counted_prefixes: engine.cs_counted_prefixes.clone().into(),
        }
    }

    /// Takes over what the change sets; the rest stays.
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

    /// The share of one of `workers` workers.
    pub(crate) fn share(&self, workers: u64) -> CsShare {
        CsShare {
            policy: share_of_policy(self.policy, workers).into(),
            capacity_bytes: self.capacity_bytes.div_ceil(workers),
            capacity_packets: self.capacity_packets.div_ceil(workers),
            admit: self.admit,
            serve: self.serve,
            counted_prefixes: Arc::clone(&self.counted_prefixes),
        }
    }
}

/// Limits in Interests are configured for the whole router; this divides them among its workers.
pub(crate) fn share_of_policy(policy: PolicyChoice, workers: u64) -> PolicyChoice {
    let mut share = policy;
    let (history, window) = (&mut share.options.filter.history, &mut share.options.tiny_lfu.window);
    *history = history.map(|interests| u64::from(interests).div_ceil(workers) as u32);
    *window = window.map(|interests| interests.div_ceil(workers));
    share
}

/// Settings of the Content Store as the line says them.
pub(crate) fn said(settings: &CsSettings) -> ContentStore {
    ContentStore {
        policy: policy_text(settings.policy),
        capacity_bytes: settings.capacity_bytes,
        capacity_packets: settings.capacity_packets,
        admit: settings.admit,
        serve: settings.serve,
    }
}

/// The policy as `admission/eviction`.
pub(crate) fn policy_text(policy: PolicyChoice) -> String {
    format!("{}/{}", policy.admission.name(), policy.eviction.name())
}

/// The policy that a text names: `admission/eviction`, or an eviction alone. A part left empty stays as it is in `now`,
/// and so do the options.
///
/// # Errors
/// If one of the two names is unknown.
pub(crate) fn parse_policy(text: &str, now: PolicyChoice) -> Result<PolicyChoice, UnknownPolicy> {
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

/// Content Store settings that a running router should take; `None` leaves a setting as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsChange {
    /// Limit in bytes, over all workers.
    pub capacity_bytes: Option<u64>,
    /// Limit in packets, over all workers.
    pub capacity_packets: Option<u64>,
    /// Which Data goes first.
    pub eviction: Option<EvictionName>,
    /// Which Data comes in.
    pub admission: Option<AdmissionName>,
    /// Options of both.
    pub options: Option<PolicyOptions>,
    /// Whether new Data is admitted.
    pub admit: Option<bool>,
    /// Whether Interests are answered from the store.
    pub serve: Option<bool>,
    /// Prefixes whose look-ups and insertions are counted.
    pub counted_prefixes: Option<Vec<NameBuf>>,
}

impl CsChange {
    /// The settings in which two configurations differ.
    pub fn between(former: &Settings, latter: &Settings) -> Self {
        fn change<T: PartialEq>(former: T, latter: T) -> Option<T> {
            (former != latter).then_some(latter)
        }
        let [(former_bytes, former_packets), (bytes, packets)] = [former.cs.capacity(), latter.cs.capacity()];
        let [former_policy, policy] = [former.cs.policy(), latter.cs.policy()];
        Self {
            capacity_bytes: change(former_bytes, bytes),
            capacity_packets: change(former_packets, packets),
            eviction: change(former_policy.eviction, policy.eviction),
            admission: change(former_policy.admission, policy.admission),
            options: change(former_policy.options, policy.options),
            admit: change(former.cs.admit, latter.cs.admit),
            serve: change(former.cs.serve, latter.cs.serve),
            counted_prefixes: change(former.cs.counted_prefixes(), latter.cs.counted_prefixes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_what_changes() {
        let now = PolicyChoice { admission: AdmissionName::Filter, ..EvictionName::PriorityFifo.into() };
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

    #[test]
    fn a_change_of_a_file_is_what_it_says_anew() {
        let settings = |text: &str| -> Settings { toml::from_str(text).expect("a configuration") };
        let former = settings("[cs]\npolicy = \"fifo\"\npackets = 9\ncount = [\"/a\"]");
        assert_eq!(CsChange::between(&former, &former), CsChange::default());
        let latter = settings("[cs]\npolicy = \"fifo\"\npackets = 9\nadmit = false\ncount = [\"/b\"]");
        let change =
            CsChange { admit: Some(false), counted_prefixes: Some(vec!["/b".parse().unwrap()]), ..CsChange::default() };
        assert_eq!(CsChange::between(&former, &latter), change);
        let latter = settings("[cs]\nadmission = \"filter\"\nfilter_threshold = 3\npackets = 9\ncount = [\"/a\"]");
        let change = CsChange::between(&former, &latter);
        assert_eq!((change.eviction, change.admission), (Some(EvictionName::default()), Some(AdmissionName::Filter)));
        assert_eq!(change.options.and_then(|options| options.filter.threshold), Some(3));
        assert_eq!((change.capacity_packets, change.counted_prefixes), (None, None));
    }
}
