//! Rates from samples of counters: how much per second over the last ten seconds?
//!
//! If a counter went back, it was reset: its whole value counts as an increase since then, as Prometheus's `rate`
//! assumes. A restarted router begins a new history. If a face is newer than ten seconds, its rates count since the
//! first sample that shows it.
//!
//! Limit: the history keeps the latest sample and one sample a second, so at most a dozen, however often the program
//! takes samples.

use namewire_packet::{
    FaceId,
    nfd::{CsInfo, CsUsage, FaceCounters, FaceStatus, ForwarderStatus},
};
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    time::Duration,
};

/// The span of time that rates are about.
pub(super) const WINDOW: Duration = Duration::from_secs(10);
/// The least time between two samples that are kept. A little less than a second, for one that comes early.
const SPACING: Duration = Duration::from_millis(900);

/// What a forwarder said of itself at one time.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    /// When it was asked, since this program began.
    pub(super) taken: Duration,
    pub(super) status: ForwarderStatus,
    pub(super) faces: Vec<FaceStatus>,
    pub(super) cs: CsInfo,
    /// `None`, as the next two: the forwarder does not tell.
    pub(super) cs_usage: Option<CsUsage>,
    /// Entries of the PIT that are taken, and how many there are.
    pub(super) pit: Option<(u64, u64)>,
    pub(super) drops: Option<BTreeMap<String, u64>>,
    pub(super) strategy_choices: usize,
}

/// The counters of a sample.
struct Counters {
    taken: Duration,
    status: ForwarderStatus,
    faces: HashMap<FaceId, FaceCounters>,
    cs: CsInfo,
    drops: Option<BTreeMap<String, u64>>,
}

impl Counters {
    fn of(sample: &Sample) -> Self {
        Counters {
            taken: sample.taken,
            status: sample.status.clone(),
            faces: sample.faces.iter().map(|face| (face.face_id, face.counters)).collect(),
            cs: sample.cs,
            drops: sample.drops.clone(),
        }
    }
}

/// The counters of the last ten seconds, oldest first.
#[derive(Default)]
pub(super) struct History {
    kept: VecDeque<Counters>,
}

/// What happened per second.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Rates {
    /// Between the two samples; 0 after the first one, when there are no rates.
    pub(super) span: Duration,
    pub(super) in_interests: f64,
    pub(super) out_interests: f64,
    pub(super) in_data: f64,
    pub(super) out_data: f64,
    pub(super) in_nacks: f64,
    pub(super) out_nacks: f64,
    /// Part of the look-ups that the Content Store answered; `None` without look-ups.
    pub(super) hit_share: Option<f64>,
    pub(super) faces: HashMap<FaceId, FaceRates>,
    /// Drops that rose, most first.
    pub(super) drops: Vec<DropRate>,
}

/// Traffic of a face per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct FaceRates {
    pub(super) in_packets: f64,
    pub(super) out_packets: f64,
    pub(super) in_bytes: f64,
    pub(super) out_bytes: f64,
}

/// A reason for drops that occurred within the last ten seconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DropRate {
    pub(super) reason: String,
    pub(super) rise: u64,
    pub(super) total: u64,
}

impl History {
    /// Adds the latest sample.
    pub(super) fn push(&mut self, sample: &Sample) {
        let is_of_same_run = |last: &Counters| {
            last.status.start_timestamp_ms == sample.status.start_timestamp_ms && last.taken <= sample.taken
        };
        if !self.kept.back().is_some_and(is_of_same_run) {
            self.kept.clear();
        }
        let count = self.kept.len();
        if count >= 2 && self.kept[count - 1].taken - self.kept[count - 2].taken < SPACING {
            self.kept.pop_back();
        }
        self.kept.push_back(Counters::of(sample));
        while self.kept.len() > 2 && self.kept[1].taken + WINDOW <= sample.taken {
            self.kept.pop_front();
        }
    }

