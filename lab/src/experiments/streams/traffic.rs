//! The packets of a case, one after the other: names, patterns and next hops.
//!
//! A file has a parent under a prefix of the FIB, and segments: SegmentNameComponents of four bytes (NDN naming
//! conventions, revision 3). No name is asked for twice. Which fetch an Interest belongs to follows Zipf's law with
//! [`ALPHA`].
//!
//! Parents that are *alike* (for [`Asked::Alike`]) share a prefix and all characters but four. The flow cache finds the
//! place of a parent by its *number*: a product of the parent's bytes up to the last whole block of 16 and the first
//! half of its last 16 bytes, exclusive-or the other half (`NameHashes::parent_number`). The cache takes the lowest and
//! the highest bits of the number, so the bytes in the middle of that half do not change the place. Anybody can make
//! such parents without the key. Should the number change, these are names of parents that never repeat.

use fastrand::Rng;
use namewire_engine::FaceId;
use namewire_packet::lp::LpHeaders;

use super::case::{Asked, Case, FETCHES, TWICE_APART};
use crate::experiments::prefetch::forwarder::PRODUCER;
use crate::experiments::prefetch::traffic::{Packets, Pattern};
use crate::requests::popularity::Popularity;
use crate::split_mix::split_mix;
use crate::synthetic_names::{ALPHABET, COMPONENT_TLV_BYTES, SyntheticNames};

/// The exponent of the fetches' popularity (Takemasa19 §5.4.1).
pub(super) const ALPHA: f64 = 0.8;
/// Next hops: the prefix decides which, so that a wrong look-up shows in seven of eight cases.
pub(super) const PRODUCERS: u64 = 8;

/// Bytes of each Data, about as many as in `packet-costs`.
///
/// N.B. With Contents of the same size, Data had five sizes, and the store's memory became a mixture of holes: a Data
/// took 700 to 840 instructions to insert, not 450, the more the later a case came. And names of 8 components made Data
/// with lengths of 253 to 255 bytes, which the decoder reads by its slow way (907 instructions, not 298).
const DATA_BYTES: usize = 250;

/// SegmentNameComponent, four bytes.
const SEGMENT_HEADER: [u8; 2] = [50, 4];
/// The first segment that takes four bytes.
const FIRST_SEGMENT: u32 = 1 << 16;
/// Segments of a file: 32 MB, if a segment has 8 kB. Then the fetch continues with another file, so that a few fetches
/// are not always of the same few names. A multiple of each burst, and no divisor of a warm-up: after that, the file of
/// a single fetch is not new.
const SEGMENTS: u32 = 63 * 64;
/// Components of the longest name.
const MOST_COMPONENTS: u64 = 8;
/// Bytes of the longest name.
const NAME_BYTES_MAX: usize = (MOST_COMPONENTS as usize - 1) * COMPONENT_TLV_BYTES + 6;
/// The bytes in which alike parents differ, from their end.
const ALIKE_FROM_END: std::ops::Range<usize> = 2..6;

/// The face towards the producer of a prefix.
pub(super) const fn producer(prefix: u64) -> FaceId {
    FaceId(PRODUCER.0 + prefix % PRODUCERS)
}

/// What one Interest asks for.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    name: [u8; NAME_BYTES_MAX],
    name_bytes: u8,
    /// Where the Interest has to go.
    pub(super) producer: FaceId,
}

impl Wanted {
    pub(super) fn name(&self) -> &[u8] {
        &self.name[..self.name_bytes.into()]
    }
}

/// A file: its parent, and the next of its segments.
struct File {
    wanted: Wanted,
    next_segment: u32,
}

/// An endless sequence of Interests; the same for the same arguments.
pub(super) struct Requests {
    case: Case,
    names: SyntheticNames,
    random: Rng,
    popularity: Popularity,
    files: Vec<File>,
    /// Of [`Asked::Twice`], the next to come.
    pair: Vec<File>,
    place: usize,
    /// The number of the next file.
    next_file: u64,
    /// The fetch of the present burst, and how many Interests of it are left.
    fetch: usize,
    left: u32,
    scratch: Vec<u8>,
}

impl Requests {
    /// Files of different `number`s are different.
    pub(super) fn new(case: Case, number: u64, names: SyntheticNames) -> Self {
        let fetches = match case.asked {
            Asked::Segments { fetches, .. } => fetches,
            Asked::Twice | Asked::Alike => FETCHES,
        };
        let mut requests = Self {
            case,
            names,
            random: Rng::with_seed(number),
            popularity: Popularity::zipf(fetches, ALPHA),
            files: Vec::new(),
            pair: Vec::new(),
            place: 0,
            next_file: number << 37,
            fetch: 0,
            left: 0,
            scratch: Vec::new(),
        };
        requests.files = (0..fetches).map(|_| requests.new_file()).collect();
        requests
    }

