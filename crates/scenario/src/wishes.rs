//! What consumers ask for, and when.
//!
//! Each consumer is an iterator of times and names. All random choices come from the consumer's own generator, and
//! powers and logarithms from `libm`, so that the same seed gives the same names on every machine.

use crate::check::{NAMES_MAX, name_of};
use crate::file::{Consumer, ConsumerKind};
use anyhow::{Context as _, ensure};
use fastrand::Rng;
use namewire_packet::NameBuf;
use namewire_sim::{RequesterOptions, Wish};
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::Duration;

/// Bytes of a line of a file of requests.
const LINE_BYTES_MAX: usize = 10_000;

/// Names of a catalogue, and the exponent of Zipf's law.
const CATALOGUE: u64 = 10_000;
const EXPONENT: f64 = 0.8;

/// A consumer with its defaults filled in.
pub(crate) struct Plan {
    pub(crate) options: RequesterOptions,
    pub(crate) wishes: Box<dyn Iterator<Item = Wish>>,
}

/// What a kind of consumer does unless the file says otherwise.
struct Defaults {
    interval: Duration,
    window: usize,
    lifetime_ms: u64,
    transmissions: u32,
    retransmit_after_ms: u64,
    names: Option<u64>,
}

impl Defaults {
    fn of(kind: ConsumerKind) -> Self {
        let common = Defaults {
            interval: Duration::from_millis(1),
            window: 64,
            lifetime_ms: 4_000,
            transmissions: 3,
            retransmit_after_ms: 500,
            names: Some(1_000),
        };
        match kind {
            ConsumerKind::Names | ConsumerKind::File => common,
            ConsumerKind::Ping => Defaults {
                interval: Duration::from_secs(1),
                window: usize::MAX,
                transmissions: 1,
                names: None,
                ..common
            },
            ConsumerKind::Stream => Defaults {
                interval: Duration::from_millis(20),
                window: usize::MAX,
                lifetime_ms: 1_000,
                retransmit_after_ms: 200,
                names: None,
                ..common
            },
            ConsumerKind::Zipf => {
                Defaults { interval: Duration::from_millis(10), window: usize::MAX, names: None, ..common }
            }
            ConsumerKind::Requests => Defaults { window: usize::MAX, names: None, ..common },
        }
    }
}

/// When a consumer asks: from its start to its stop, in nanoseconds of the network's clock.
pub(crate) struct Hours {
    pub(crate) start_ns: u64,
    pub(crate) stop_ns: u64,
}

/// The plan of a consumer. `own` is a number of its own, for names that nobody else asks for.
///
/// # Errors
/// If its file cannot be read or a name is malformed.
pub(crate) fn plan(consumer: &Consumer, own: usize, hours: &Hours, mut rng: Rng) -> anyhow::Result<Plan> {
    let defaults = Defaults::of(consumer.kind);
    let millis = |span: Option<namewire_configuration::units::Span>, default| {
        span.map_or(default, |span| u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX))
    };
    let options = RequesterOptions {
        window: consumer.window.unwrap_or(defaults.window),
        lifetime_ms: millis(consumer.lifetime, defaults.lifetime_ms),
        retransmit_after_ms: millis(consumer.retransmit_after, defaults.retransmit_after_ms),
        transmissions: consumer.transmissions.unwrap_or(defaults.transmissions),
        must_be_fresh: consumer.must_be_fresh.unwrap_or(consumer.kind == ConsumerKind::Ping),
        can_be_prefix: false,
    };
    let interval_ns = consumer.interval.map_or(defaults.interval, |span| span.0).as_nanos() as u64;
    let most = consumer.names.or(defaults.names).unwrap_or(NAMES_MAX);
    let times = Times {
        next_ns: hours.start_ns,
        stop_ns: hours.stop_ns,
        interval_ns,
        random: consumer.random_times.then(|| Rng::with_seed(rng.u64(..))),
    };
    let wishes: Box<dyn Iterator<Item = Wish>> = match (&consumer.prefix, &consumer.file) {
        (_, Some(file)) => {
            let most = if consumer.kind == ConsumerKind::Names { consumer.names.unwrap_or(NAMES_MAX) } else { most };
            Box::new(of_file(file, times, consumer.kind == ConsumerKind::Requests, hours)?.take(most as usize))
        }
        (Some(prefix), None) => {
            let prefix = name_of(prefix)?;
            let numbers: Box<dyn Iterator<Item = u64>> = match consumer.kind {
                ConsumerKind::Zipf => Box::new(
                    Zipf::new(consumer.catalogue.unwrap_or(CATALOGUE), consumer.exponent.unwrap_or(EXPONENT))
                        .draws(rng),
                ),
                _ => Box::new(0..),
            };
            let own = (consumer.kind == ConsumerKind::Ping).then(|| own.to_string());
            let names = numbers.map(move |number| numbered(&prefix, own.as_deref(), number));
            Box::new(times.zip(names).take(most as usize))
        }
        (None, None) => anyhow::bail!("a consumer without names"),
    };
    Ok(Plan { options, wishes })
}

/// `PREFIX/NUMBER`, with a component before it that only this consumer has.
fn numbered(prefix: &NameBuf, own: Option<&str>, number: u64) -> NameBuf {
    let mut name = prefix.clone();
    if let Some(own) = own {
        name.push_generic(own.as_bytes());
    }
    name.push_generic(number.to_string().as_bytes());
    name
}

/// Times at equal or at exponential distances.
struct Times {
    next_ns: u64,
    stop_ns: u64,
    interval_ns: u64,
    random: Option<Rng>,
}

