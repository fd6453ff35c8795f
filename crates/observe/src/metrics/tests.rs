//! The text, its escaping, and the document made from the list of metrics.

use std::collections::HashSet;
use std::path::Path;
use std::process::{Command, Stdio};

use super::encoder::escaped;
use super::{FACES_MAX, Format, Kind, Metric, ReadPeers, encode, encode_with, families};
use crate::peers::PeerCounts;
use crate::snapshot::{Answers, Face, FaceAbout, Pool, Route, Snapshot, Worker};
use namewire_packet::nfd::{CsPrefixUsage, DropCounter, FaceCounters, LinkCounts, PacketCounts};

const NASTY: &str = "a\"b\\c\nd{}=,é";

/// A snapshot in which every family has a sample.
fn full(face_count: u64) -> Snapshot {
    let counters = FaceCounters {
        packets: PacketCounts { in_interests: 1, out_data: 2, ..Default::default() },
        in_bytes: 120,
        out_bytes: 0,
    };
    let drops =
        vec![DropCounter { reason: "no-route".into(), count: 3 }, DropCounter { reason: "none".into(), count: 0 }];
    let about = |id| FaceAbout {
        id,
        remote: format!("udp4://192.0.2.1:{id}"),
        local: NASTY.into(),
        state: "up".into(),
        mtu: 1500,
        drops: drops.clone(),
        rtt_ms: Some(12.5),
        loss: Some(0.25),
        idle_ms: Some(40),
        ..Default::default()
    };
    let answers = Answers { buckets: vec![(0.001, 3), (0.25, 2)], slower: 1, sum_s: 4.5, unanswered: 9 };
    let link = LinkCounts { frames_retransmitted: Some(5), congestion_marked: Some(6) };
    let face = |id| Face { about: about(id), counters, link, answers: Some(answers.clone()), recent: None };
    let mut snapshot = Snapshot {
        version: "0.1.0".into(),
        start_unix_ms: 1_700_000_000_500,
        workers: vec![Worker { busy_ratio: Some(0.5), poll_ratio: Some(0.1), ..Default::default() }],
        faces: (1..=face_count).rev().map(face).collect(),
        routes: vec![Route::default()],
        drops,
        events: vec![DropCounter { reason: "limit.cs-evicted".into(), count: 7 }],
        pools: vec![Pool { name: "faces".into(), used: 3, capacity: 10, holders: 2, refused: 1 }],
        ..Default::default()
    };
    snapshot.cs.usage.prefixes =
        vec![CsPrefixUsage { prefix: "/x".parse().unwrap(), hits: 1, misses: 2, insertions: 3 }];
    snapshot
}

