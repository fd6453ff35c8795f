//! Traffic of the fingerprint-only PIT: what more is sent because nothing is aggregated and fingerprints collide?
//!
//! Source: Yuan15 §5.4.5, Eq. 5.5, Fig. 5.5. α = `requests_per_name`, S_I = [`INTEREST_OCTETS`], S_D = `data_octets`,
//! T_I = α − 1 and T_D = α [`collision_data`] for each name.

/// S_I.
const INTEREST_OCTETS: f64 = super::memory::PACKET_OCTETS;
/// Names that one fingerprint can meet: E d ld at d = 4.
const NEIGHBOURS: u32 = 24;
/// w.
const FINGERPRINT_BITS: i32 = 16;

/// T_D of one Interest, Eq. 5.5: Data sent where nobody asked for them, because i names have one fingerprint.
pub(super) fn collision_data() -> f64 {
    let mut ways = 1.0; // of 24 neighbours, i − 1
    let mut sum = 0.0;
    for others in 1..=NEIGHBOURS {
        ways *= f64::from(NEIGHBOURS - others + 1) / f64::from(others);
        let chance = ways * (-f64::from(FINGERPRINT_BITS) * f64::from(others)).exp2();
        sum += chance * f64::from(others) * f64::from(others + 1);
    }
    sum
}

/// Octets sent for one name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traffic {
    /// Neither aggregation nor multicast.
    pub(super) internet: f64,
    /// Both, by names.
    pub(super) ideal: f64,
    /// Fingerprints: multicast of Data, no aggregation.
    pub(super) fingerprints: f64,
    /// Of these, Data that collisions send.
    pub(super) collision_data: f64,
}

impl Traffic {
    /// Of names asked for so often.
    pub(super) fn new(requests_per_name: f64, data_octets: f64) -> Self {
        let collision_data = collision_data() * requests_per_name * data_octets;
        Self {
            internet: requests_per_name * (INTEREST_OCTETS + data_octets),
            ideal: INTEREST_OCTETS + data_octets,
            fingerprints: requests_per_name * INTEREST_OCTETS + data_octets + collision_data,
            collision_data,
        }
    }

    /// What more than the ideal is sent.
    pub(super) fn overhead(&self) -> f64 {
        self.fingerprints / self.ideal - 1.0
    }

    /// What more than the ideal is sent because of collisions.
    pub(super) fn collision_overhead(&self) -> f64 {
        self.collision_data / self.ideal
    }
}
