//! Shaped URLs: URLs from the hosts and paths of lists, in the proportions of a data set that is no longer available.
//!
//! Source: NameTrie18 Table II states three means of each data set: components per name, bytes per component, and bytes
//! that a name shares with others. The names are those of [`NameConversion::Domain`], which the paper's Tables III and
//! IV use (467 MB and 3.72 million look-ups per second are method 3 of Table V).
//!
//! One URL: a number of path segments is drawn from the lists' distribution. With probability *sharing*, the URL
//! continues an earlier one: the same scheme and host, and some of its segments. Otherwise it has a new host. Lengths
//! of hosts and segments are drawn first; then a host or segment of this length. Every host of the lists is used once;
//! then a new one is joined from the beginning of one and the end of another. A duplicate gets a last segment that is
//! joined so.
//!
//! Three parameters give the three means. The distributions of depth and of lengths are *tilted*: the share of length k
//! is multiplied by e^(t k), and t is solved for the mean. Sharing is solved by bisection over samples
//! ([`PILOTS`]), whose shared prefix grows with the logarithm of the number of names. A mean beyond what the lists can
//! give is missed; callers report the statistics of the result ([`super::NameStatistics`]).
//!
//! Limits: the popularity of hosts and directories is our model. Earlier URLs are equally likely to be continued, so a
//! site grows with its size; the first URLs ([`OWN_HOSTS`]) continue none, or the very first sites would have most URLs
//! and set all means. Schemes are ours: lists state none.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher};

use anyhow::ensure;
use fastrand::Rng;

use super::conversion::Url;
use super::{NameConversion, NameStatistics, Records, invented};
use crate::interrupt;
use crate::name_arena::NameArena;
use crate::papers;

/// The means of a data set.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub components_per_name: f64,
    pub component_bytes: f64,
    pub prefix_bytes: f64,
}

impl Shape {
    /// A data set of NameTrie18 Table II.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn of_name_trie_18(data_set: &str) -> anyhow::Result<Self> {
        let mean = |what| papers::figures(papers::NAME_TRIE_18, &format!("/table_2/{what}/{data_set}"));
        Ok(Self {
            components_per_name: mean("components_per_name")?,
            component_bytes: mean("component_bytes")?,
            prefix_bytes: mean("prefix_bytes")?,
        })
    }
}

/// Names of the samples from which sharing is solved.
const PILOTS: [usize; 2] = [1 << 14, 1 << 17];
/// Steps of a bisection over samples, and of one that only computes.
const SAMPLED_STEPS: usize = 7;
const COMPUTED_STEPS: usize = 60;
/// The first URLs, one in this number, continue no earlier one.
const OWN_HOSTS: usize = 256;
/// Most segments, and most bytes of a host or segment.
const DEPTH_MAX: usize = 16;
const BYTES_MAX: usize = 63;
/// Most segments kept of the lists.
const SEGMENTS_MAX: usize = 2_000_000;
/// Schemes, and URLs in a hundred that have them.
const SCHEMES: [(&str, u32); 3] = [("http", 90), ("https", 9), ("ftp", 1)];
/// Words are drawn this often for one URL before a list counts as used up.
const TRIES_MAX: usize = 200;

/// Hosts and paths of lists.
pub struct Corpus {
    title: String,
    hosts: Words,
    segments: Words,
    /// Element k: paths of k segments.
    depths: Vec<f64>,
}

impl Corpus {
    /// Takes hosts and paths from all lists; invented ones take the place of what the lists lack.
    pub fn of(lists: &[Records], seed: u64) -> Self {
        let titles: Vec<&str> = lists.iter().map(|records| records.title.as_str()).collect();
        let mut corpus = Self {
            title: titles.join(" + "),
            hosts: Words::default(),
            segments: Words::default(),
            depths: vec![0.0; DEPTH_MAX + 1],
        };
        let mut seen = HashSet::new();
        lists.iter().for_each(|records| corpus.add(records, &mut seen));
        let lacking = [(corpus.hosts.is_empty(), "hosts"), (corpus.segments.is_empty(), "paths")];
        if let Some((_, what)) = lacking.into_iter().find(|(lacks, _)| *lacks) {
            corpus.title += &format!(" + invented {what}");
            corpus.add(&invented::urls(seed, 100_000), &mut seen);
        }
        corpus.hosts.shuffle(&mut Rng::with_seed(seed));
        corpus
    }