impl Iterator for Times {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.next_ns >= self.stop_ns {
            return None;
        }
        let now_ns = self.next_ns;
        let wait_ns = match &mut self.random {
            None => self.interval_ns,
            Some(rng) => (-libm::log(1.0 - rng.f64()) * self.interval_ns as f64) as u64,
        };
        self.next_ns = now_ns.saturating_add(wait_ns);
        Some(now_ns)
    }
}

/// Zipf's law: the k-th of a catalogue is asked for in proportion to k^−s.
struct Zipf {
    /// Element `k`: the share of the first `k + 1`.
    shares: Vec<f64>,
}

impl Zipf {
    fn new(catalogue: u64, exponent: f64) -> Self {
        let mut sum = 0.0;
        let mut shares: Vec<f64> = (1..=catalogue)
            .map(|place| {
                sum += libm::pow(place as f64, -exponent);
                sum
            })
            .collect();
        shares.iter_mut().for_each(|share| *share /= sum);
        Zipf { shares }
    }

    fn draws(self, mut rng: Rng) -> impl Iterator<Item = u64> {
        std::iter::repeat_with(move || {
            let drawn = rng.f64();
            self.shares.partition_point(|share| *share <= drawn).min(self.shares.len() - 1) as u64
        })
    }
}

/// The requests of a file, each a line of a time in seconds and a name, or a name alone. Times count from the start of
/// the consumer.
fn of_file(
    file: &Path,
    mut times: Times,
    needs_times: bool,
    hours: &Hours,
) -> anyhow::Result<impl Iterator<Item = Wish> + use<>> {
    let (start_ns, stop_ns) = (hours.start_ns, hours.stop_ns);
    let opened = BufReader::new(File::open(file).with_context(|| file.display().to_string())?);
    let mut wishes = Vec::new();
    for (number, line) in opened.lines().enumerate() {
        let line = line?;
        let wrong = || format!("{}, line {}", file.display(), number + 1);
        ensure!(line.len() <= LINE_BYTES_MAX, "{}: more than {LINE_BYTES_MAX} bytes", wrong());
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let (at_ns, name) = match text.split_once([',', ' ', '\t']) {
            Some((time, name)) => {
                let time_s: f64 = time.parse().with_context(wrong)?;
                ensure!((0.0..1e9).contains(&time_s), "{}: {time_s} is no time in seconds", wrong());
                (start_ns + (time_s * 1e9) as u64, name)
            }
            None if needs_times => anyhow::bail!("{}: a request has a time and a name", wrong()),
            None => match times.next() {
                Some(at_ns) => (at_ns, text),
                None => break,
            },
        };
        ensure!((wishes.len() as u64) < NAMES_MAX, "{}: more than {NAMES_MAX} requests", wrong());
        if at_ns < stop_ns {
            wishes.push((at_ns, name_of(name.trim()).with_context(wrong)?));
        }
    }
    wishes.sort_by_key(|wish| wish.0);
    Ok(wishes.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn consumer(text: &str) -> Consumer {
        toml::from_str(&format!("node = \"x\"\n{text}")).expect("a consumer")
    }

    fn wishes(text: &str, most: usize) -> Vec<(u64, String)> {
        let hours = Hours { start_ns: 1_000, stop_ns: 10_000_000_000 };
        let plan = plan(&consumer(text), 7, &hours, Rng::with_seed(1)).expect("a plan");
        plan.wishes.take(most).map(|(at_ns, name)| (at_ns, name.to_string())).collect()
    }

    #[test]
    fn names_are_numbered_and_pings_are_ones_own() {
        assert_eq!(wishes("prefix = \"/p\"", 2), [(1_000, "/p/0".to_owned()), (1_001_000, "/p/1".to_owned())]);
        assert_eq!(wishes("kind = \"ping\"\nprefix = \"/p\"", 99).len(), 10, "one a second until the stop");
        assert_eq!(wishes("kind = \"ping\"\nprefix = \"/p\"", 1), [(1_000, "/p/7/0".to_owned())]);
    }

    #[test]
    fn random_times_have_the_mean_interval() {
        let all = wishes("kind = \"stream\"\nprefix = \"/p\"\nrandom_times = true\ninterval = \"1ms\"", usize::MAX);
        assert!((9_500..10_500).contains(&all.len()), "{}", all.len());
        assert!(all.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    }

    #[test]
    fn a_catalogue_follows_zipfs_law() {
        let draws: Vec<u64> = Zipf::new(1_000, 1.0).draws(Rng::with_seed(3)).take(100_000).collect();
        let share = |place| draws.iter().filter(|drawn| **drawn == place).count() as f64 / 100_000.0;
        // H(1000) = 7.485.
        assert!((share(0) - 1.0 / 7.485).abs() < 0.005, "{}", share(0));
        assert!((share(1) - 0.5 / 7.485).abs() < 0.005, "{}", share(1));
        assert!(draws.iter().all(|drawn| *drawn < 1_000));
    }

    #[test]
    fn a_file_has_times_or_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("requests.txt");
        let text = |kind: &str| format!("kind = \"{kind}\"\nfile = {:?}", file.display().to_string());
        std::fs::write(&file, "# trace\n2.5,/b\n0.5,/a\n").expect("a file");
        let timed = wishes(&text("requests"), 9);
        assert_eq!(timed, [(500_001_000, "/a".to_owned()), (2_500_001_000, "/b".to_owned())]);
        std::fs::write(&file, "/a\n/b\n").expect("a file");
        assert_eq!(wishes(&text("names"), 9)[1], (1_001_000, "/b".to_owned()));
    }
}
