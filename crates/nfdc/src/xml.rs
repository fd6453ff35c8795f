//! The status report as XML: namespace `ndn:/localhost/nfd/status/1`, in one line without a line break at its end.
//!
//! Source: drop-in §5, and the elements that NFD's `nfdc` writes, in their order. Times are
//! ISO 8601 extended, durations XML Schema's (`PT59S`).

use crate::{text::extended_timestamp, value::OriginText};
use namewire_packet::nfd::{
    ChannelStatus, CsInfo, FaceCounters, FaceStatus, FibEntry, ForwarderStatus, RibEntry, Route, StrategyChoice,
    cs_flags, face_flags, route_flags,
};
use std::fmt::Display;

/// Puts the sections of a report together.
pub(crate) fn document(sections: &str) -> String {
    format!("<?xml version=\"1.0\"?><nfdStatus xmlns=\"ndn:/localhost/nfd/status/1\">{sections}</nfdStatus>")
}

/// An element; what it holds is XML already, or a number.
fn element(name: &str, content: impl Display) -> String {
    format!("<{name}>{content}</{name}>")
}

/// An element that holds text.
fn text_element(name: &str, content: impl Display) -> String {
    element(name, escape(&content.to_string()))
}

/// An element that is there if `is_set`.
fn switch(name: &str, is_set: bool) -> String {
    if is_set { format!("<{name}/>") } else { String::new() }
}

/// An element with others in it; without any it is written short.
fn group(name: &str, content: &str) -> String {
    if content.is_empty() { format!("<{name}/>") } else { element(name, content) }
}

/// A list: never written short.
fn list<T>(name: &str, entries: &[T], entry: impl Fn(&T) -> String) -> String {
    element(name, entries.iter().map(entry).collect::<String>())
}

