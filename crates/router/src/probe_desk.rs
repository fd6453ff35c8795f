//! The desk for probes: what the router says of itself, to whom and how often, and the probes that wait.
//!
//! [`crate::control`] writes the answers.

use namewire_configuration::{settings::Settings, text::Subnet};
use namewire_packet::{FaceId, NameBuf, lp::PitToken};
use namewire_shares::{HolderId, Rates};
use std::net::IpAddr;

/// A probe that waits for what the workers know.
pub(crate) struct ProbeAsker {
    pub(crate) target: NameBuf,
    pub(crate) name: NameBuf,
    pub(crate) incoming: FaceId,
    pub(crate) pit_token: Option<PitToken>,
    pub(crate) request_bytes: usize,
    /// The answer goes to the face itself, past the PIT.
    pub(crate) is_direct: bool,
}

/// What the router says of itself, and how often.
pub(crate) struct Probes {
    pub(crate) name: NameBuf,
    /// Taken by chance at each start.
    pub(crate) instance: u64,
    refuse: Vec<Subnet>,
    pub(crate) tells_addresses: bool,
    rates: Rates,
    pub(crate) counts: ProbeCounts,
}

/// What became of probes.
#[derive(Clone, Copy, Default)]
pub(crate) struct ProbeCounts {
    pub(crate) answered: u64,
    /// The asker had asked too often.
    pub(crate) too_many: u64,
    /// The configuration refuses the asker.
    pub(crate) refused: u64,
}

impl Probes {
    /// As the settings say; `host` is the host's name, and `instance` a random number.
    pub(crate) fn new(settings: &Settings, host: &str, instance: u64) -> Self {
        let of_host = || {
            let mut name = NameBuf::default();
            name.push_generic(host.as_bytes());
            name
        };
        Probes {
            name: settings.router.name.as_ref().map_or_else(of_host, |name| name.0.clone()),
            instance,
            refuse: settings.probes.refuse.clone(),
            tells_addresses: settings.probes.addresses,
            rates: Rates::new(settings.probes.rate),
            counts: ProbeCounts::default(),
        }
    }

    /// Whether the asker, which may have an address, gets an answer now.
    pub(crate) fn admit(&mut self, now_ns: u64, holder: HolderId, address: Option<IpAddr>) -> bool {
        if address.is_some_and(|address| self.refuse.iter().any(|subnet| subnet.contains(address))) {
            self.counts.refused += 1;
            return false;
        }
        let may = self.rates.try_take(holder, now_ns);
        self.counts.too_many += u64::from(!may);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_configuration::text::Prefix;

    fn probes(change: impl FnOnce(&mut Settings)) -> Probes {
        let mut settings = Settings::default();
        change(&mut settings);
        Probes::new(&settings, "host", 7)
    }

    #[test]
    fn a_router_has_its_own_name_or_that_of_its_host() {
        assert_eq!(probes(|_| {}).name.to_string(), "/host");
        let named = probes(|settings| settings.router.name = Some(Prefix("/site/r1".parse().expect("a name"))));
        assert_eq!(named.name.to_string(), "/site/r1");
    }

    #[test]
    fn who_is_refused_or_asks_too_often_is_counted() {
        let mut probes = probes(|settings| {
            settings.probes.rate = 1;
            settings.probes.refuse = vec!["192.0.2.0/24".parse().expect("a subnet")];
        });
        let holder = HolderId::ANY_REMOTE;
        let [refused, other] = ["192.0.2.1", "192.0.3.1"].map(|address| address.parse().ok());
        assert!(!probes.admit(0, holder, refused));
        assert_eq!((0..5).filter(|_| probes.admit(0, holder, other)).count(), 2);
        assert!(probes.admit(0, HolderId::ANY_LOCAL, None), "others are not concerned");
        assert_eq!((probes.counts.refused, probes.counts.too_many), (1, 3));
    }
}
