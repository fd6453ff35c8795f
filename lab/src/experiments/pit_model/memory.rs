//! Memory of the fingerprint-only PIT: how many entries, and for how long?
//!
//! Source: Yuan15 §5.4.5, Eqs. 5.1-5.4. P_total = [`interests`], f₁ = `unique`, F₁ = `unique_names`, k =
//! `lifetime_factor`, d = `subtables`, E = [`BUCKET_ENTRIES`], ld = [`LOAD`], w = [`FINGERPRINT_BITS`], M_bucket =
//! [`ENTRY_BITS`] (2 + 10 + 16 + 16: the paper's name for what one entry takes).
//!
//! Facts that the text leaves out, and that its figures imply:
//! - P_total is not all packets of the link. A 100 Gb/s link carries 10⁷ packets of 100 bytes in 80 ms. The share of
//!   Interests is that of a name's requests to one Data: half of the packets if no name is requested twice, two thirds
//!   if every name is.
//! - The hash table that stores names, 688.3 MB, holds 5 · 10⁶ names of 100 bytes with 26 bits each, at the same load:
//!   26 bits are the expiry and the faces, without fingerprint and flags.
//! - Table 5.2 leaves out fingerprint collisions (with them, 47.48 MB would be 47.5 at S = 4, where 47.4 is printed).
//! - Where false positives are allowed, colliding names share an entry: 36.67 MB less one collision rate.

/// Bits a second of the link.
const LINK_BITS_PER_S: f64 = 100e9;
/// S_I and S_D: bytes of a packet.
pub(super) const PACKET_BYTES: f64 = 100.0;
/// T_rtt.
const ROUND_TRIP_S: f64 = 0.08;
/// E.
const BUCKET_ENTRIES: f64 = 8.0;
/// ld.
const LOAD: f64 = 0.75;
/// w.
const FINGERPRINT_BITS: i32 = 16;
/// M_bucket.
const ENTRY_BITS: f64 = 44.0;
/// Bits of an entry in the table that stores names, besides the name.
const NAMED_ENTRY_BITS: f64 = 26.0;
/// n, and the most requests that a name has in the Zipf-like distributions.
const FACES: u32 = 16;
/// T_life / T_rtt of the tables.
pub(super) const LIFETIME_FACTOR: f64 = 10.0;
/// d of the tables.
pub(super) const SUBTABLES: u32 = 4;
const BYTES_PER_MB: f64 = 1e6;

/// Table 5.1: packets per second on a link with one Data per Interest and Data of `data_bytes`.
pub(super) fn packets_per_s(link_bits_per_s: f64, data_bytes: f64) -> f64 {
    link_bits_per_s / 8.0 / (PACKET_BYTES + data_bytes) * 2.0
}

/// Table 5.1: the names of the pending Interests among these packets, without a table around them.
pub(super) fn waiting_names_mb(link_bits_per_s: f64, data_bytes: f64) -> f64 {
    packets_per_s(link_bits_per_s, data_bytes) / 2.0 * ROUND_TRIP_S * PACKET_BYTES / BYTES_PER_MB
}

/// P_total: pending Interests, if each name has `requests_per_name` requests.
pub(super) fn interests(requests_per_name: f64) -> f64 {
    let packets = LINK_BITS_PER_S / 8.0 / PACKET_BYTES * ROUND_TRIP_S;
    packets * requests_per_name / (1.0 + requests_per_name)
}

/// The memory of a table with `entries` fingerprints.
fn memory_mb(entries: f64) -> f64 {
    entries * ENTRY_BITS / 8.0 / LOAD / BYTES_PER_MB
}

/// The memory of the table that stores names, if no name is requested twice.
pub(super) fn named_mb() -> f64 {
    interests(1.0) * (PACKET_BYTES + NAMED_ENTRY_BITS / 8.0) / LOAD / BYTES_PER_MB
}

/// The largest share of names that share their fingerprint with another: E d ld / 2^w.
pub(super) fn collision_rate(subtables: u32) -> f64 {
    BUCKET_ENTRIES * f64::from(subtables) * LOAD / f64::from(FINGERPRINT_BITS).exp2()
}

/// Eq. 5.4 for the share of Interests that have one duplicate each.
pub(super) fn duplicates_mb(subtables: u32, lifetime_factor: f64, duplicate_share: f64) -> f64 {
    let interests = interests(1.0 / (1.0 - duplicate_share / 2.0));
    let unique_names = interests * (1.0 - duplicate_share);
    let unique = unique_names * (1.0 - 2.0 * collision_rate(subtables)); // Eq. 5.1: both of a pair collide
    memory_mb(unique + (interests - unique) / 2.0 * lifetime_factor)
}

/// §5.7.1: colliding names share one entry, which stays no longer than others.
pub(super) fn false_positives_allowed_mb() -> f64 {
    memory_mb(interests(1.0) * (1.0 - collision_rate(SUBTABLES)))
}

/// Bits saved per entry if the PIT is segregated: face lists get shorter, fingerprints longer (§5.4.5).
pub(super) fn segregated_entry_saves_bits(parts: u32) -> u32 {
    FACES - (parts.next_power_of_two().ilog2() + FACES.div_ceil(parts))
}

/// Zipf-like fingerprints: f_i · i = P_total / (H i^S) for i up to 16 faces.
#[derive(Clone, Copy, Debug)]
pub(super) struct ZipfLike {
    /// f₁ of all Interests.
    pub(super) unique_share: f64,
    /// P_total / N_total.
    pub(super) requests_per_name: f64,
    /// Eq. 5.3: every fingerprint requested more than once stays for T_life.
    pub(super) memory_mb: f64,
}

impl ZipfLike {
    /// With exponent S.
    pub(super) fn new(exponent: f64) -> Self {
        let sum = |power: f64, from: u32| (from..=FACES).map(|i| f64::from(i).powf(-power)).sum::<f64>();
        let harmonic = sum(exponent, 1);
        let requests_per_name = harmonic / sum(exponent + 1.0, 1);
        let entries_per_interest = (1.0 + LIFETIME_FACTOR * sum(exponent + 1.0, 2)) / harmonic;
        Self {
            unique_share: 1.0 / harmonic,
            requests_per_name,
            memory_mb: memory_mb(interests(requests_per_name) * entries_per_interest),
        }
    }
}