    fn new_file(&mut self) -> File {
        let number = self.next_file;
        self.next_file += 1;
        let (least, most) = self.case.components;
        let components = least + split_mix(number) % (most - least + 1);
        let names = self.names.with_name_components(components - 1);
        names.write_name(number, &mut self.scratch);
        let (mut name, parent) = ([0; NAME_BYTES_MAX], self.scratch.len());
        name[..parent].copy_from_slice(&self.scratch);
        name[parent..][..2].copy_from_slice(&SEGMENT_HEADER);
        let name_bytes = parent as u8 + 6;
        let producer = producer(names.prefix_of_name(number));
        File { wanted: Wanted { name, name_bytes, producer }, next_segment: FIRST_SEGMENT }
    }

    /// The next Interest.
    pub(super) fn next(&mut self) -> Wanted {
        match self.case.asked {
            Asked::Segments { never_again_percent, .. } if self.random.u8(..100) < never_again_percent => {
                self.new_file().next()
            }
            Asked::Segments { burst, .. } => {
                if self.left == 0 {
                    (self.fetch, self.left) = (self.draw(), burst);
                }
                self.left -= 1;
                self.file(self.fetch).next()
            }
            Asked::Twice => self.next_of_twice(),
            Asked::Alike => {
                let fetch = self.draw();
                self.file(fetch).next_alike()
            }
        }
    }

    fn draw(&mut self) -> usize {
        self.popularity.draw(self.random.u64(..)) as usize
    }

    /// The file of a fetch; another one if all its segments were asked for.
    fn file(&mut self, fetch: usize) -> &mut File {
        if self.files[fetch].next_segment == FIRST_SEGMENT + SEGMENTS {
            self.files[fetch] = self.new_file();
        }
        &mut self.files[fetch]
    }

    fn next_of_twice(&mut self) -> Wanted {
        if self.place.is_multiple_of(2 * TWICE_APART) {
            self.pair = (0..TWICE_APART).map(|_| self.new_file()).collect();
        }
        self.place += 1;
        self.pair[(self.place - 1) % TWICE_APART].next()
    }
}

impl File {
    fn next(&mut self) -> Wanted {
        let end = usize::from(self.wanted.name_bytes);
        self.wanted.name[end - 4..end].copy_from_slice(&self.next_segment.to_be_bytes());
        self.next_segment += 1;
        self.wanted
    }

    /// The same segment of another parent that is alike.
    fn next_alike(&mut self) -> Wanted {
        // An odd multiplier permutes the numbers below a power of two, and no character stays the same for long.
        let number = self.next_segment.wrapping_mul(0x9e37_79b1);
        let mut wanted = self.next();
        let parent = usize::from(wanted.name_bytes) - 6;
        let differing = &mut wanted.name[parent - ALIKE_FROM_END.end..parent - ALIKE_FROM_END.start];
        for (place, byte) in differing.iter_mut().enumerate() {
            *byte = ALPHABET[(number >> (5 * place)) as usize % ALPHABET.len()];
        }
        wanted
    }
}

/// Packets for names of 4 to 8 components, by the components of the parent.
pub(super) struct Patterns(Vec<Pattern>);

impl Patterns {
    pub(super) fn new(names: SyntheticNames) -> Self {
        let pattern = |components| {
            let mut name = Vec::new();
            names.with_name_components(components).write_name(0, &mut name);
            name.extend_from_slice(&SEGMENT_HEADER);
            name.extend_from_slice(&FIRST_SEGMENT.to_be_bytes());
            Pattern::new(&name, DATA_BYTES - (Pattern::new(&name, 1).data_bytes() - 1))
        };
        // The shortest parents have 3 components.
        Self((0..MOST_COMPONENTS).map(|parent| pattern(parent.max(3))).collect())
    }

    fn of(&mut self, wanted: &Wanted) -> &mut Pattern {
        &mut self.0[usize::from(wanted.name_bytes) / COMPONENT_TLV_BYTES]
    }

    pub(super) fn push_interest(&mut self, wanted: &Wanted, nonce: u32, packets: &mut Packets) {
        self.of(wanted).push_interest(wanted.name(), nonce, packets);
    }

