//! Placeholders for text that varies from run to run.
//!
//! * Face numbers: `<FACE1>`, `<FACE2>`, … in the order in which they first appear. A command
//!   of a session may use them.
//! * Ports: `<LISTENER>` is the port of the test's own TCP listener, `<PORT>` one chosen by the system. The port of our
//!   router is read as NFD's, 6363, and written `<OWN_PORT>` in commands.
//! * Times, versions, counters, seconds to live.
//! * Reports leave out the internal entries of a forwarder (`internal://`, `fd://`, `/localhost` …), and the order of
//!   entries does not count: forwarders guarantee neither.

use regex_lite::{Captures, Regex};

pub(crate) struct Normaliser {
    faces: Vec<String>,
    listener: String,
    own_port: Option<u16>,
    rules: Vec<(Regex, &'static str)>,
    face_number: Regex,
}

/// Part of every entry that a forwarder has of its own.
const OWN: [&str; 5] = ["internal://", "contentstore://", "null://", "fd://", "/localhost/"];

/// Prefixes for which a forwarder chooses strategies by itself.
const OWN_CHOICES: [&str; 3] = ["/localhost", "/localhost/nfd", "/ndn/broadcast"];

/// Elements that begin a line, so that a report in XML can be read.
const XML_ITEMS: [&str; 5] = ["channel", "face", "fibEntry", "ribEntry", "strategyChoice"];

/// Elements that begin and end with a line.
const XML_SECTIONS: [&str; 7] = ["generalStatus", "channels", "faces", "fib", "rib", "cs", "strategyChoices"];

impl Normaliser {
    /// `own_port`: the port that the forwarder uses in place of 6363.
    pub(crate) fn new(listener: u16, own_port: Option<u16>) -> Self {
        let rules = [
            (r"counters=\{in=\{[^}]*\} out=\{[^}]*\}\}", "counters=<COUNTERS>"),
            (r"(local=|<localUri>)tcp4://127\.0\.0\.1:\d+", "${1}tcp4://127.0.0.1:<PORT>"),
            (r"unix://[^\s<]*\.sock", "unix://<SOCKET>"),
            (r"expires=\d+s\b", "expires=<SECONDS>s"),
            (r"<expirationPeriod>PT\d+S", "<expirationPeriod>PT<SECONDS>S"),
            (r"^( +version=).*", "${1}<VERSION>"),
            (r"<version>[^<]*", "<version><VERSION>"),
            (r"^( +(?:start|current)Time=)\d{8}T\d{6}(?:\.\d{6})?$", "${1}<TIME>"),
            (r"Time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{6})?<", "Time><TIME><"),
            (r"^( +uptime=)\d+ seconds$", "${1}<SECONDS> seconds"),
            (r"<uptime>PT\d+S", "<uptime>PT<SECONDS>S"),
            (r"^( +n[A-Z]\w+=)\d+$", "${1}<N>"),
            (r"<(n[A-Z]\w+|(?:in|out)\w+Bytes)>\d+<", "<${1}><N><"),
        ];
        Normaliser {
            faces: Vec::new(),
            listener: listener.to_string(),
            own_port,
            rules: rules.map(|(pattern, text)| (Regex::new(pattern).unwrap(), text)).to_vec(),
            face_number: Regex::new(r"((?:\bid|faceid|nexthop)=|<faceId>)(\d+)").unwrap(),
        }
    }

    /// Numbers for the placeholders in a command.
    pub(crate) fn concrete(&self, text: &str) -> String {
        let own_port = self.own_port.unwrap_or(6363).to_string();
        let text = text.replace("<LISTENER>", &self.listener).replace("<OWN_PORT>", &own_port);
        let face =
            |text: String, (index, number): (usize, &String)| text.replace(&format!("<FACE{}>", index + 1), number);
        self.faces.iter().enumerate().fold(text, face)
    }

    /// What a command printed.
    pub(crate) fn lines(&mut self, command: &str, text: &str) -> Vec<String> {
        let is_report = ["status", "fib", "channel"].iter().any(|noun| command.starts_with(noun));
        let begin = |text: String, tag: String| text.replace(&tag, &format!("\n{tag}"));
        let text =
            XML_ITEMS.iter().chain(&XML_SECTIONS).fold(text.to_owned(), |text, name| begin(text, format!("<{name}>")));
        let text = XML_SECTIONS.iter().fold(text, |text, name| begin(text, format!("</{name}>")));
        let mut lines: Vec<String> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            if !is_report && !is_choice(line) || !is_own(line) {
                lines.push(self.line(line));
            }
        }
        sort_entries(&mut lines);
        lines
    }

    fn line(&mut self, line: &str) -> String {
        // The files hold no blanks at the ends of lines.
        let mut line = line.trim_end().replace(&format!(":{}", self.listener), ":<LISTENER>");
        if let Some(port) = self.own_port {
            line = line.replace(&format!(":{port}"), ":6363");
        }
        for (rule, text) in &self.rules {
            line = rule.replace_all(&line, *text).into_owned();
        }
        let faces = &mut self.faces;
        let face = |captures: &Captures<'_>| {
            let number = &captures[2];
            // Reserved numbers, and those that the commands make up.
            if number.parse::<u64>().is_ok_and(|number| number < 256 || number == 999_999) {
                return captures[0].to_owned();
            }
            let index = faces.iter().position(|known| known == number).unwrap_or_else(|| {
                faces.push(number.to_owned());
                faces.len() - 1
            });
            format!("{}<FACE{}>", &captures[1], index + 1)
        };
        let line = self.face_number.replace_all(&line, face).into_owned();
        sort_routes(&line)
    }
}

fn is_choice(line: &str) -> bool {
    line.contains(" strategy=") || line.contains("<strategyChoice>")
}

/// An entry that no session makes.
fn is_own(line: &str) -> bool {
    if !is_choice(line) {
        return !line.starts_with("<?xml") && OWN.iter().any(|own| line.contains(own));
    }
    OWN_CHOICES.iter().any(|prefix| {
        line.trim_start().starts_with(&format!("prefix={prefix} ")) || line.contains(&format!("<namespace>{prefix}<"))
    })
}

/// Routes of one prefix.
fn sort_routes(line: &str) -> String {
    for (begin, separator, end) in
        [(" routes={", ", ", "}"), ("<routes><route>", "</route><route>", "</route></routes>")]
    {
        let routes = line.split_once(begin).and_then(|(before, rest)| Some((before, rest.split_once(end)?)));
        if let Some((before, (routes, after))) = routes {
            let mut routes: Vec<&str> = routes.split(separator).collect();
            routes.sort_unstable();
            return format!("{before}{begin}{}{end}{after}", routes.join(separator));
        }
    }
    line.to_owned()
}

/// Entries of a list stand between headings, which are not indented.
fn sort_entries(lines: &mut [String]) {
    let is_entry = |line: &String| {
        [
            "  /",
            "  prefix=",
            "prefix=",
            "faceid=",
            "  tcp",
            "  udp",
            "  unix",
            "<channel>",
            "<ribEntry>",
            "<strategyChoice>",
        ]
        .iter()
        .any(|start| line.starts_with(start))
    };
    for entries in lines.chunk_by_mut(|a, b| is_entry(a) == is_entry(b)) {
        if is_entry(&entries[0]) {
            entries.sort();
        }
    }
}
