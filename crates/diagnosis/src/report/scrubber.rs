//! Scrubber: takes names, addresses, hosts, users and paths out of texts.
//!
//! It works by knowledge and by form. First it *learns* what structured data contain: each component of each name, host
//! and user names, paths. Then it goes through each text from left to right: FaceUris and other URIs, names, Ethernet
//! and IP addresses get pseudonyms by their form ([`super::pseudonyms`]); words in between get them if they were
//! learned. In free text (log, findings), components of names count as words; elsewhere words of the protocol would
//! suffer.
//!
//! A path that was learned is replaced as a path; any other text with slashes as a name, part by part.
//!
//! Limits: [`WORDS_MAX`] learned words; further components are still found by form. [`ODD_MAX`] components with spaces
//! and the like are known as words, too; in a name they are found by form.

use super::pseudonyms::Pseudonyms;
use namewire_packet::{
    NameBuf,
    nfd::face_uri::{OTHER_SCHEMES, SCHEMES_OF_NEW_FACES},
};
use regex_lite::Regex;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::{IpAddr, Ipv6Addr},
};

/// Words that are remembered.
const WORDS_MAX: usize = 200_000;

/// Texts that are looked for one by one.
const ODD_MAX: usize = 500;

/// Shorter words say nothing.
const WORD_BYTES_MIN: usize = 2;

/// Words of the texts themselves, which stay although a name may have them as a component.
const VOCABULARY: &[&str] = &[
    "a",
    "an",
    "and",
    "are",
    "at",
    "by",
    "can",
    "face",
    "faces",
    "for",
    "from",
    "has",
    "here",
    "in",
    "interest",
    "interests",
    "is",
    "it",
    "last",
    "namewire",
    "name",
    "names",
    "next",
    "no",
    "none",
    "not",
    "of",
    "on",
    "one",
    "only",
    "or",
    "route",
    "router",
    "routes",
    "the",
    "them",
    "this",
    "to",
    "up",
    "down",
    "with",
    "which",
    "run",
    "try",
    "list",
    "show",
    "udp",
    "tcp",
    "udp4",
    "tcp4",
    "udp6",
    "tcp6",
    "unix",
    "root",
    "true",
    "false",
    "info",
    "warn",
    "error",
];

/// System users, whose names say nothing of a person.
const SYSTEM_USERS: &[&str] = &["root", "nobody", "daemon", "ndn", "nfd", "namewire", "user", ""];

/// See the module documentation.
pub(super) struct Scrubber {
    pseudonyms: Option<Pseudonyms>,
    /// Words of hosts and users, and parts of relative paths: replaced everywhere.
    words: HashMap<String, String>,
    /// Components of names: replaced in free text.
    components: HashMap<String, String>,
    paths: BTreeSet<String>,
    /// Texts that cannot be found by form, the longest first, and what replaces them.
    odd: BTreeMap<(std::cmp::Reverse<usize>, String), String>,
    form: Regex,
}

/// URIs, names, Ethernet addresses, IPv6 and IPv4 addresses, in this order.
const FORM: &str = r#"([A-Za-z][A-Za-z0-9+.\-]*://[^\s"'<>(),;|`{}]*)|(/[^\s"'<>(),;|`{}\[\]]*)|([0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5})|([0-9A-Fa-f.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%[A-Za-z0-9._-]+)?)|([0-9]{1,3}(?:\.[0-9]{1,3}){3})"#;

impl Scrubber {
    /// One that scrubs, or, with names, one that leaves everything as it is.
    ///
    /// # Errors
    /// If the system provides no random numbers.
    pub(super) fn new(with_names: bool) -> Result<Self, getrandom::Error> {
        let pseudonyms = if with_names { None } else { Some(Pseudonyms::new()?) };
        Ok(Self::with(pseudonyms))
    }

    fn with(pseudonyms: Option<Pseudonyms>) -> Self {
        let form = Regex::new(FORM).expect("tests use it");
        Scrubber {
            pseudonyms,
            words: HashMap::new(),
            components: HashMap::new(),
            paths: BTreeSet::new(),
            odd: BTreeMap::new(),
            form,
        }
    }