    fn add(&mut self, records: &Records, seen: &mut HashSet<u64>) {
        for url in records.urls() {
            let host = url.host().to_ascii_lowercase();
            if is_divisible_host(&host) && host.len() <= BYTES_MAX && seen.insert(hash(&host)) {
                self.hosts.push(&host);
            }
            let segments = url.segments().count();
            if segments == 0 || self.segments.words.len() + segments > SEGMENTS_MAX {
                continue;
            }
            self.depths[segments.min(DEPTH_MAX)] += 1.0;
            // A comma would make a rank of digits beside it.
            let usable = |segment: &&[u8]| segment.len() <= BYTES_MAX && !segment.contains(&b',');
            url.segments().filter(usable).for_each(|segment| self.segments.push(segment));
        }
    }

    /// `count` URLs of this shape.
    ///
    /// # Errors
    /// If the lists have too few words for `count` URLs, or the user interrupted.
    pub fn urls(&self, shape: Shape, count: usize, seed: u64) -> anyhow::Result<Records> {
        let tilts = self.tilts(shape);
        let shared = |sharing, count| -> anyhow::Result<f64> {
            let names = Writer::new(self, &tilts, sharing, seed).urls(count)?.names(NameConversion::Domain, seed)?;
            Ok(NameStatistics::of(&names.names).shared_bytes_per_name())
        };
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..SAMPLED_STEPS {
            let sharing = f64::midpoint(low, high);
            let [fewer, more] = PILOTS.map(|pilot| pilot.min(count));
            let (of_fewer, of_more) = (shared(sharing, fewer)?, shared(sharing, more)?);
            let ln = |names: usize| (names as f64).ln();
            let slope = if more > fewer { (of_more - of_fewer) / (ln(more) - ln(fewer)) } else { 0.0 };
            let expected = of_more + slope * (ln(count) - ln(more));
            if expected < shape.prefix_bytes { low = sharing } else { high = sharing }
        }
        Writer::new(self, &tilts, f64::midpoint(low, high), seed).urls(count)
    }

    /// The distributions that have the means of `shape`.
    fn tilts(&self, shape: Shape) -> Tilts {
        let (hosts, segments) = (self.hosts.lengths(), self.segments.lengths());
        // Domain conversion: the domain is a component, the rest of the host another, and a dot is lost between them.
        let depth = solve(shape.components_per_name - 2.0, |tilt| mean(&tilted(&self.depths, tilt)));
        let bytes = solve(shape.component_bytes * shape.components_per_name, |tilt| {
            mean(&tilted(&hosts, tilt)) - 1.0 + mean(&tilted(&self.depths, depth)) * mean(&tilted(&segments, tilt))
        });
        Tilts {
            depths: cumulated(&tilted(&self.depths, depth)),
            host_bytes: cumulated(&tilted(&hosts, bytes)),
            segment_bytes: cumulated(&tilted(&segments, bytes)),
        }
    }
}

/// Cumulated distributions, by length.
struct Tilts {
    depths: Vec<f64>,
    host_bytes: Vec<f64>,
    segment_bytes: Vec<f64>,
}

/// Strings by their length.
#[derive(Default)]
struct Words {
    words: NameArena,
    /// Element k: numbers of the words of k bytes.
    by_bytes: Vec<Vec<u32>>,
}

impl Words {
    fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    fn push(&mut self, word: &[u8]) {
        if self.by_bytes.len() <= word.len() {
            self.by_bytes.resize(word.len() + 1, Vec::new());
        }
        self.by_bytes[word.len()].push(self.words.len() as u32);
        self.words.push(word);
    }

    fn shuffle(&mut self, rng: &mut Rng) {
        self.by_bytes.iter_mut().for_each(|numbers| rng.shuffle(numbers));
    }

    /// Element k: how many words have k bytes.
    fn lengths(&self) -> Vec<f64> {
        self.by_bytes.iter().map(|numbers| numbers.len() as f64).collect()
    }

    fn any(&self, bytes: usize, rng: &mut Rng) -> &[u8] {
        let numbers = &self.by_bytes[bytes];
        self.words.get(numbers[rng.usize(..numbers.len())] as usize)
    }

    /// The beginning of one word and the end of another of the same length.
    fn joined(&self, bytes: usize, rng: &mut Rng) -> Vec<u8> {
        let cut = rng.usize(..=bytes);
        [&self.any(bytes, rng)[..cut], &self.any(bytes, rng)[cut..]].concat()
    }
}