    pub(super) fn push_data(&mut self, wanted: &Wanted, headers: LpHeaders, packets: &mut Packets) {
        self.of(wanted).push_data(wanted.name(), headers, packets);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::super::case::{ALIKE, COMPONENTS, RANDOM, STREAMS, TWICE};
    use super::*;

    const INTERESTS: usize = 4_000;

    fn names() -> SyntheticNames {
        SyntheticNames::new(1, 20_000)
    }

    /// All are different, and go where their prefix leads.
    fn asked(case: Case) -> Vec<Wanted> {
        let mut requests = Requests::new(case, 3, names());
        let asked: Vec<Wanted> = (0..INTERESTS).map(|_| requests.next()).collect();
        assert_eq!(asked.iter().map(Wanted::name).collect::<HashSet<_>>().len(), INTERESTS, "{case:?}");
        let mut prefix = Vec::new();
        let mut prefixes = HashMap::new();
        for number in 0..names().prefixes() {
            names().write_prefix(number, &mut prefix);
            prefixes.insert(prefix.clone(), producer(number));
        }
        for wanted in &asked {
            let ends = (0..parent(wanted).len()).rev().step_by(COMPONENT_TLV_BYTES).map(|end| end + 1);
            let longest = ends.into_iter().find_map(|end| prefixes.get(&wanted.name()[..end]));
            assert_eq!(longest, Some(&wanted.producer), "{case:?}");
        }
        asked
    }

    fn parent(wanted: &Wanted) -> &[u8] {
        &wanted.name()[..wanted.name().len() - 6]
    }

    fn parents(asked: &[Wanted]) -> HashMap<&[u8], Vec<usize>> {
        let mut parents: HashMap<&[u8], Vec<usize>> = HashMap::new();
        for (place, wanted) in asked.iter().enumerate() {
            parents.entry(parent(wanted)).or_default().push(place);
        }
        parents
    }

    #[test]
    fn segments_of_a_file_differ_in_the_last_component_only() {
        let asked_for = asked(STREAMS);
        let lengths: HashSet<usize> =
            asked_for.iter().map(|wanted| parent(wanted).len() / COMPONENT_TLV_BYTES).collect();
        let (least, most) = COMPONENTS;
        assert_eq!(lengths, (least as usize - 1..most as usize).collect());
        let parents = parents(&asked_for);
        assert!((FETCHES as usize / 2..=FETCHES as usize).contains(&parents.len()), "{} files", parents.len());
        let often = parents.values().map(Vec::len).max().expect("some");
        assert!((150..350).contains(&often), "Zipf: the first file has 4.8 % of the Interests, not {often}");
    }

    #[test]
    fn a_burst_has_one_file() {
        let asked = Asked::Segments { fetches: 100, burst: 16, never_again_percent: 0 };
        let asked = self::asked(Case { asked, components: (6, 6) });
        for burst in asked.chunks(16) {
            assert!(burst.iter().all(|wanted| parent(wanted) == parent(&burst[0])));
        }
    }

    #[test]
    fn a_fetch_goes_on_with_another_file() {
        let asked = Asked::Segments { fetches: 1, burst: 1, never_again_percent: 0 };
        let mut requests = Requests::new(Case { asked, components: (5, 5) }, 1, names());
        let asked: Vec<Wanted> = (0..2 * SEGMENTS).map(|_| requests.next()).collect();
        assert!(parents(&asked).values().all(|places| places.len() == SEGMENTS as usize));
    }

    #[test]
    fn files_that_never_come_again_have_their_share() {
        assert_eq!(parents(&asked(RANDOM)).len(), INTERESTS, "no parent repeats");
        let asked = Asked::Segments { fetches: 10, burst: 1, never_again_percent: 25 };
        let files = parents(&self::asked(Case { asked, components: COMPONENTS })).len();
        assert!((920..1_080).contains(&files), "{files} files in {INTERESTS} Interests, not a quarter");
    }

    #[test]
    fn a_parent_that_comes_twice_does_not_come_a_third_time() {
        for places in parents(&asked(TWICE)).values() {
            assert_eq!(places[..], [places[0], places[0] + TWICE_APART]);
        }
    }

    #[test]
    fn alike_parents_differ_in_bytes_that_the_number_of_a_parent_does_not_mix() {
        let asked = asked(ALIKE);
        assert_eq!(parents(&asked).len(), INTERESTS, "no parent repeats");
        let mut places = HashSet::new();
        for wanted in &asked {
            let (parent, bytes) = (parent(wanted), parent(wanted).len());
            // The last 16 bytes are two words, of which the second has its lowest bits first. Whole blocks are mixed.
            let (mixed, second) = (parent[..(bytes - 8).max(bytes / 16 * 16)].to_vec(), &parent[bytes - 8..]);
            places.insert((mixed, [second[0], second[1], second[6], second[7]]));
        }
        assert!(places.len() <= FETCHES as usize, "{} places", places.len());
    }
}