fn optional<T>(value: Option<T>, write: impl Fn(T) -> String) -> String {
    value.map(write).unwrap_or_default()
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => escaped.push_str("&quot;"),
            '&' => escaped.push_str("&amp;"),
            '\'' => escaped.push_str("&apos;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// `PT59S`, `PT0.100S`: whole milliseconds, cut off.
fn duration(ms: u64) -> String {
    let fraction = if ms.is_multiple_of(1000) { String::new() } else { format!(".{:03}", ms % 1000) };
    format!("PT{}{fraction}S", ms / 1000)
}

fn packets(name: &str, interests: u64, data: u64, nacks: u64) -> String {
    let content = [element("nInterests", interests), element("nData", data), element("nNacks", nacks)].concat();
    element(name, content)
}

/// `<generalStatus>`.
pub(crate) fn general_section(status: &ForwarderStatus) -> String {
    let uptime_ms = status.current_timestamp_ms.saturating_sub(status.start_timestamp_ms);
    let counters = [
        packets("incomingPackets", status.packets.in_interests, status.packets.in_data, status.packets.in_nacks),
        packets("outgoingPackets", status.packets.out_interests, status.packets.out_data, status.packets.out_nacks),
    ];
    let content = [
        text_element("version", &status.nfd_version),
        element("startTime", extended_timestamp(status.start_timestamp_ms)),
        element("currentTime", extended_timestamp(status.current_timestamp_ms)),
        element("uptime", duration(uptime_ms / 1000 * 1000)),
        element("nNameTreeEntries", status.n_name_tree_entries),
        element("nFibEntries", status.n_fib_entries),
        element("nPitEntries", status.n_pit_entries),
        element("nMeasurementsEntries", status.n_measurements_entries),
        element("nCsEntries", status.n_cs_entries),
        element("packetCounters", counters.concat()),
        element("nSatisfiedInterests", status.n_satisfied_interests),
        element("nUnsatisfiedInterests", status.n_unsatisfied_interests),
    ];
    element("generalStatus", content.concat())
}

/// `<channels>`.
pub(crate) fn channel_section(channels: &[ChannelStatus]) -> String {
    list("channels", channels, |channel| element("channel", text_element("localUri", &channel.local_uri)))
}

/// `<faces>`.
pub(crate) fn face_section(faces: &[FaceStatus]) -> String {
    list("faces", faces, face)
}

fn face(face: &FaceStatus) -> String {
    let congestion = [
        optional(face.base_congestion_marking_interval_ns, |ns| {
            element("baseMarkingInterval", duration(ns / 1_000_000))
        }),
        optional(face.default_congestion_threshold_bytes, |bytes| element("defaultThreshold", bytes)),
    ];
    let content = [
        element("faceId", face.face_id),
        text_element("remoteUri", &face.uri),
        text_element("localUri", &face.local_uri),
        optional(face.expiration_period_ms, |ms| element("expirationPeriod", duration(ms))),
        element("faceScope", face.face_scope),
        element("facePersistency", face.face_persistency),
        element("linkType", face.link_type),
        group("congestion", &congestion.concat()),
        optional(face.mtu, |mtu| element("mtu", mtu)),
        face_switches(face.flags),
        face_counters(&face.counters),
    ];
    element("face", content.concat())
}

fn face_switches(flags: u64) -> String {
    let known = [
        switch("localFieldsEnabled", flags & face_flags::LOCAL_FIELDS != 0),
        switch("lpReliabilityEnabled", flags & face_flags::LP_RELIABILITY != 0),
        switch("congestionMarkingEnabled", flags & face_flags::CONGESTION_MARKING != 0),
    ];
    group("flags", &known.concat())
}

fn face_counters(c: &FaceCounters) -> String {
    let packet_counters = [
        packets("incomingPackets", c.packets.in_interests, c.packets.in_data, c.packets.in_nacks),
        packets("outgoingPackets", c.packets.out_interests, c.packets.out_data, c.packets.out_nacks),
    ];
    let byte_counters = [element("incomingBytes", c.in_bytes), element("outgoingBytes", c.out_bytes)];
    element("packetCounters", packet_counters.concat()) + &element("byteCounters", byte_counters.concat())
}

/// `<fib>`.
pub(crate) fn fib_section(entries: &[FibEntry]) -> String {
    list("fib", entries, |entry| {
        let next_hops = list("nextHops", &entry.next_hops, |hop| {
            element("nextHop", element("faceId", hop.face_id) + &element("cost", hop.cost))
        });
        element("fibEntry", text_element("prefix", &entry.name) + &next_hops)
    })
}

/// `<rib>`.
pub(crate) fn rib_section(entries: &[RibEntry]) -> String {
    list("rib", entries, |entry| {
        let routes = list("routes", &entry.routes, route);
        element("ribEntry", text_element("prefix", &entry.name) + &routes)
    })
}

fn route(route: &Route) -> String {
    let flags = [
        switch("childInherit", route.flags & route_flags::CHILD_INHERIT != 0),
        switch("ribCapture", route.flags & route_flags::CAPTURE != 0),
    ];
    let content = [
        element("faceId", route.face_id),
        element("origin", OriginText(route.origin)),
        element("cost", route.cost),
        group("flags", &flags.concat()),
        // Whole seconds here, unlike the durations of faces.
        optional(route.expiration_period_ms, |ms| element("expirationPeriod", duration(ms / 1000 * 1000))),
    ];
    element("route", content.concat())
}

/// `<cs>`.
pub(crate) fn cs_section(cs: &CsInfo) -> String {
    let content = [
        element("capacity", cs.capacity),
        switch("admitEnabled", cs.flags & cs_flags::ADMIT != 0),
        switch("serveEnabled", cs.flags & cs_flags::SERVE != 0),
        element("nEntries", cs.n_cs_entries),
        element("nHits", cs.n_hits),
        element("nMisses", cs.n_misses),
    ];
    element("cs", content.concat())
}

/// `<strategyChoices>`.
pub(crate) fn strategy_section(choices: &[StrategyChoice]) -> String {
    list("strategyChoices", choices, |choice| {
        let strategy = element("strategy", text_element("name", &choice.strategy));
        element("strategyChoice", text_element("namespace", &choice.name) + &strategy)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use proptest::prelude::*;

    fn is_well_formed(sections: &str) -> bool {
        roxmltree::Document::parse(&document(sections)).is_ok()
    }

    #[test]
    fn durations_and_times() {
        assert_eq!(duration(59_000), "PT59S");
        assert_eq!(duration(100), "PT0.100S");
        assert_eq!(duration(0), "PT0S");
        assert_eq!(extended_timestamp(1_795_212_138_488), "2026-11-20T22:02:18.488000");
        assert_eq!(extended_timestamp(0), "1970-01-01T00:00:00");
    }

    #[test]
    fn faces() {
        assert_eq!(
            face(&samples::face()),
            "<face><faceId>259</faceId><remoteUri>udp4://192.0.2.77:6363</remoteUri>\
             <localUri>udp4://192.0.2.2:6363</localUri><expirationPeriod>PT59.900S</expirationPeriod>\
             <faceScope>non-local</faceScope><facePersistency>permanent</facePersistency>\
             <linkType>point-to-point</linkType><congestion><baseMarkingInterval>PT0.100S</baseMarkingInterval>\
             <defaultThreshold>65536</defaultThreshold></congestion><mtu>1400</mtu>\
             <flags><lpReliabilityEnabled/><congestionMarkingEnabled/></flags>\
             <packetCounters><incomingPackets><nInterests>1</nInterests><nData>2</nData><nNacks>3</nNacks>\
             </incomingPackets><outgoingPackets><nInterests>4</nInterests><nData>5</nData><nNacks>6</nNacks>\
             </outgoingPackets></packetCounters><byteCounters><incomingBytes>7</incomingBytes>\
             <outgoingBytes>8</outgoingBytes></byteCounters></face>"
        );
        let plain = FaceStatus { flags: 0, ..samples::plain_face() };
        assert!(face(&plain).contains("<congestion/><flags/><packetCounters>"), "{}", face(&plain));
    }

    #[test]
    fn the_other_sections() {
        assert_eq!(
            rib_section(&[samples::rib_entry()]),
            "<rib><ribEntry><prefix>/ex</prefix><routes><route><faceId>259</faceId><origin>static</origin>\
             <cost>10</cost><flags><childInherit/></flags></route><route><faceId>260</faceId><origin>7</origin>\
             <cost>0</cost><flags><childInherit/><ribCapture/></flags>\
             <expirationPeriod>PT59S</expirationPeriod></route></routes></ribEntry></rib>"
        );
        assert_eq!(
            fib_section(&[samples::fib_entry()]),
            "<fib><fibEntry><prefix>/ex</prefix><nextHops><nextHop><faceId>259</faceId><cost>0</cost></nextHop>\
             <nextHop><faceId>260</faceId><cost>20</cost></nextHop></nextHops></fibEntry></fib>"
        );
        assert_eq!(
            cs_section(&CsInfo { capacity: 9, flags: 2, n_cs_entries: 2, n_hits: 3, n_misses: 4 }),
            "<cs><capacity>9</capacity><serveEnabled/><nEntries>2</nEntries><nHits>3</nHits>\
             <nMisses>4</nMisses></cs>"
        );
        assert_eq!(
            strategy_section(&[samples::strategy_choice()]),
            "<strategyChoices><strategyChoice><namespace>/</namespace><strategy>\
             <name>/localhost/nfd/strategy/best-route/v=5</name></strategy></strategyChoice></strategyChoices>"
        );
        let general = general_section(&samples::general());
        let expected_start = "<generalStatus><version>24.07</version><startTime>2026-11-20T22:02:18.488000</startTime>\
             <currentTime>2026-11-20T22:02:40</currentTime><uptime>PT21S</uptime><nNameTreeEntries>11<";
        assert!(general.starts_with(expected_start), "{general}");
        assert!(is_well_formed(&general));
    }

    proptest! {
        /// Whatever a forwarder calls itself or a face.
        #[test]
        fn any_text_stays_text(uri in "\\PC{0,20}") {
            let face = FaceStatus { uri: uri.clone(), ..samples::face() };
            let document_text = document(&face_section(&[face]));
            let document = roxmltree::Document::parse(&document_text).unwrap();
            let found = document.descendants().find(|node| node.has_tag_name(("ndn:/localhost/nfd/status/1", "remoteUri")));
            prop_assert_eq!(found.unwrap().text().unwrap_or_default(), uri);
        }
    }
}