/// Writes distinct URLs.
struct Writer<'c> {
    corpus: &'c Corpus,
    tilts: &'c Tilts,
    sharing: f64,
    rng: Rng,
    /// Element k: how many hosts of k bytes were used.
    used_hosts: Vec<usize>,
    lines: NameArena,
    seen: HashSet<u64>,
}

impl<'c> Writer<'c> {
    fn new(corpus: &'c Corpus, tilts: &'c Tilts, sharing: f64, seed: u64) -> Self {
        let used_hosts = vec![0; corpus.hosts.by_bytes.len()];
        let (lines, seen) = Default::default();
        Self { corpus, tilts, sharing, rng: Rng::with_seed(seed), used_hosts, lines, seen }
    }

    fn urls(mut self, count: usize) -> anyhow::Result<Records> {
        let (mut begun, mut url) = (Vec::new(), Vec::new());
        while self.lines.len() < count {
            if self.lines.len().is_multiple_of(65_536) {
                interrupt::check()?;
            }
            let continues = self.lines.len() >= count.div_ceil(OWN_HOSTS) && self.rng.f64() < self.sharing;
            let segments = self.begin(continues, &mut begun);
            let mut tries = 0;
            loop {
                url.clear();
                url.extend_from_slice(&begun);
                for segment in 0..segments {
                    url.push(b'/');
                    self.write_segment(tries > 0 && segment + 1 == segments, &mut url);
                }
                if self.seen.insert(hash(&url)) {
                    break;
                }
                tries += 1;
                ensure!(tries < TRIES_MAX, "{}: too few hosts and paths for {count} URLs", self.corpus.title);
            }
            self.lines.push(&url);
        }
        Ok(Records::of_lines(format!("URLs of {}", self.corpus.title), self.lines))
    }

    /// Writes scheme and host, or the first parts of an earlier URL; returns how many segments are to follow.
    fn begin(&mut self, continues: bool, url: &mut Vec<u8>) -> usize {
        url.clear();
        let depth = drawn(&self.tilts.depths, &mut self.rng);
        if !continues {
            self.write_host(url);
            return depth;
        }
        let earlier = self.lines.get(self.rng.usize(..self.lines.len()));
        let slashes: Vec<usize> = (0..earlier.len()).filter(|&at| earlier[at] == b'/').collect();
        // Two slashes follow the scheme. The last segment is never kept.
        let kept = self.rng.usize(..(slashes.len() - 2).min(depth));
        url.extend_from_slice(&earlier[..slashes[2 + kept]]);
        depth - kept
    }

    fn write_host(&mut self, url: &mut Vec<u8>) {
        let mut drawn_share = self.rng.u32(..100);
        let scheme = SCHEMES.iter().find(|(_, share)| {
            let is_it = drawn_share < *share;
            drawn_share = drawn_share.saturating_sub(*share);
            is_it
        });
        url.extend_from_slice(scheme.map_or("http", |(name, _)| name).as_bytes());
        url.extend_from_slice(b"://");
        let bytes = drawn(&self.tilts.host_bytes, &mut self.rng);
        let hosts = &self.corpus.hosts;
        let number = hosts.by_bytes[bytes].get(self.used_hosts[bytes]);
        self.used_hosts[bytes] += 1;
        match number {
            Some(&number) => url.extend_from_slice(hosts.words.get(number as usize)),
            None => {
                let mut joined = || Some(hosts.joined(bytes, &mut self.rng)).filter(|host| is_divisible_host(host));
                let host = (0..TRIES_MAX).find_map(|_| joined());
                url.extend_from_slice(&host.unwrap_or_else(|| hosts.any(bytes, &mut self.rng).to_vec()));
            }
        }
    }

    fn write_segment(&mut self, is_joined: bool, url: &mut Vec<u8>) {
        let segments = &self.corpus.segments;
        let bytes = drawn(&self.tilts.segment_bytes, &mut self.rng);
        match is_joined {
            true => url.extend_from_slice(&segments.joined(bytes, &mut self.rng)),
            false => url.extend_from_slice(segments.any(bytes, &mut self.rng)),
        }
    }
}

/// Whether the host has two components in the conversion by domain.
fn is_divisible_host(host: &[u8]) -> bool {
    Url::parse(host).is_some_and(|url| url.host() == host && !url.is_address())
}