#[test]
fn label_values_are_escaped() {
    assert_eq!(escaped(b"plain /a/b?c"), "plain /a/b?c");
    assert_eq!(escaped(br#"a"b"#), r#"a\"b"#);
    assert_eq!(escaped(br"a\b"), r"a\\b");
    assert_eq!(escaped(b"a\nb"), r"a\nb");
    assert_eq!(escaped("é\u{1f600}".as_bytes()), "é\u{1f600}");
    assert_eq!(escaped(b"a\xff\xfeb"), "a\u{fffd}\u{fffd}b");
}

#[test]
fn open_metrics_text() {
    let text = encode(&full(1), Format::OpenMetrics);
    for line in [
        "# TYPE namewire_build info\n",
        "namewire_build_info{version=\"0.1.0\"} 1\n",
        "# UNIT namewire_start_time_seconds seconds\n",
        "namewire_start_time_seconds 1700000000.5\n",
        "# TYPE namewire_face_in_bytes counter\n# UNIT namewire_face_in_bytes bytes\n",
        "namewire_face_in_bytes_total{face=\"1\",remote=\"udp4://192.0.2.1:1\",local=\"a\\\"b\\\\c\\nd{}=,é\"} 120\n",
        "namewire_face_rtt_seconds{face=\"1\",",
        " 0.0125\n",
        "namewire_face_drops_total{face=\"1\",reason=\"no-route\"} 3\n",
        "# TYPE namewire_face_answer_seconds histogram\n# UNIT namewire_face_answer_seconds seconds\n",
        "le=\"0.001\"} 3\n",
        "le=\"0.25\"} 5\n",
        "le=\"+Inf\"} 6\n",
        "namewire_face_answer_seconds_count{face=\"1\",",
        "namewire_face_answer_seconds_sum{face=\"1\",",
        "namewire_drops_total{reason=\"no-route\"} 3\n",
        "namewire_events_total{event=\"limit.cs-evicted\"} 7\n",
        "namewire_faces_not_shown 0\n",
    ] {
        assert!(text.contains(line), "{line:?} is missing in\n{text}");
    }
    assert!(text.ends_with("\n# EOF\n"));
    assert!(!text.contains("\"none\""), "a reason that dropped nothing");
}

#[test]
fn prometheus_text_names_counters_as_its_samples() {
    let text = encode(&full(1), Format::Prometheus);
    assert!(text.contains("# TYPE namewire_face_in_bytes_total counter\nnamewire_face_in_bytes_total{"));
    assert!(text.contains("# TYPE namewire_build_info gauge\n"));
    assert!(!text.contains("# UNIT") && !text.contains("# EOF"));
}

#[test]
fn every_family_of_a_full_snapshot_has_a_header_and_a_sample() {
    let failed = [("slow", 2)].into();
    let counts = vec![PeerCounts { name: "lab".into(), asked: 3, answered: 1, failed }];
    let peers = ReadPeers { counts, refused: 4 };
    let text = encode_with(&full(1), &peers, Format::OpenMetrics);
    for metric in families() {
        assert!(text.contains(&format!("# HELP {} {}\n", metric.name, metric.help)), "{}", metric.name);
        assert!(text.contains(&format!("\n{}", metric.sample_name())), "{}", metric.name);
    }
}

#[test]
fn names_follow_the_rules() {
    let mut names = HashSet::new();
    for metric in families() {
        assert!(names.insert(&metric.name), "{} occurs twice", metric.name);
        assert!(metric.name.starts_with("namewire_"));
        assert!(!metric.name.ends_with("_total") && !metric.name.ends_with("_info"), "{}", metric.name);
        assert!(metric.help.ends_with('.') && !metric.help.contains(['\\', '\n', '"', '|']), "{}", metric.name);
    }
}

#[test]
fn a_thousand_faces_have_metrics_and_the_rest_is_counted() {
    let text = encode(&full(FACES_MAX as u64 + 7), Format::OpenMetrics);
    assert_eq!(text.matches("\nnamewire_face_up{").count(), FACES_MAX);
    assert!(text.contains("namewire_face_up{face=\"1000\",") && !text.contains("face=\"1001\""));
    assert!(text.contains("\nnamewire_faces_not_shown 7\n"));
    assert!(text.contains("\nnamewire_faces 1007\n"));
}

#[test]
fn repeated_labels_and_values_that_are_no_numbers_are_left_out() {
    let mut snapshot = full(2);
    snapshot.drops = vec![snapshot.drops[0].clone(), snapshot.drops[0].clone()];
    snapshot.faces[0].about.rtt_ms = Some(f64::NAN);
    snapshot.faces[1].about.rtt_ms = Some(f64::INFINITY);
    let text = encode(&snapshot, Format::Prometheus);
    assert_eq!(text.matches("\nnamewire_drops_total{").count(), 1);
    assert!(!text.contains("namewire_face_rtt_seconds"));
}

#[test]
fn an_empty_snapshot_has_metrics() {
    let text = encode(&Snapshot::default(), Format::OpenMetrics);
    assert!(text.contains("\nnamewire_faces 0\n") && !text.contains("namewire_face_up"));
}

#[test]
fn accept_chooses_the_format() {
    let prometheus = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    assert_eq!(Format::accepted(prometheus), Format::OpenMetrics);
    assert_eq!(Format::accepted("text/html, APPLICATION/OpenMetrics-Text ; q=0.1"), Format::OpenMetrics);
    for other in ["", "*/*", "text/plain", "application/openmetrics-text;q=0", "application/openmetrics-textual"] {
        assert_eq!(Format::accepted(other), Format::Prometheus, "{other}");
    }
}

#[test]
fn promtool_accepts_the_text() {
    let promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut promtool) = promtool else {
        println!("not checked by promtool: no such program here (Debian package prometheus)");
        return;
    };
    let text = encode(&full(3), Format::Prometheus);
    std::io::Write::write_all(&mut promtool.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success() && said.is_empty(), "{}\n{text}", String::from_utf8_lossy(&said));
}

/// `UPDATE=1 cargo test -p namewire-observe` writes the document anew.
#[test]
fn the_document_lists_the_metrics_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    let expected = document();
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(&path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/reference/metrics.md is not what the code says: UPDATE=1 cargo test -p namewire-observe writes it anew"
    );
}

fn document() -> String {
    let lines = [
        "# Metrics",
        "",
        "The router shows these metrics at `/metrics`, as OpenMetrics 1.0 to a reader that asks for it and as",
        "Prometheus text 0.0.4 to others. At most 1,000 faces have metrics; `namewire_faces_not_shown` counts the",
        "others. A reason that dropped nothing has no sample. All counters start at 0 with the router.",
        "",
        "A test makes this file from the code: `UPDATE=1 cargo test -p namewire-observe`.",
        "",
        "| name | type | unit | labels | meaning |",
        "| --- | --- | --- | --- | --- |",
        "",
    ];
    let mut text = lines.join("\n");
    for metric in families() {
        text.push_str(&row(metric));
    }
    text
}

fn row(metric: &Metric) -> String {
    let kind = match metric.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Info => "info",
        Kind::Histogram => "histogram",
    };
    let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
    let unit = if metric.unit().is_empty() { "–" } else { metric.unit() };
    let labels = if labels.is_empty() { "–".to_owned() } else { labels.join(", ") };
    format!("| `{}` | {kind} | {unit} | {labels} | {} |\n", metric.sample_name(), metric.help)
}