    /// The rates between the latest sample and the one of ten seconds before, or the oldest.
    pub(super) fn rates(&self) -> Rates {
        let (Some(old), Some(new)) = (self.kept.front(), self.kept.back()) else { return Rates::default() };
        let span = new.taken - old.taken;
        if span.is_zero() {
            return Rates::default();
        }
        let rate = |of: fn(&ForwarderStatus) -> u64| per_second(of(&old.status), of(&new.status), span);
        let (hits, misses) = (rise(old.cs.n_hits, new.cs.n_hits), rise(old.cs.n_misses, new.cs.n_misses));
        Rates {
            span,
            in_interests: rate(|status| status.packets.in_interests),
            out_interests: rate(|status| status.packets.out_interests),
            in_data: rate(|status| status.packets.in_data),
            out_data: rate(|status| status.packets.out_data),
            in_nacks: rate(|status| status.packets.in_nacks),
            out_nacks: rate(|status| status.packets.out_nacks),
            hit_share: (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64),
            faces: new
                .faces
                .iter()
                .filter_map(|(face, now)| Some((*face, self.face(*face, now, new.taken)?)))
                .collect(),
            drops: drops(old, new),
        }
    }

    /// `None` for a face that only the latest sample shows.
    fn face(&self, face: FaceId, new: &FaceCounters, taken: Duration) -> Option<FaceRates> {
        let (since, old) = self.kept.iter().find_map(|kept| Some((kept.taken, kept.faces.get(&face)?)))?;
        let span = taken - since;
        if span.is_zero() {
            return None;
        }
        Some(FaceRates {
            in_packets: per_second(old.packets.received(), new.packets.received(), span),
            out_packets: per_second(old.packets.sent(), new.packets.sent(), span),
            in_bytes: per_second(old.in_bytes, new.in_bytes, span),
            out_bytes: per_second(old.out_bytes, new.out_bytes, span),
        })
    }
}

fn drops(old: &Counters, new: &Counters) -> Vec<DropRate> {
    let (Some(before), Some(after)) = (&old.drops, &new.drops) else { return Vec::new() };
    let all = after.iter().map(|(reason, &total)| DropRate {
        reason: reason.clone(),
        rise: rise(before.get(reason).copied().unwrap_or(0), total),
        total,
    });
    let mut risen: Vec<DropRate> = all.filter(|drop| drop.rise > 0).collect();
    risen.sort_by_key(|drop| std::cmp::Reverse(drop.rise));
    risen
}

fn rise(old: u64, new: u64) -> u64 {
    new.checked_sub(old).unwrap_or(new)
}

