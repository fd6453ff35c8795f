//! Invented names: records like those of lists of domains and URLs, for use without such a list.
//!
//! The first records are our sample (`lab/data`; every host is invented or under a name reserved by RFC 2606). The seed
//! generates the others at random from the words of the sample, in the proportions of large public lists. The
//! proportions are measured on two block lists (2.4 million domains, 0.5 million URLs) and rounded. They keep what
//! matters to a FIB:
//! - domains of 2.4 labels and 18 bytes; a third under the most common top-level label; one in five under one of a few
//!   hosting companies, whose prefixes therefore have thousands of children;
//! - URLs of 5 components and 43 bytes; two in five have a host that no other URL has; the others share hosts (a few
//!   are very popular) and directories.
//!
//! Missing are the few components of 100 bytes and more, and labels in other scripts.

use fastrand::Rng;

use super::Records;

const DOMAINS: &str = include_str!("../../data/domains-sample.csv");
const URLS: &str = include_str!("../../data/urls-sample.txt");

/// Top-level labels, and their share in percent.
const TOP_LEVEL: [(&str, u32); 16] = [
    ("com", 34),
    ("ru", 8),
    ("cn", 7),
    ("info", 6),
    ("shop", 5),
    ("top", 5),
    ("xyz", 5),
    ("net", 5),
    ("io", 5),
    ("org", 5),
    ("dev", 3),
    ("pro", 3),
    ("club", 3),
    ("co.uk", 2),
    ("de", 2),
    ("com.br", 2),
];
const ENDINGS: [&str; 8] = [".html", ".php", ".jpg", ".js", ".zip", "", "", ""];
/// One hosting company for this many domains.
const DOMAINS_PER_HOSTING: usize = 500;

/// About `count` records of domains.
pub fn domains(seed: u64, count: usize) -> Records {
    let mut writer = Writer::new(seed, DOMAINS);
    let hosting: Vec<String> = (0..count / DOMAINS_PER_HOSTING + 4).map(|_| writer.domain()).collect();
    let text = writer.text(DOMAINS, count, |writer, line| {
        if writer.rng.u8(..100) >= 20 {
            line.push_str(&writer.domain());
            return;
        }
        line.push_str(&writer.label());
        if writer.rng.u8(..100) < 50 {
            line.push('.');
            line.push_str(writer.word());
        }
        line.push('.');
        line.push_str(&hosting[writer.popular(hosting.len())]);
    });
    Records::of_text("invented domains", text.as_bytes())
}

/// About `count` records of URLs.
pub fn urls(seed: u64, count: usize) -> Records {
    let mut writer = Writer::new(seed ^ 0x75726c, URLS);
    let hosts: Vec<String> = (0..count / 20 + 4).map(|_| writer.host()).collect();
    let text = writer.text(URLS, count, |writer, line| {
        let own_host = writer.rng.u8(..100) < 40;
        let place = writer.popular(hosts.len());
        let own = if own_host { writer.host() } else { String::new() };
        line.push_str(if own_host { &own } else { &hosts[place] });
        // Directories: 38 % of the URLs have none; each further one has a probability of 62 %.
        let mut directory = place;
        while writer.rng.u8(..100) < 62 {
            // A directory has few subdirectories; the first ones are the most frequent.
            directory = (directory * 31 + 1 + writer.popular(12)) % (1 << 20);
            line.push('/');
            line.push_str(writer.words[directory % writer.words.len()]);
        }
        line.push('/');
        line.push_str(&writer.label());
        line.push_str(ENDINGS[writer.rng.usize(..ENDINGS.len())]);
    });
    Records::of_text("invented URLs", text.as_bytes())
}

struct Writer {
    rng: Rng,
    /// Every word of the sample.
    words: Vec<&'static str>,
}

impl Writer {
    fn new(seed: u64, sample: &'static str) -> Self {
        let mut words: Vec<&str> = sample
            .split(|character: char| !character.is_ascii_lowercase())
            .filter(|word| (3..=9).contains(&word.len()))
            .collect();
        words.sort_unstable();
        words.dedup();
        Self { rng: Rng::with_seed(seed), words }
    }

    /// The lines of the sample, then generated ones up to `count`.
    fn text(&mut self, sample: &str, count: usize, write: impl Fn(&mut Self, &mut String)) -> String {
        let mut text = String::with_capacity(count * 40);
        for line in sample.lines().take(count) {
            text.push_str(line);
            text.push('\n');
        }
        for _ in sample.lines().count()..count {
            write(self, &mut text);
            text.push('\n');
        }
        text
    }

    fn word(&mut self) -> &'static str {
        self.words[self.rng.usize(..self.words.len())]
    }

    /// A number below `count`; small numbers are far more frequent.
    fn popular(&mut self, count: usize) -> usize {
        (self.rng.f64().powi(4) * count as f64) as usize
    }

    /// Two words, or one with random letters and digits.
    fn label(&mut self) -> String {
        let mut label = self.word().to_owned();
        match self.rng.u8(..10) {
            0..5 => label.push_str(self.word()),
            5..7 => {
                label.push('-');
                label.push_str(self.word());
            }
            _ => {}
        }
        for _ in 0..self.rng.usize(1..6) {
            label.push(self.rng.alphanumeric().to_ascii_lowercase());
        }
        label
    }

    fn domain(&mut self) -> String {
        let mut drawn = self.rng.u32(..TOP_LEVEL.iter().map(|&(_, share)| share).sum::<u32>());
        let mut last = TOP_LEVEL[0].0;
        for (label, share) in TOP_LEVEL {
            last = label;
            if drawn < share {
                break;
            }
            drawn -= share;
        }
        format!("{}.{last}", self.label())
    }

    /// A domain, often with a label before it.
    fn host(&mut self) -> String {
        let domain = self.domain();
        match self.rng.u8(..10) {
            0..3 => format!("www.{domain}"),
            3..5 => format!("{}.{domain}", self.word()),
            _ => domain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name_arena::NameArena;
    use crate::name_sets::NameConversion;
    use namewire_packet::Name;

    fn near(value: f64, wanted: f64) -> bool {
        (value / wanted - 1.0).abs() < 0.1
    }

    #[test]
    fn invented_names_are_like_those_of_lists() {
        for (records, components, bytes) in [(domains(1, 60_000), 2.4, 18.0), (urls(1, 60_000), 5.0, 43.0)] {
            let set = records.names(NameConversion::Tld, 1).expect("few");
            let count = set.names.len();
            assert!(records.begin_with_hosts() && count > 59_500, "{}: {count} of 60,000 are distinct", set.title);
            let components_of = |name| Name::parse_value(name).expect("a name").len();
            let components_mean = set.names.iter().map(components_of).sum::<usize>() as f64 / count as f64;
            let values_mean = set.names.bytes() as f64 / count as f64 - 2.0 * components_mean; // without types and lengths
            assert!(near(components_mean, components) && near(values_mean, bytes), "{components_mean} {values_mean}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_names_and_order_again() {
        let names = |seed| urls(seed, 2_000).names(NameConversion::Host, seed).expect("few").names;
        let list = |names: &NameArena| names.iter().map(<[u8]>::to_vec).collect::<Vec<_>>();
        assert_eq!(list(&names(7)), list(&names(7)));
        assert_ne!(list(&names(7)), list(&names(8)));
        assert!(!names(7).iter().is_sorted(), "shuffled");
    }
}
