//! Prints datasets as text: drop-in §5, field by field.
//!
//! An entry is `name=value` pairs, either all in one line, separated by spaces, or one per line with names
//! right-aligned. Durations are whole units, cut off, not rounded.

use crate::value::OriginText;
use namewire_packet::nfd::{
    ChannelStatus, CsInfo, FaceStatus, FibEntry, ForwarderStatus, RibEntry, Route, StrategyChoice, cs_flags,
    face_flags, route_flags,
};
use namewire_printing::output::on_off;
use std::{
    fmt::{Display, Write},
    time::{Duration, UNIX_EPOCH},
};

/// Width of the names of the general status.
const GENERAL_WIDTH: usize = 21;
/// Width of the names of one face.
const FACE_WIDTH: usize = 10;
/// Width of the names of the Content Store and of one strategy choice.
const NARROW_WIDTH: usize = 8;
/// The last millisecond of the year 9999.
const LAST_MS: u64 = 253_402_300_799_999;
/// In front of each line of a section.
const INDENT: &str = "  ";

/// Pairs of name and value.
pub(crate) struct Attributes {
    /// Names are aligned to the right by so much, a pair per line; `None`: all in one line.
    name_width: Option<usize>,
    indent: &'static str,
    text: String,
}

impl Attributes {
    /// All in one line, without its end.
    pub(crate) fn in_one_line() -> Self {
        Attributes { name_width: None, indent: "", text: String::new() }
    }

    /// A line each.
    fn in_lines(name_width: usize, indent: &'static str) -> Self {
        Attributes { name_width: Some(name_width), indent, text: String::new() }
    }

    /// Adds a pair.
    pub(crate) fn add(&mut self, name: &str, value: impl Display) -> &mut Self {
        let written = match self.name_width {
            None if self.text.is_empty() => write!(self.text, "{name}={value}"),
            None => write!(self.text, " {name}={value}"),
            Some(width) => writeln!(self.text, "{}{name:>width$}={value}", self.indent),
        };
        debug_assert!(written.is_ok(), "a String takes everything");
        self
    }

    /// The text so far.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

/// A section: its title, and a line per entry.
fn section<T>(title: &str, entries: &[T], line: impl Fn(&T) -> String) -> String {
    let lines = entries.iter().map(|entry| format!("{INDENT}{}\n", line(entry)));
    format!("{title}:\n{}", lines.collect::<String>())
}

/// Milliseconds since 1970 as `20261120T220218.488000`; the fraction only if there is one.
pub(crate) fn timestamp(ms: u64) -> String {
    extended_timestamp(ms).replace(['-', ':'], "")
}

/// Milliseconds since 1970 as `2026-11-20T22:02:18.488000`; the fraction, with the six digits that NFD prints, only if
/// there is one. Times after the year 9999 count as 1970.
pub(crate) fn extended_timestamp(ms: u64) -> String {
    let ms = if ms <= LAST_MS { ms } else { 0 };
    let seconds = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(ms)).to_string();
    let fraction = if ms.is_multiple_of(1000) { String::new() } else { format!(".{:03}000", ms % 1000) };
    seconds.trim_end_matches('Z').to_owned() + &fraction
}

/// The section "General NFD status".
pub(crate) fn general_section(status: &ForwarderStatus) -> String {
    let uptime_ms = status.current_timestamp_ms.saturating_sub(status.start_timestamp_ms);
    let mut lines = Attributes::in_lines(GENERAL_WIDTH, INDENT);
    lines
        .add("version", &status.nfd_version)
        .add("startTime", timestamp(status.start_timestamp_ms))
        .add("currentTime", timestamp(status.current_timestamp_ms))
        .add("uptime", format_args!("{} seconds", uptime_ms / 1000))
        .add("nNameTreeEntries", status.n_name_tree_entries)
        .add("nFibEntries", status.n_fib_entries)
        .add("nPitEntries", status.n_pit_entries)
        .add("nMeasurementsEntries", status.n_measurements_entries)
        .add("nCsEntries", status.n_cs_entries)
        .add("nInInterests", status.packets.in_interests)
        .add("nOutInterests", status.packets.out_interests)
        .add("nInData", status.packets.in_data)
        .add("nOutData", status.packets.out_data)
        .add("nInNacks", status.packets.in_nacks)
        .add("nOutNacks", status.packets.out_nacks)
        .add("nSatisfiedInterests", status.n_satisfied_interests)
        .add("nUnsatisfiedInterests", status.n_unsatisfied_interests);
    format!("General NFD status:\n{}", lines.take())
}

/// The section "Channels".
pub(crate) fn channel_section(channels: &[ChannelStatus]) -> String {
    section("Channels", channels, |channel| channel.local_uri.clone())
}

/// The section "Faces".
pub(crate) fn face_section(faces: &[FaceStatus]) -> String {
    section("Faces", faces, face)
}

/// One face in one line, without its end.
pub(crate) fn face(face: &FaceStatus) -> String {
    add_face(Attributes::in_one_line(), face)
}