    /// A name that texts may contain, whole or in parts.
    pub(super) fn learn_name(&mut self, name: &NameBuf) {
        let Some(pseudonyms) = &self.pseudonyms else { return };
        let first = name.as_name().get(0).map(|first| first.value);
        if first == Some(b"localhost") || first == Some(b"localhop") {
            return;
        }
        for component in name.as_name().components() {
            if let Ok(word) = std::str::from_utf8(component.value)
                && word.len() >= WORD_BYTES_MIN
                && word != "KEY"
                && !word.contains(char::is_control)
                && self.components.len() < WORDS_MAX
            {
                let pseudonym = pseudonyms.word(component.value);
                if word.contains(|letter: char| !is_of_word(letter)) && self.odd.len() < ODD_MAX {
                    self.odd.insert((std::cmp::Reverse(word.len()), word.to_owned()), pseudonym.clone());
                }
                self.components.insert(word.to_lowercase(), pseudonym);
            }
        }
    }

    /// A path that texts may contain.
    pub(super) fn learn_path(&mut self, path: &str) {
        let Some(pseudonyms) = &self.pseudonyms else { return };
        if path.len() <= 1 {
            return;
        }
        let replaced = pseudonyms.path(path);
        if replaced == path {
            self.paths.insert(path.to_owned());
            return;
        }
        if path.contains(|letter: char| letter.is_whitespace() || "\"'<>(),;|`{}[]".contains(letter)) {
            self.odd.insert((std::cmp::Reverse(path.len()), path.to_owned()), replaced.clone());
        }
        if path.starts_with('/') {
            self.paths.insert(path.to_owned());
        }
        for (part, pseudonym) in path.split('/').zip(replaced.split('/')).filter(|(part, pseudonym)| part != pseudonym)
        {
            self.learn_part(path, part, pseudonym);
            // The name of a file without its ending.
            if let Some((stem, (pseudonym, _))) =
                part.rsplit_once('.').map(|(stem, _)| stem).zip(pseudonym.rsplit_once('.'))
            {
                self.learn_part(path, stem, pseudonym);
            }
        }
    }

    fn learn_part(&mut self, path: &str, part: &str, pseudonym: &str) {
        // The parts of a relative path are found as words only.
        let words = if path.starts_with('/') { &mut self.components } else { &mut self.words };
        if words.len() >= WORDS_MAX || part.len() < WORD_BYTES_MIN || VOCABULARY.contains(&part) {
            return;
        }
        words.entry(part.to_lowercase()).or_insert_with(|| pseudonym.to_owned());
        if part.contains(|letter: char| !is_of_word(letter)) && self.odd.len() < ODD_MAX {
            self.odd.insert((std::cmp::Reverse(part.len()), part.to_owned()), pseudonym.to_owned());
        }
    }

    /// The name of a host, which texts may have without its domain.
    pub(super) fn learn_host(&mut self, host: &str) {
        let Some(pseudonyms) = &self.pseudonyms else { return };
        let short = host.split('.').next().unwrap_or_default();
        for name in [host, short] {
            if !name.is_empty() && name != "localhost" && name.parse::<IpAddr>().is_err() {
                self.words.insert(name.to_lowercase(), pseudonyms.host(name));
            }
        }
    }

    /// The name of a user.
    pub(super) fn learn_user(&mut self, user: &str) {
        let Some(pseudonyms) = &self.pseudonyms else { return };
        if !SYSTEM_USERS.contains(&user) {
            self.words.insert(user.to_lowercase(), pseudonyms.user(user));
        }
    }

    /// The name of a network interface.
    pub(super) fn learn_interface(&mut self, name: &str) {
        let Some(pseudonyms) = &self.pseudonyms else { return };
        let pseudonym = pseudonyms.interface(name);
        if pseudonym != name && !name.contains(['/', ':']) {
            self.words.insert(name.to_lowercase(), pseudonym);
        }
    }

    /// The hosts and paths of a URI.
    pub(super) fn learn_uri(&mut self, uri: &str) {
        let Some((scheme, rest)) = uri.split_once("://") else { return };
        match scheme {
            "unix" | "memif" => self.learn_path(rest),
            _ if scheme.ends_with("dev") => {
                self.learn_interface(rest.split(':').next().unwrap_or_default());
            }
            _ => {
                let host = rest.split(['/', '?']).next().unwrap_or_default();
                let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
                if !host.starts_with('[') && scheme != "fd" {
                    self.learn_host(host.rsplit_once(':').map_or(host, |(host, _)| host));
                }
            }
        }
    }

