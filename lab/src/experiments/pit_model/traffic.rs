//! Traffic of the fingerprint-only PIT: how much more is sent without aggregation and with colliding fingerprints?
//!
//! Source: Yuan15 §5.4.5, Eq. 5.5, Fig. 5.5. α = `requests_per_name`, S_I = [`INTEREST_BYTES`], S_D = `data_bytes`,
//! T_I = α − 1 and T_D = α [`collision_data`] for each name.

/// S_I.
const INTEREST_BYTES: f64 = super::memory::PACKET_BYTES;
/// Names that may collide with a fingerprint: E d ld at d = 4.
const NEIGHBOURS: u32 = 24;
/// w.
const FINGERPRINT_BITS: i32 = 16;

/// T_D of one Interest, Eq. 5.5: Data sent to faces without a request, because i names share one fingerprint.
pub(super) fn collision_data() -> f64 {
    let mut ways = 1.0; // to choose i − 1 of 24 neighbours
    let mut sum = 0.0;
    for others in 1..=NEIGHBOURS {
        ways *= f64::from(NEIGHBOURS - others + 1) / f64::from(others);
        let chance = ways * (-f64::from(FINGERPRINT_BITS) * f64::from(others)).exp2();
        sum += chance * f64::from(others) * f64::from(others + 1);
    }
    sum
}

/// Bytes sent for one name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traffic {
    /// Without aggregation and multicast.
    pub(super) internet: f64,
    /// With both, by names.
    pub(super) ideal: f64,
    /// Fingerprints: multicast of Data, no aggregation.
    pub(super) fingerprints: f64,
    /// The part of these that is Data sent by collisions.
    pub(super) collision_data: f64,
}

impl Traffic {
    /// Traffic of names with this many requests each.
    pub(super) fn new(requests_per_name: f64, data_bytes: f64) -> Self {
        let collision_data = collision_data() * requests_per_name * data_bytes;
        Self {
            internet: requests_per_name * (INTEREST_BYTES + data_bytes),
            ideal: INTEREST_BYTES + data_bytes,
            fingerprints: requests_per_name * INTEREST_BYTES + data_bytes + collision_data,
            collision_data,
        }
    }

    /// The excess over the ideal.
    pub(super) fn overhead(&self) -> f64 {
        self.fingerprints / self.ideal - 1.0
    }

    /// The excess over the ideal that collisions cause.
    pub(super) fn collision_overhead(&self) -> f64 {
        self.collision_data / self.ideal
    }
}