/// One face, a line per property.
pub(crate) fn face_in_lines(face: &FaceStatus) -> String {
    add_face(Attributes::in_lines(FACE_WIDTH, ""), face)
}

fn add_face(mut attributes: Attributes, face: &FaceStatus) -> String {
    attributes.add("faceid", face.face_id).add("remote", &face.uri).add("local", &face.local_uri);
    if let Some(ms) = face.expiration_period_ms {
        attributes.add("expires", format_args!("{}s", ms / 1000));
    }
    let interval = face.base_congestion_marking_interval_ns;
    let interval = interval.map(|ns| format!("base-marking-interval={}ms", ns / 1_000_000));
    let threshold = face.default_congestion_threshold_bytes.map(|bytes| format!("default-threshold={bytes}B"));
    let congestion: Vec<String> = interval.into_iter().chain(threshold).collect();
    if !congestion.is_empty() {
        attributes.add("congestion", format_args!("{{{}}}", congestion.join(" ")));
    }
    if let Some(mtu) = face.mtu {
        attributes.add("mtu", mtu);
    }
    let c = &face.counters;
    attributes.add(
        "counters",
        format_args!(
            "{{in={{{}i {}d {}n {}B}} out={{{}i {}d {}n {}B}}}}",
            c.packets.in_interests,
            c.packets.in_data,
            c.packets.in_nacks,
            c.in_bytes,
            c.packets.out_interests,
            c.packets.out_data,
            c.packets.out_nacks,
            c.out_bytes
        ),
    );
    attributes.add("flags", format_args!("{{{}}}", face_words(face).join(" ")));
    attributes.take()
}

fn face_words(face: &FaceStatus) -> Vec<String> {
    let mut words = vec![face.face_scope.to_string(), face.face_persistency.to_string(), face.link_type.to_string()];
    for (bit, word) in [
        (face_flags::LOCAL_FIELDS, "local-fields"),
        (face_flags::LP_RELIABILITY, "lp-reliability"),
        (face_flags::CONGESTION_MARKING, "congestion-marking"),
    ] {
        if face.flags & bit != 0 {
            words.push(word.to_owned());
        }
    }
    words
}

/// The section "FIB".
pub(crate) fn fib_section(entries: &[FibEntry]) -> String {
    section("FIB", entries, |entry| {
        let next_hop =
            |hop: &namewire_packet::nfd::NextHopRecord| format!("faceid={} (cost={})", hop.face_id, hop.cost);
        let next_hops: Vec<String> = entry.next_hops.iter().map(next_hop).collect();
        format!("{} nexthops={{{}}}", entry.name, next_hops.join(", "))
    })
}

/// The section "RIB".
pub(crate) fn rib_section(entries: &[RibEntry]) -> String {
    section("RIB", entries, |entry| {
        let routes: Vec<String> = entry.routes.iter().map(|route| self::route(None, route)).collect();
        format!("{} routes={{{}}}", entry.name, routes.join(", "))
    })
}

/// One route in one line, without its end; `entry` adds the prefix.
pub(crate) fn route(entry: Option<&RibEntry>, route: &Route) -> String {
    let mut attributes = Attributes::in_one_line();
    if let Some(entry) = entry {
        attributes.add("prefix", &entry.name);
    }
    attributes
        .add("nexthop", route.face_id)
        .add("origin", OriginText(route.origin))
        .add("cost", route.cost)
        .add("flags", route_flag_words(route.flags))
        .add("expires", expires(route.expiration_period_ms.map(|ms| format!("{}s", ms / 1000))));
    attributes.take()
}

/// A duration, or `never`.
pub(crate) fn expires(duration: Option<String>) -> String {
    duration.unwrap_or_else(|| "never".to_owned())
}

/// `child-inherit|capture`, `none`; unknown bits as a hexadecimal number.
pub(crate) fn route_flag_words(flags: u64) -> String {
    if flags == 0 {
        return "none".to_owned();
    }
    let known = [(route_flags::CHILD_INHERIT, "child-inherit"), (route_flags::CAPTURE, "capture")];
    let words = known.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, word)| (*word).to_owned());
    let unknown = flags & !(route_flags::CHILD_INHERIT | route_flags::CAPTURE);
    let rest = (unknown != 0).then(|| format!("{unknown:#x}"));
    words.chain(rest).collect::<Vec<_>>().join("|")
}

/// The section "CS information".
pub(crate) fn cs_section(cs: &CsInfo) -> String {
    let mut lines = Attributes::in_lines(NARROW_WIDTH, INDENT);
    lines
        .add("capacity", cs.capacity)
        .add("admit", on_off(cs.flags & cs_flags::ADMIT != 0))
        .add("serve", on_off(cs.flags & cs_flags::SERVE != 0))
        .add("nEntries", cs.n_cs_entries)
        .add("nHits", cs.n_hits)
        .add("nMisses", cs.n_misses);
    format!("CS information:\n{}", lines.take())
}