    /// Text of a field: words of the protocol stay, whatever names contain.
    pub(super) fn field(&self, text: &str) -> String {
        self.scrub(text, false)
    }

    /// Text that people wrote or read: components of names are replaced as words, too.
    pub(super) fn free(&self, text: &str) -> String {
        self.scrub(text, true)
    }

    /// All texts of a document. Keys are the program's own.
    pub(super) fn document(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.field(&text)),
            Value::Array(values) => values.into_iter().map(|value| self.document(value)).collect(),
            Value::Object(values) => values.into_iter().map(|(key, value)| (key, self.document(value))).collect(),
            value => value,
        }
    }

    fn scrub(&self, text: &str, is_free: bool) -> String {
        let Some(pseudonyms) = &self.pseudonyms else { return text.to_owned() };
        // Texts that have no form are taken out first; what replaces them is left alone.
        for ((_, odd), replacement) in &self.odd {
            if (is_free || odd.starts_with('/'))
                && let Some((before, after)) = text.split_once(&**odd)
            {
                return self.scrub(before, is_free) + replacement + &self.scrub(after, is_free);
            }
        }
        let mut scrubbed = String::new();
        // Text up to here is done; what follows was looked at up to the second place.
        let (mut done, mut seen) = (0, 0);
        while let Some(found) = self.form.captures(&text[seen..]) {
            let start = seen + found.get(0).map_or(0, |whole| whole.start());
            let (taken, replaced) = self.replaced(pseudonyms, &found, text[..start].chars().last());
            seen = start + taken;
            if let Some(replaced) = replaced {
                scrubbed += &self.words_of(&text[done..start], is_free);
                scrubbed += &replaced;
                done = seen;
            }
        }
        scrubbed + &self.words_of(&text[done..], is_free)
    }

    /// How many bytes of a match are taken, and what replaces them; `None`: it is text like other.
    fn replaced(
        &self,
        pseudonyms: &Pseudonyms,
        found: &regex_lite::Captures<'_>,
        previous: Option<char>,
    ) -> (usize, Option<String>) {
        let group = |number: usize| found.get(number).map(|group| group.as_str());
        if let Some(uri) = group(1) {
            let uri = uri.trim_end_matches(['.', ':']);
            return (uri.len(), Some(self.uri(pseudonyms, uri)));
        }
        if let Some(token) = group(2) {
            // `Mbit/s`, `in/out`: no name begins within a word.
            if previous.is_some_and(|letter| letter.is_alphanumeric()) {
                return (1, None);
            }
            let token = if token.len() > 1 { token.trim_end_matches(['.', ':']) } else { token };
            return (token.len(), Some(self.name_or_path(pseudonyms, token)));
        }
        if previous.is_some_and(|letter| letter.is_alphanumeric()) {
            return (1, None); // the end of a word is no address
        }
        if let Some(station) = group(3) {
            return (station.len(), Some(pseudonyms.station(&station.replace('-', ":"))));
        }
        if let Some(token) = group(4) {
            let (address, zone) = token.split_once('%').map_or((token, None), |(address, zone)| (address, Some(zone)));
            let parsed = [address, address.trim_end_matches(['.', ':'])]
                .into_iter()
                .find_map(|text| Some((text.len(), text.parse::<Ipv6Addr>().ok()?)));
            return match (parsed, zone) {
                (Some((_, parsed)), Some(zone)) => {
                    (token.len(), Some(format!("{}%{}", pseudonyms.address(parsed.into()), pseudonyms.interface(zone))))
                }
                (Some((length, parsed)), None) => (length, Some(pseudonyms.address(parsed.into()))),
                // Several addresses in one, or a longer one than there are.
                (None, _) if token.contains("::") || token.matches(':').count() > 3 => {
                    (token.len(), Some(pseudonyms.host(token)))
                }
                // An IPv4 address with a port and a colon, a time of day: look again behind the first part.
                (None, _) => self.first_part(pseudonyms, token),
            };
        }
        let token = group(5).unwrap_or_default();
        (token.len(), token.parse::<IpAddr>().ok().map(|address| pseudonyms.address(address)))
    }

    fn first_part(&self, pseudonyms: &Pseudonyms, token: &str) -> (usize, Option<String>) {
        let first = token.split(':').next().unwrap_or_default();
        let address = first.parse::<IpAddr>().ok().map(|address| pseudonyms.address(address));
        (first.len().max(1), address)
    }

    fn name_or_path(&self, pseudonyms: &Pseudonyms, token: &str) -> String {
        let is_path = |path: &String| {
            token.strip_prefix(path.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ':', '.']))
        };
        if self
            .paths
            .range(..=token.to_owned())
            .rev()
            .take_while(|path| path.as_bytes()[1..2] == token.as_bytes()[1..2])
            .any(is_path)
        {
            let (path, line) = match token.rsplit_once(':') {
                Some((path, line)) if line.parse::<u32>().is_ok() => (path, format!(":{line}")),
                _ => (token, String::new()),
            };
            return pseudonyms.path(path) + &line;
        }
        match token.parse::<NameBuf>() {
            Ok(name) => pseudonyms.name(&name),
            Err(_) => {
                let part = |part: &str| if part.is_empty() { String::new() } else { pseudonyms.word(part.as_bytes()) };
                token.split('/').map(part).collect::<Vec<_>>().join("/")
            }
        }
    }

    fn uri(&self, pseudonyms: &Pseudonyms, uri: &str) -> String {
        let Some((scheme, rest)) = uri.split_once("://") else { return pseudonyms.word(uri.as_bytes()) };
        let rest = match scheme {
            "unix" | "memif" | "file" => pseudonyms.path(rest),
            "fd" | "internal" | "contentstore" | "null" if rest.bytes().all(|byte| byte.is_ascii_digit()) => {
                rest.to_owned()
            }
            "ndn" => return format!("ndn:/{}", self.name_or_path(pseudonyms, rest)),
            "ether" => format!("[{}]", pseudonyms.station(rest.trim_matches(['[', ']']))),
            "dev" => pseudonyms.interface(rest),
            _ if scheme.ends_with("+dev") => {
                let (interface, port) = rest.rsplit_once(':').unwrap_or((rest, ""));
                format!("{}:{port}", pseudonyms.interface(interface))
            }
            _ => authority_and_path(pseudonyms, rest),
        };
        let is_known = SCHEMES_OF_NEW_FACES.iter().chain(&OTHER_SCHEMES).any(|known| *known == scheme);
        let scheme = if is_known { scheme.to_owned() } else { self.words_of(scheme, true) };
        format!("{scheme}://{rest}")
    }

    /// Learned words in text without URIs, names and addresses.
    fn words_of(&self, text: &str, is_free: bool) -> String {
        let mut scrubbed = String::new();
        let mut word = String::new();
        for letter in text.chars() {
            if is_of_word(letter) {
                word.push(letter);
            } else {
                scrubbed += &self.word(&word, is_free);
                word.clear();
                scrubbed.push(letter);
            }
        }
        scrubbed + &self.word(&word, is_free)
    }

    /// A word with its dots and dashes, or else each part of it.
    fn word(&self, word: &str, is_free: bool) -> String {
        if word.is_empty() {
            return String::new();
        }
        let known = |word: &str| {
            let word = word.to_lowercase();
            let component = || self.components.get(&word).filter(|_| is_free && !VOCABULARY.contains(&&*word));
            self.words.get(&word).or_else(component).cloned()
        };
        if let Some(pseudonym) = known(word.trim_end_matches('.')) {
            return pseudonym;
        }
        let mut scrubbed = String::new();
        let mut part = String::new();
        for letter in word.chars() {
            if ['.', '-', '_'].contains(&letter) {
                scrubbed += &known(&part).unwrap_or_else(|| part.clone());
                part.clear();
                scrubbed.push(letter);
            } else {
                part.push(letter);
            }
        }
        scrubbed + &known(&part).unwrap_or(part)
    }
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || ['.', '-', '_'].contains(&letter)
}