fn hash(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new(); // the same in every run
    hasher.write(text);
    hasher.finish()
}

/// Shares by length, each multiplied by e^(tilt × length).
fn tilted(shares: &[f64], tilt: f64) -> Vec<f64> {
    (0..).zip(shares).map(|(length, &share): (i32, _)| share * (tilt * f64::from(length)).exp()).collect()
}

fn mean(shares: &[f64]) -> f64 {
    let weighted: f64 = (0..).zip(shares).map(|(length, &share): (i32, _)| share * f64::from(length)).sum();
    weighted / shares.iter().sum::<f64>()
}

/// Where a growing function has this value, or the nearest tilt.
fn solve(value: f64, function: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (-4.0, 4.0);
    for _ in 0..COMPUTED_STEPS {
        let middle = f64::midpoint(low, high);
        if function(middle) < value { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// Sums of the shares up to each length, 1 in the end.
fn cumulated(shares: &[f64]) -> Vec<f64> {
    let (total, mut sum) = (shares.iter().sum::<f64>(), 0.0);
    let sums = shares.iter().map(|share| {
        sum += share / total;
        sum
    });
    sums.collect()
}

/// A length by its share.
fn drawn(cumulated: &[f64], rng: &mut Rng) -> usize {
    // The last sum may be a little below 1.
    let point = rng.f64() * cumulated.last().copied().unwrap_or(0.0);
    cumulated.partition_point(|&sum| sum <= point)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, wanted: f64, tolerance: f64) -> bool {
        (value / wanted - 1.0).abs() < tolerance
    }

    #[test]
    fn urls_have_the_shape_asked_for() {
        let corpus = Corpus::of(&[invented::domains(1, 30_000), invented::urls(1, 30_000)], 1);
        for (components, bytes, prefix) in [(4.65, 6.5, 20.0), (5.64, 6.73, 16.0)] {
            let shape = Shape { components_per_name: components, component_bytes: bytes, prefix_bytes: prefix };
            let records = corpus.urls(shape, 30_000, 1).expect("enough words");
            let names = records.names(NameConversion::Domain, 1).expect("few").names;
            assert_eq!((records.len(), names.len() > 29_900), (30_000, true), "{}", names.len());
            let got = NameStatistics::of(&names);
            assert!(near(got.components_per_name(), components, 0.03), "{}", got.components_per_name());
            assert!(near(got.bytes_per_component(), bytes, 0.05), "{}", got.bytes_per_component());
            assert!(near(got.shared_bytes_per_name(), prefix, 0.1), "{}", got.shared_bytes_per_name());
        }
    }

    #[test]
    fn what_the_lists_lack_is_invented() {
        let hosts_only = Corpus::of(&[Records::of_text("hosts", b"a.example\nb.example\n")], 1);
        let paths_only = Corpus::of(&[Records::of_text("paths", b"src/main.c\nsrc/lib.c\n")], 1);
        assert!(hosts_only.title.ends_with("invented paths") && paths_only.title.ends_with("invented hosts"));
        for corpus in [hosts_only, paths_only] {
            let shape = Shape { components_per_name: 5.0, component_bytes: 7.0, prefix_bytes: 15.0 };
            assert_eq!(corpus.urls(shape, 3_000, 1).expect("enough words").len(), 3_000);
        }
    }

    #[test]
    fn a_word_that_is_used_up_is_reported() {
        let corpus = Corpus::of(&[Records::of_text("one", b"a.example/b\n")], 1);
        let shape = Shape { components_per_name: 3.0, component_bytes: 5.0, prefix_bytes: 1.0 };
        let error = corpus.urls(shape, 10, 1).expect_err("one word");
        assert!(error.to_string().contains("too few hosts and paths for 10 URLs"), "{error}");
    }

    #[test]
    fn tilting_moves_a_mean() {
        let shares = [0.0, 5.0, 3.0, 1.0, 1.0];
        for wanted in [1.2, 1.8, 3.0] {
            let tilt = solve(wanted, |tilt| mean(&tilted(&shares, tilt)));
            assert!(near(mean(&tilted(&shares, tilt)), wanted, 1e-9));
        }
        assert_eq!(drawn(&cumulated(&[0.0, 1.0]), &mut Rng::with_seed(1)), 1);
    }
}
