//! Placeholders for text that varies from run to run, and for what differs on purpose: versions, and the words that
//! explain options.

use regex_lite::Regex;
use std::path::Path;

pub(crate) struct Masks {
    folder: String,
    rules: Vec<(Regex, &'static str)>,
    option: Regex,
}

impl Masks {
    pub(crate) fn new(programs: &Path) -> Self {
        let rules = [
            (r"\btime=[0-9.e+-]+ ms", "time=<MS> ms"),
            (r", time [0-9.e+-]+ ms", ", time <MS> ms"),
            (r"(min/avg/max(?:/mdev)? = )[0-9.e+/-]+ ms", "${1}<MS> ms"),
            (r"RTT: \d+ ms", "RTT: <MS> ms"),
            (r"Nonce=[0-9a-f]{8}", "Nonce=<NONCE>"),
            (r"seq=\d{9,}", "seq=<RANDOM>"),
            (r"v=\d{12,}", "v=<TIME>"),
            (r", rtt=[0-9.e+-]+ms, rto=[0-9.e+-]+ms$", ", rtt=<MS>ms, rto=<MS>ms"),
            // Our metadata says that it is one segment.
            (r"(FreshnessPeriod: 10 milliseconds), FinalBlockId: seg=0\]", "${1}]"),
            // A busy machine loses some.
            (r"^(Timeouts: )\d+ \(caused \d+ ", "${1}<COUNT> (caused <COUNT> "),
            (r"^(Retransmitted segments: )\d+ \([0-9.e+-]+%\)", "${1}<COUNT>"),
            (r"^(ndn\w+ )(?:24\.07|namewire-).*$", "${1}<VERSION>"),
            (r"^\d{8}T\d{6}(?:\.\d+)? - ", "<TIME> - "),
            (r"^(Time elapsed: )\S+ ", "${1}<SECONDS> "),
            (r"^(Goodput: )\S+ \S+$", "${1}<RATE>"),
        ];
        Masks {
            folder: format!("{}/", programs.display()),
            rules: rules.map(|(pattern, text)| (Regex::new(pattern).unwrap(), text)).to_vec(),
            option: Regex::new(r"^  ((?:-\w \[ --[\w-]+ \]|--[\w-]+)(?: arg(?: \(=[^)]*\))?)?)").unwrap(),
        }
    }

    /// The lines of an output. One that is no text is a line of hexadecimal digits.
    pub(crate) fn lines(&self, bytes: &[u8]) -> Vec<String> {
        let Ok(text) = str::from_utf8(bytes) else {
            return vec![bytes.iter().map(|byte| format!("{byte:02x}")).collect()];
        };
        let lines = text.replace(&self.folder, "");
        let mut lines: Vec<String> = lines.lines().map(|line| self.masked(line)).collect();
        if let Some(usage) = lines.iter().position(|line| line.starts_with("Usage: ")) {
            let options = lines.split_off(usage + 1);
            let mut options: Vec<String> =
                options.iter().filter_map(|line| Some(format!("  {}", &self.option.captures(line)?[1]))).collect();
            options.sort_unstable();
            lines.extend(options);
        }
        lines
    }

    fn masked(&self, line: &str) -> String {
        let masked =
            self.rules.iter().fold(line.to_owned(), |line, (rule, text)| rule.replace_all(&line, *text).into_owned());
        masked.trim_end().to_owned()
    }
}