/// `user@host:port/path?query`.
fn authority_and_path(pseudonyms: &Pseudonyms, rest: &str) -> String {
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let (host, port) = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((host, port)) => {
            let (address, zone) = host.split_once('%').map_or((host, None), |(address, zone)| (address, Some(zone)));
            let zone = zone.map(|zone| format!("%{}", pseudonyms.interface(zone))).unwrap_or_default();
            (format!("[{}{zone}]", host_of(pseudonyms, address)), port.to_owned())
        }
        None => {
            let (host, port) = host.rsplit_once(':').map_or((host, None), |(host, port)| (host, Some(port)));
            let (host, zone) = host
                .split_once('%')
                .map_or((host, String::new()), |(host, zone)| (host, format!("%{}", pseudonyms.interface(zone))));
            (host_of(pseudonyms, host) + &zone, port.map(|port| format!(":{port}")).unwrap_or_default())
        }
    };
    let user = user.map(|user| format!("{}@", pseudonyms.user(user))).unwrap_or_default();
    let part = |part: &str| {
        let is_kept = part.is_empty() || part.bytes().all(|byte| byte.is_ascii_digit());
        if is_kept { part.to_owned() } else { pseudonyms.word(part.as_bytes()) }
    };
    let path = path.split('/').map(part).collect::<Vec<_>>().join("/");
    format!("{user}{host}{port}{path}")
}

