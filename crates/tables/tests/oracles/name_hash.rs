//! Name hash: every prefix gets the hash of its bytes, and hashes are spread evenly.

use crate::adversarial_names::{any_name, component, value};
use namewire_tables::sip_hash::SipHash;
use namewire_tables::{HashKey, MAX_NAME_COMPONENTS, NameHashes, TooManyComponents, hash_name};
use proptest::prelude::*;

proptest! {
    #[test]
    fn every_prefix_has_the_hash_of_its_bytes(names in prop::collection::vec(any_name(), 1..4), seed: u64, known: u64) {
        let key = HashKey::from_seed(seed);
        let mut hashes = NameHashes::default(); // reused: a longer name before must not show
        for name in names {
            let bytes = value(&name);
            hashes.compute(&key, &bytes).unwrap();
            prop_assert_eq!(hashes.components(), name.len());
            hashes.make_known(known);
            for n in 0..=name.len() {
                let prefix = value(&name[..n]);
                prop_assert_eq!(hashes.prefix_bytes(n), prefix.len());
                prop_assert_eq!(hashes.prefix_hash(n), hash_name(&key, &prefix));
            }
            prop_assert_eq!(hashes.full_hash(), hash_name(&key, &bytes));
            prop_assert!(hashes.describes(&bytes));
        }
    }

    /// The contract asks for valid names; any other input must still end, within the bytes.
    #[test]
    fn bytes_that_are_no_name_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut hashes = NameHashes::default();
        if hashes.compute(&HashKey::from_seed(1), &bytes).is_ok() {
            prop_assert_eq!(hashes.prefix_bytes(hashes.components()), bytes.len());
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

/// The definition, word by word, from the 16 bytes of the key: slow and with no special case.
fn hash_by_definition(secret: [u8; 16], name: &[u8]) -> u64 {
    let secret = u128::from_le_bytes(secret);
    let word = |counter: u64| {
        let mut hash = SipHash::<2, 4>::new([secret as u64, (secret >> 64) as u64]);
        hash.write(&counter.to_le_bytes());
        hash.finish()
    };
    let double = |counter| u128::from(word(counter)) | u128::from(word(counter + 1)) << 64;
    let prime = (1_u128 << 61) - 1;
    let (point, c, t) = (u128::from(word(0)) & prime, double(5), double(7));
    let product = |a: u64, b: u64, number: u128| {
        u128::from(a.wrapping_add(number as u64)) * u128::from(b.wrapping_add((number >> 64) as u64))
    };
    let (mut sum, mut tail) = (c, 1);
    let blocks = name.chunks_exact(16);
    for (i, block) in (0_u64..).zip(blocks.clone()) {
        let number = u128::from_le_bytes(block.try_into().unwrap());
        if i < 32 {
            sum = sum.wrapping_add(product(word(21 + 2 * i), word(22 + 2 * i), number));
        } else {
            for word in [number & ((1 << 56) - 1), number >> 56 & ((1 << 56) - 1), number >> 112] {
                tail = (tail * point + word) % prime;
            }
        }
    }
    if blocks.count() > 32 {
        sum = sum.wrapping_add(t.wrapping_mul(tail));
    }
    let mut padded = vec![0; 16];
    padded.extend_from_slice(name);
    let window = u128::from_le_bytes(padded[name.len()..].try_into().unwrap());
    sum = sum.wrapping_add(product(word(1), word(2), window));
    let low = (sum as u64).wrapping_add(name.len() as u64);
    let pair = double(9).wrapping_add(sum >> 64).wrapping_mul(double(11).wrapping_add(low.into()));
    let upper = (double(13).wrapping_add(pair) >> 64) as u64;
    let product = (upper ^ upper >> 32).wrapping_mul(word(3) | 1);
    product ^ product >> 32
}

proptest! {
    #[test]
    fn the_hash_is_the_one_defined(name in any_name(), secret: [u8; 16]) {
        let mut hashes = NameHashes::default();
        hashes.compute(&HashKey::new(secret), &value(&name)).unwrap();
        for n in 0..=name.len() {
            prop_assert_eq!(hashes.prefix_hash(n), hash_by_definition(secret, &value(&name[..n])), "prefix {}", n);
        }
    }

    /// Around the 16th component the prefixes leave the inline array, and around the 255th byte too; around the 32nd
    /// 16 bytes the keys end; around the 256th component names are refused.
    #[test]
    fn names_around_the_limits_are_hashed_like_others(
        length in 0..40_usize,
        components in prop_oneof![6..20_usize, 30..35_usize, 253..257_usize],
        secret: [u8; 16],
    ) {
        let name: Vec<Vec<u8>> = (0..components).map(|n| component(8, &vec![n as u8; (n + length) % 40])).collect();
        let bytes = value(&name);
        let mut hashes = NameHashes::default();
        hashes.compute(&HashKey::new(secret), &bytes).unwrap();
        prop_assert_eq!(hashes.components(), components);
        for n in [14, 15, 16, 17, 18, components] {
            let n = n.min(components);
            prop_assert_eq!(hashes.prefix_hash(n), hash_by_definition(secret, &value(&name[..n])), "prefix {}", n);
            prop_assert_eq!(hashes.prefix_bytes(n), value(&name[..n]).len());
        }
        hashes.compute(&HashKey::new(secret), b"").unwrap();
        prop_assert_eq!((hashes.components(), hashes.prefix_bytes(0)), (0, 0));
    }
}

#[test]
#[should_panic(expected = "prefix 3 of 2 components")]
fn a_prefix_that_an_earlier_name_had_is_not_there() {
    let (key, mut hashes) = (HashKey::from_seed(1), NameHashes::default());
    hashes.compute(&key, &component(8, b"a").repeat(3)).unwrap();
    hashes.compute(&key, &component(8, b"a").repeat(2)).unwrap();
    hashes.prefix_hash(3);
}

/// Names that differ in one byte, at any place: even after the last 16 bytes that have a key.
#[test]
fn every_byte_counts() {
    let (key, mut seen) = (HashKey::from_seed(7), std::collections::HashSet::new());
    let mut name = component(8, &[0; 2000]);
    seen.insert(hash_name(&key, &name));
    for place in 4..name.len() {
        name[place] = 1;
        assert!(seen.insert(hash_name(&key, &name)), "byte {place}");
        name[place] = 0;
    }
    for zeros in 0..2000 {
        assert!(seen.insert(hash_name(&key, &component(9, &vec![0; zeros]))), "{zeros} zeros");
    }
}

/// Pearson's χ² over 1024 cells has mean 1023 and standard deviation 45. For a good hash, six of those
/// either way has a probability of one in a thousand million. The cells are the parts of the hash that
/// tables use, alone and together: the upper 16 bits as a tag, the 48 below multiplied as a bucket, the
/// lowest as a place. (A sum that is only multiplied, or only folded, fails this for some keys.)
#[test]
fn numbered_names_spread_evenly_in_every_part_of_the_hash() {
    let samples = 1 << 15;
    let binary = |n: u32| [component(8, b"video"), component(50, &n.to_be_bytes())].concat();
    let decimal = |n: u32| [component(8, b"a"), component(8, n.to_string().as_bytes())].concat();
    let nested = |n: u32| [component(50, &[(n >> 8) as u8]), component(50, &[n as u8])].concat();
    let shapes: [&dyn Fn(u32) -> Vec<u8>; 3] = [&binary, &decimal, &nested];
    let cells: [fn(u64) -> u64; 5] = [
        |hash| hash,
        |hash| hash >> 54,
        |hash| hash >> 48,
        |hash| (hash << 16) >> 54,
        |hash| hash >> 59 << 5 | hash >> 43 & 31,
    ];
    for (shape, seed) in (0..3).flat_map(|shape| (0..12).map(move |seed| (shape, seed))) {
        let key = HashKey::from_seed(seed);
        let hashes: Vec<u64> = (0..samples).map(|n| hash_name(&key, &shapes[shape](n))).collect();
        for (part, cell) in cells.iter().enumerate() {
            let mut counts = [0_u32; 1024];
            hashes.iter().for_each(|&hash| counts[cell(hash) as usize % 1024] += 1);
            let expected = f64::from(samples) / 1024.0;
            let chi_squared: f64 = counts.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
            assert!((chi_squared - 1023.0).abs() < 6.0 * 45.3, "shape {shape} key {seed} part {part}: {chi_squared}");
        }
    }
}

/// A changed input bit changes each output bit half of the time.
#[test]
fn one_bit_changes_half_of_the_hash() {
    let key = HashKey::from_seed(43);
    let mut random = fastrand::Rng::with_seed(44);
    let (rounds, mut changed) = (4000, [0_u32; 64]);
    for _ in 0..rounds {
        let mut bytes: Vec<u8> = (0..random.usize(1..40)).map(|_| random.u8(..)).collect();
        let before = hash_name(&key, &bytes);
        let place = random.usize(..bytes.len());
        bytes[place] ^= 1 << random.u32(..8);
        let difference = before ^ hash_name(&key, &bytes);
        for (bit, count) in changed.iter_mut().enumerate() {
            *count += (difference >> bit) as u32 & 1;
        }
    }
    // Binomial: mean 2000, standard deviation 31.6.
    for (bit, count) in changed.into_iter().enumerate() {
        assert!((1800..2200).contains(&count), "bit {bit} changed {count} times of {rounds}");
    }
}