/// The section "Strategy choices".
pub(crate) fn strategy_section(choices: &[StrategyChoice]) -> String {
    section("Strategy choices", choices, strategy)
}

/// One choice in one line, without its end.
pub(crate) fn strategy(choice: &StrategyChoice) -> String {
    add_strategy(Attributes::in_one_line(), choice)
}

/// One choice in two lines.
pub(crate) fn strategy_in_lines(choice: &StrategyChoice) -> String {
    add_strategy(Attributes::in_lines(NARROW_WIDTH, ""), choice)
}

fn add_strategy(mut attributes: Attributes, choice: &StrategyChoice) -> String {
    attributes.add("prefix", &choice.name).add("strategy", &choice.strategy);
    attributes.take()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn faces() {
        let face = samples::face();
        assert_eq!(
            self::face(&face),
            "faceid=259 remote=udp4://192.0.2.77:6363 local=udp4://192.0.2.2:6363 expires=59s \
             congestion={base-marking-interval=100ms default-threshold=65536B} mtu=1400 \
             counters={in={1i 2d 3n 7B} out={4i 5d 6n 8B}} \
             flags={non-local permanent point-to-point lp-reliability congestion-marking}"
        );
        let lines = face_in_lines(&face);
        assert!(lines.starts_with("    faceid=259\n    remote=udp4://192.0.2.77:6363\n     local="), "{lines}");
        assert!(lines.contains("\ncongestion={base-marking-interval=100ms default-threshold=65536B}\n"), "{lines}");
        assert!(lines.contains("\n       mtu=1400\n  counters={in="), "{lines}");
        assert!(lines.ends_with("congestion-marking}\n"), "{lines}");
        assert_eq!(
            self::face(&samples::plain_face()),
            "faceid=1 remote=internal:// local=internal:// counters={in={0i 0d 0n 0B} out={0i 0d 0n 0B}} \
             flags={local permanent point-to-point local-fields}"
        );
        assert_eq!(face_section(&[]), "Faces:\n");
    }

    #[test]
    fn routes_and_next_hops() {
        let rib = [samples::rib_entry()];
        assert_eq!(
            rib_section(&rib),
            "RIB:\n  /ex routes={nexthop=259 origin=static cost=10 flags=child-inherit expires=never, \
             nexthop=260 origin=7 cost=0 flags=child-inherit|capture expires=59s}\n"
        );
        assert_eq!(
            route(Some(&rib[0]), &rib[0].routes[0]),
            "prefix=/ex nexthop=259 origin=static cost=10 flags=child-inherit expires=never"
        );
        assert_eq!(
            fib_section(&[samples::fib_entry()]),
            "FIB:\n  /ex nexthops={faceid=259 (cost=0), faceid=260 (cost=20)}\n"
        );
    }

    #[test]
    fn flags_of_routes() {
        assert_eq!(route_flag_words(0), "none");
        assert_eq!(route_flag_words(2), "capture");
        assert_eq!(route_flag_words(0x13), "child-inherit|capture|0x10");
        assert_eq!(route_flag_words(8), "0x8");
    }

    #[test]
    fn the_general_status_is_aligned() {
        let text = general_section(&samples::general());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "General NFD status:");
        assert_eq!(lines[1], "                version=24.07");
        assert_eq!(lines[2], "              startTime=20261120T220218.488000");
        assert_eq!(lines[3], "            currentTime=20261120T220240");
        assert_eq!(lines[4], "                 uptime=21 seconds");
        assert_eq!(lines[5], "       nNameTreeEntries=11");
        assert_eq!(lines[17], "  nUnsatisfiedInterests=4");
        assert_eq!(lines.len(), 18);
    }

    #[test]
    fn store_strategies_and_channels() {
        assert_eq!(
            cs_section(&CsInfo { capacity: 65536, flags: 1, n_cs_entries: 2, n_hits: 3, n_misses: 4 }),
            "CS information:\n  capacity=65536\n     admit=on\n     serve=off\n  nEntries=2\n     nHits=3\n   nMisses=4\n"
        );
        let choice = samples::strategy_choice();
        assert_eq!(
            strategy_section(std::slice::from_ref(&choice)),
            "Strategy choices:\n  prefix=/ strategy=/localhost/nfd/strategy/best-route/v=5\n"
        );
        assert_eq!(strategy_in_lines(&choice), "  prefix=/\nstrategy=/localhost/nfd/strategy/best-route/v=5\n");
        let channel = ChannelStatus { local_uri: "tcp4://0.0.0.0:6363".to_owned() };
        assert_eq!(channel_section(&[channel]), "Channels:\n  tcp4://0.0.0.0:6363\n");
    }

    #[test]
    fn moments() {
        assert_eq!(timestamp(0), "19700101T000000");
        assert_eq!(timestamp(951_782_400_001), "20000229T000000.001000");
        assert_eq!(timestamp(u64::MAX), "19700101T000000");
    }
}