fn host_of(pseudonyms: &Pseudonyms, host: &str) -> String {
    host.parse::<IpAddr>().map_or_else(|_| pseudonyms.host(host), |address| pseudonyms.address(address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scrubber() -> Scrubber {
        let mut scrubber = Scrubber::with(Some(Pseudonyms::of_secret([7; 32])));
        scrubber.learn_name(&"/alice/holiday/KEY/%01%02/v=3".parse().unwrap());
        scrubber.learn_name(&"/Gr%C3%BC%C3%9Fe/my%20film".parse().unwrap());
        scrubber.learn_path("/home/alice/private place/router.toml");
        scrubber.learn_path("/var/lib/acme/state.toml");
        scrubber.learn_path("keys/operator.ndncert");
        scrubber.learn_host("gateway.acme.example");
        scrubber.learn_user("carol");
        scrubber.learn_uri("ws://relay.acme.example:9696/ws");
        scrubber.learn_uri("unix:///srv/carol/nfd.sock");
        scrubber.learn_uri("udp4+dev://uplinkx:7700");
        scrubber
    }

    const SECRETS: [&str; 18] = [
        "uplinkx",
        "alice",
        "holiday",
        "Grüße",
        "Gr%C3%BC",
        "my film",
        "my%20film",
        "private place",
        "acme",
        "operator",
        "gateway",
        "carol",
        "relay",
        "192.0.2.7",
        "10.1.2.3",
        "2001:db8",
        "08:00:27",
        "bob",
    ];

    fn clean(text: &str) -> String {
        let scrubbed = scrubber().free(text);
        for secret in SECRETS {
            assert!(!scrubbed.to_lowercase().contains(&secret.to_lowercase()), "{secret} in {scrubbed}");
        }
        scrubbed
    }

    #[test]
    fn free_text_loses_all_that_was_learned_and_all_that_has_a_form() {
        for (text, kept) in [
            ("cannot read /home/alice/private place/router.toml: No such file", ": No such file"),
            ("identity Alice signed holiday, not Holiday.", "identity "),
            ("the Data /bob/x/seg=7 was dropped.", "/seg=7 was dropped."),
            ("face up face=259 remote=udp4://192.0.2.7:6363 local=udp4://10.1.2.3:6363", ":6363"),
            ("peer 192.0.2.7:6363, then 10.1.2.3.", ":6363, then ipv4-private-"),
            ("from [2001:db8::7]:6363 and 2001:db8::8, at 07:19:53.090Z", "at 07:19:53.090Z"),
            ("station 08:00:27:01:01:01 and 08-00-27-01-01-02", "station mac-"),
            ("carol@gateway.acme.example said so; GATEWAY too", " too"),
            ("ws://relay.acme.example:9696/ws?token=bob is away", ":9696/"),
            ("redis://bob:secret@10.1.2.3:6379/0", ":6379/0"),
            ("keys/operator.ndncert is missing", " is missing"),
            ("Grüße and my film and /Gr%C3%BC%C3%9Fe/my%20film", " and "),
            ("unix:///srv/carol/nfd.sock and ether://[08:00:27:01:01:01]", "nfd.sock and ether://[mac-"),
            ("/var/lib/acme/state.toml:7 and /var/lib/acme/state.toml.ignored", ":7 and /var/lib/"),
            ("udp6://[2001:db8::7%25alice]:6363", "]:6363"),
            ("1.2 Mbit/s in/out, 5 packets/s", "1.2 Mbit/s in/out, 5 packets/s"),
            ("interface=uplinkx and dev://uplinkx, eth0", ", eth0"),
            ("ndn:/alice/x", "ndn:/n"),
        ] {
            let scrubbed = clean(text);
            assert!(scrubbed.contains(kept), "{text} => {scrubbed}");
        }
    }

    #[test]
    fn the_same_name_has_the_same_pseudonym_everywhere() {
        let scrubber = scrubber();
        let name = scrubber.field("/alice/holiday");
        assert!(scrubber.free("try: namewire explain /alice/holiday/v=3").contains(&format!("{name}/v=3")));
        assert!(name.contains(&scrubber.free("alice")), "a component is the same as a word");
        let face = scrubber.field("udp4://192.0.2.7:6363");
        assert!(face.contains(&scrubber.free("192.0.2.7")));
    }

    #[test]
    fn fields_keep_words_of_the_protocol_and_what_every_machine_has() {
        let mut scrubber = scrubber();
        scrubber.learn_name(&"/local/permanent".parse().unwrap());
        for kept in [
            "permanent",
            "local",
            "engine.no-route",
            "best-route",
            "/localhost/nfd/strategy/multicast/v=5",
            "fd://18",
            "internal://",
            "unix:///run/nfd/nfd.sock",
            "udp4://127.0.0.1:6363",
            "udp4://0.0.0.0:6363",
            "64 MiB",
            "/",
            "\"224.0.23.170:56363\"",
            "dev://eth0",
            "namewire-0.1.0",
            "[\"0.0.0.0:9696\", \"[::]:9696\"]",
            "10 min",
            "udp4+dev://eth0:7700",
            "cut.face-259",
            "user 1000",
        ] {
            assert_eq!(scrubber.field(kept), kept);
        }
        assert_ne!(scrubber.free("permanent"), "permanent");
        assert!(scrubber.field("strategy./alice").starts_with("strategy./n"));
    }

    #[test]
    fn documents_are_scrubbed_in_depth_and_with_names_not_at_all() {
        let document = serde_json::json!({"faces": [{"uri": "udp4://192.0.2.7:6363", "id": 7}], "name": "/alice"});
        let scrubbed = scrubber().document(document.clone());
        assert_eq!(scrubbed["faces"][0]["id"], 7);
        assert!(scrubbed["faces"][0]["uri"].as_str().unwrap().starts_with("udp4://ipv4-public-"));
        let open = Scrubber::new(true).unwrap();
        assert_eq!(open.document(document.clone()), document);
        assert_eq!(open.free("carol at 10.1.2.3"), "carol at 10.1.2.3");
    }

    proptest! {
        /// Whatever stands between them.
        #[test]
        fn no_learned_word_and_no_address_survives_in_any_text(
            parts in prop::collection::vec((0..SECRETS.len(), r#"[ \t,;:=()<>"'|{}\[\]/]{1,3}[a-z0-9%/]{0,6}[ =,("']"#), 1..8)
        ) {
            let text: String = parts.iter().map(|(secret, between)| format!("{}{between}", whole(SECRETS[*secret]))).collect();
            let scrubbed = scrubber().free(&text).to_lowercase();
            for secret in SECRETS {
                prop_assert!(!scrubbed.contains(&secret.to_lowercase()), "{} in {:?} => {:?}", secret, text, scrubbed);
            }
        }

        #[test]
        fn no_text_at_all_makes_it_panic(text in "\\PC{0,40}") {
            let scrubber = scrubber();
            let _ = (scrubber.free(&text), scrubber.field(&text));
        }
    }

    /// The part of an address as a whole one, and a name that nobody taught as one of a URI.
    fn whole(secret: &str) -> String {
        match secret {
            "2001:db8" => "2001:db8::7".to_owned(),
            "08:00:27" => "08:00:27:01:01:01".to_owned(),
            "bob" => "/bob".to_owned(),
            "Gr%C3%BC" => "/Gr%C3%BC".to_owned(),
            "my%20film" => "/my%20film".to_owned(),
            secret => secret.to_owned(),
        }
    }

    #[test]
    fn no_text_makes_it_panic() {
        let scrubber = scrubber();
        for text in [
            "",
            "/",
            "//",
            "://",
            "a://",
            "/%",
            "/%zz/x",
            ":::",
            "%",
            "[",
            "/..",
            "1.2.3.4.5",
            "ä/ö",
            "::%x",
            "é1.2.3.4",
        ] {
            let _ = (scrubber.free(text), scrubber.field(text));
        }
    }
}
