//! Does every prefix get the hash of its octets, and do hashes spread?

use crate::adversarial_names::{any_name, component, value};
use namewire_tables::{HashKey, MAX_NAME_COMPONENTS, NameHashes, TooManyComponents, hash_name};
use proptest::prelude::*;

proptest! {
    #[test]
    fn every_prefix_has_the_hash_of_its_octets(names in prop::collection::vec(any_name(), 1..4), seed: u64) {
        let key = HashKey::from_seed(seed);
        let mut hashes = NameHashes::default(); // reused: a longer name before must not show
        for name in names {
            let octets = value(&name);
            hashes.compute(&key, &octets).unwrap();
            prop_assert_eq!(hashes.components(), name.len());
            for n in 0..=name.len() {
                let prefix = value(&name[..n]);
                prop_assert_eq!(hashes.prefix_octets(n), prefix.len());
                prop_assert_eq!(hashes.prefix_hash(n), hash_name(&key, &prefix));
            }
            prop_assert_eq!(hashes.full_hash(), hash_name(&key, &octets));
            prop_assert!(hashes.describes(&octets));
        }
    }

    /// The contract asks for valid names; anything else must still end, within the octets.
    #[test]
    fn octets_that_are_no_name_do_no_harm(octets in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut hashes = NameHashes::default();
        if hashes.compute(&HashKey::from_seed(1), &octets).is_ok() {
            prop_assert_eq!(hashes.prefix_octets(hashes.components()), octets.len());
        }
    }
}

#[test]
fn a_name_of_too_many_components_is_refused_and_leaves_the_root() {
    let key = HashKey::from_seed(3);
    let longest = component(8, b"").repeat(MAX_NAME_COMPONENTS);
    let too_long = component(8, b"").repeat(MAX_NAME_COMPONENTS + 1);
    let mut hashes = [NameHashes::default(), NameHashes::default()];
    assert_eq!(hashes[0].compute(&key, &longest), Ok(()));
    assert_eq!(hashes[0].components(), MAX_NAME_COMPONENTS);
    assert_eq!(hashes[0].compute(&key, &too_long), Err(TooManyComponents));
    assert_eq!(hashes[0].components(), 0);
    assert_eq!(hashes[0].full_hash(), hash_name(&key, b""));

    assert_eq!(NameHashes::compute_batch(&key, &[&too_long, &longest], &mut hashes), 1);
    assert!(!hashes[0].describes(&too_long));
    assert!(hashes[1].describes(&longest));
}

#[test]
fn another_key_gives_other_hashes_and_stays_secret() {
    let name = component(8, b"name");
    let hash = |key: HashKey| hash_name(&key, &name);
    assert_ne!(hash(HashKey::from_seed(1)), hash(HashKey::from_seed(2)));
    assert_ne!(hash(HashKey::new([0; 16])), hash(HashKey::new([1; 16])));
    assert_eq!(format!("{:?}", HashKey::new([0x41; 16])), "HashKey(secret)");
}

/// Pearson's χ² over 1024 buckets has mean 1023 and standard deviation 45; six of
/// those either way is a chance of one in a thousand million for a good hash.
#[test]
fn sequential_names_spread_evenly_in_every_part_of_the_hash() {
    let key = HashKey::from_seed(42);
    let samples = 1 << 16;
    for shift in [0, 20, 54] {
        let mut buckets = [0_u32; 1024];
        for number in 0..samples {
            let name = [component(8, b"video"), component(50, &u32::to_be_bytes(number))].concat();
            buckets[(hash_name(&key, &name) >> shift) as usize % 1024] += 1;
        }
        let expected = f64::from(samples) / 1024.0;
        let chi_squared: f64 = buckets.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
        assert!((chi_squared - 1023.0).abs() < 6.0 * 45.3, "bits from {shift}: {chi_squared}");
    }
}

/// A changed input bit changes each output bit half of the time.
#[test]
fn one_bit_changes_half_of_the_hash() {
    let key = HashKey::from_seed(43);
    let mut random = fastrand::Rng::with_seed(44);
    let (rounds, mut changed) = (4000, [0_u32; 64]);
    for _ in 0..rounds {
        let mut octets: Vec<u8> = (0..random.usize(1..40)).map(|_| random.u8(..)).collect();
        let before = hash_name(&key, &octets);
        let place = random.usize(..octets.len());
        octets[place] ^= 1 << random.u32(..8);
        let difference = before ^ hash_name(&key, &octets);
        for (bit, count) in changed.iter_mut().enumerate() {
            *count += (difference >> bit) as u32 & 1;
        }
    }
    // Binomial: mean 2000, standard deviation 31.6.
    for (bit, count) in changed.into_iter().enumerate() {
        assert!((1800..2200).contains(&count), "bit {bit} changed {count} times of {rounds}");
    }
}