fn per_second(old: u64, new: u64, span: Duration) -> f64 {
    rise(old, new) as f64 / span.as_secs_f64()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use namewire_packet::nfd::{FacePersistency, FaceScope, FaceState, LinkType, PacketCounts};

    pub(in crate::top) fn face(id: u64, uri: &str, counters: FaceCounters) -> FaceStatus {
        FaceStatus {
            face_id: FaceId(id),
            uri: uri.to_owned(),
            local_uri: "udp4://192.0.2.1:6363".to_owned(),
            expiration_period_ms: None,
            face_scope: FaceScope::NonLocal,
            face_persistency: FacePersistency::Permanent,
            link_type: LinkType::PointToPoint,
            base_congestion_marking_interval_ns: None,
            default_congestion_threshold_bytes: None,
            mtu: None,
            counters,
            flags: 0,
            port: None,
            state: Some(FaceState::Up),
            path_mtu: None,
            link: Default::default(),
        }
    }

    /// A sample of this second with one face that has counted this number of Interests of 100 bytes.
    fn sample(second: u64, id: u64, interests: u64) -> Sample {
        let packets = PacketCounts { in_interests: interests, ..PacketCounts::default() };
        let counters = FaceCounters { packets, in_bytes: interests * 100, ..FaceCounters::default() };
        Sample {
            taken: Duration::from_secs(second),
            status: ForwarderStatus { packets, ..ForwarderStatus::default() },
            faces: vec![face(id, "udp4://192.0.2.2:6363", counters)],
            ..Sample::default()
        }
    }

    fn history(samples: &[Sample]) -> History {
        let mut history = History::default();
        samples.iter().for_each(|sample| history.push(sample));
        history
    }

    #[test]
    fn rates_are_those_of_the_last_ten_seconds() {
        // 5 a second for 20 seconds, then 15.
        let mut samples: Vec<Sample> = (0..=20).map(|second| sample(second, 300, second * 5)).collect();
        assert_eq!(history(&samples[..1]).rates(), Rates::default(), "one sample has no rates");
        assert_eq!(history(&samples).rates().in_interests, 5.0);
        samples.extend((1..=5).map(|second| sample(20 + second, 300, 100 + second * 15)));
        let rates = history(&samples).rates();
        assert_eq!((rates.span, rates.in_interests), (WINDOW, 10.0));
        let face = rates.faces[&FaceId(300)];
        assert_eq!((face.in_packets, face.in_bytes, face.out_packets), (10.0, 1000.0, 0.0));
    }

    #[test]
    fn a_counter_that_went_back_counts_from_nothing() {
        let rates = history(&[sample(0, 300, 1000), sample(2, 300, 10)]).rates();
        assert_eq!((rates.in_interests, rates.faces[&FaceId(300)].in_packets), (5.0, 5.0));
    }

    #[test]
    fn a_router_that_started_anew_has_no_rates_of_before() {
        let mut anew = sample(2, 300, 5000);
        anew.status.start_timestamp_ms = 7;
        assert_eq!(history(&[sample(0, 300, 1000), anew.clone()]).rates(), Rates::default());
        let later = Sample { taken: Duration::from_secs(4), ..anew.clone() };
        assert_eq!(history(&[sample(0, 300, 1000), anew, later]).rates().in_interests, 0.0);
    }

    #[test]
    fn faces_come_and_go() {
        let rates = history(&[sample(0, 300, 0), sample(4, 301, 100), sample(6, 301, 300)]).rates();
        assert_eq!(rates.faces.keys().collect::<Vec<_>>(), [&FaceId(301)], "300 is gone");
        assert_eq!(rates.faces[&FaceId(301)].in_packets, 100.0, "since it came");
        assert!(history(&[sample(0, 300, 0), sample(4, 301, 100)]).rates().faces.is_empty(), "too new for a rate");
    }

    #[test]
    fn hits_and_drops_are_those_since() {
        let with = |second, n_hits, n_misses, dropped: &[(&str, u64)]| Sample {
            cs: CsInfo { n_hits, n_misses, ..CsInfo::default() },
            drops: Some(dropped.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect()),
            ..sample(second, 300, 0)
        };
        let rates = history(&[
            with(0, 100, 100, &[("engine.no-route", 5), ("link.queue-full", 9)]),
            with(1, 103, 101, &[("engine.no-route", 8), ("link.queue-full", 9), ("engine.looped", 4)]),
        ])
        .rates();
        assert_eq!(rates.hit_share, Some(0.75));
        let shown: Vec<_> = rates.drops.iter().map(|drop| (&drop.reason[..], drop.rise, drop.total)).collect();
        assert_eq!(shown, [("engine.looped", 4, 4), ("engine.no-route", 3, 8)]);
        assert_eq!(history(&[with(0, 1, 1, &[]), with(1, 1, 1, &[])]).rates().hit_share, None);
    }

    #[test]
    fn frequent_samples_do_not_fill_the_memory() {
        let mut history = History::default();
        for tick in 0..1000 {
            history.push(&Sample { taken: Duration::from_millis(tick * 100), ..sample(0, 300, tick) });
        }
        assert!(history.kept.len() <= 13, "{}", history.kept.len());
        let rates = history.rates();
        assert!((rates.in_interests - 10.0).abs() < 1e-9 && rates.span >= WINDOW, "{rates:?}");
    }
}
