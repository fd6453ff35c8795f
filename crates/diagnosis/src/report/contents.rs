//! The documents of a bundle, made from facts and scrubbed.
//!
//! Limits: [`Limits`] says how many entries of each list and lines of the log go in; the rest is counted.

use super::{archive::Document, scrubber::Scrubber};
use crate::{
    diagnosis::Diagnosis,
    facts::{Facts, ForwarderFacts, Sample},
    gather::name_of_user,
};
use namewire_node_model::log_line::LineForm;
use namewire_packet::nfd::{FaceHealth, FaceStatus, LogField, LogRecord, origin};
use serde::Serialize;
use serde_json::{Value, json};
use std::{env, fs};

/// How much goes in.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Entries of each list.
    pub(super) entries: usize,
    /// Bytes of a line of the log.
    pub(super) line_bytes: usize,
}

/// The first user that is a person on most systems, and the first that is not again.
const PEOPLE: std::ops::Range<u32> = 1000..65_534;

/// The largest /etc/passwd that is read.
const PASSWD_BYTES_MAX: usize = 1 << 20;

/// Teaches the scrubber all that the facts contain.
pub(super) fn teach(scrubber: &mut Scrubber, facts: &Facts) {
    people(facts).iter().for_each(|user| scrubber.learn_user(user));
    scrubber.learn_host(&facts.host.name);
    scrubber.learn_host(fs::read_to_string("/etc/hostname").unwrap_or_default().trim());
    for home in ["HOME", "PWD"].iter().filter_map(|variable| env::var(variable).ok()) {
        scrubber.learn_path(&home);
    }
    for socket in &facts.approach.sockets {
        scrubber.learn_path(&socket.path);
    }
    facts.approach.tried.iter().for_each(|(uri, _)| scrubber.learn_uri(uri));
    for (key, value) in &facts.settings.values {
        for text in texts_in(value) {
            match &**key {
                "router.user" | "router.group" => scrubber.learn_user(&text),
                _ if key.ends_with(".interfaces") || key.ends_with(".except") => scrubber.learn_interface(&text),
                _ => learn_setting(scrubber, &text),
            }
        }
    }
    for place in facts.settings.places.values() {
        if let Some((_, path)) = place.split_once(' ').filter(|(source, _)| *source == "file") {
            scrubber.learn_path(path.rsplit_once(':').map_or(path, |(path, _)| path));
        }
    }
    facts.configuration.iter().for_each(|file| scrubber.learn_path(&file.path));
    facts.process.iter().flat_map(|process| &process.program).for_each(|path| scrubber.learn_path(path));
    facts.folders.iter().for_each(|folder| scrubber.learn_path(&folder.path));
    scrubber.learn_path(&facts.keys.folder);
    facts.keys.files.iter().for_each(|(path, _)| scrubber.learn_path(path));
    for identity in &facts.keys.identities {
        let keys = identity
            .keys
            .iter()
            .flat_map(|key| key.certificates.iter().map(|certificate| &certificate.name).chain([&key.name]));
        keys.chain([&identity.name]).filter_map(|name| name.parse().ok()).for_each(|name| scrubber.learn_name(&name));
    }
    facts.forwarder.iter().for_each(|forwarder| teach_forwarder(scrubber, forwarder));
}

fn teach_forwarder(scrubber: &mut Scrubber, forwarder: &ForwarderFacts) {
    scrubber.learn_uri(&forwarder.transport);
    forwarder.rib.iter().for_each(|entry| scrubber.learn_name(&entry.name));
    forwarder.fib.iter().for_each(|entry| scrubber.learn_name(&entry.name));
    for Sample { state, .. } in [&forwarder.before, &forwarder.after] {
        for face in &state.faces {
            [&face.uri, &face.local_uri].into_iter().for_each(|uri| scrubber.learn_uri(uri));
        }
        state.channels.iter().for_each(|channel| scrubber.learn_uri(&channel.local_uri));
        state.strategies.iter().for_each(|choice| scrubber.learn_name(&choice.name));
        state.dropped.iter().filter_map(|packet| packet.name.as_ref()).for_each(|name| scrubber.learn_name(name));
        state.cs_usage.iter().flat_map(|usage| &usage.prefixes).for_each(|one| scrubber.learn_name(&one.prefix));
    }
    for value in forwarder.log.iter().flat_map(|record| &record.fields).map(|field| &field.value) {
        if let Some(name) = value.starts_with('/').then(|| value.parse().ok()).flatten() {
            scrubber.learn_name(&name);
        }
        scrubber.learn_uri(value);
    }
}

/// Names of people: who asks, who runs the router, and everyone who has an account.
fn people(facts: &Facts) -> Vec<String> {
    let variables = ["USER", "LOGNAME", "SUDO_USER"].iter().filter_map(|variable| env::var(variable).ok());
    let router = facts.process.as_ref().and_then(|process| process.uid).and_then(name_of_user);
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let account = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let is_person = fields.get(2)?.parse().is_ok_and(|uid| PEOPLE.contains(&uid));
        is_person.then(|| fields[0].to_owned())
    };
    let accounts: Vec<String> =
        if passwd.len() <= PASSWD_BYTES_MAX { passwd.lines().filter_map(account).collect() } else { Vec::new() };
    variables.chain(facts.user.name.clone()).chain(router).chain(accounts).collect()
}

/// The quoted texts in a value of a setting.
fn texts_in(value: &str) -> Vec<String> {
    value.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// A text of a setting may be a URI, a path, a name, or a host or user.
fn learn_setting(scrubber: &mut Scrubber, text: &str) {
    if text.contains("://") {
        scrubber.learn_uri(text);
    } else if text.contains('/') && !text.starts_with('/') && !text.starts_with("ndn:") {
        scrubber.learn_path(text);
    } else if text.starts_with('/') {
        // Paths exist on this machine; everything else is a name.
        let is_path = std::path::Path::new(text)
            .ancestors()
            .nth(1)
            .is_some_and(|parent| parent.parent().is_some() && parent.exists());
        match text.parse() {
            Ok(name) if !is_path => scrubber.learn_name(&name),
            _ => scrubber.learn_path(text),
        }
    }
}

/// Makes documents of one bundle.
struct Maker<'a> {
    scrubber: &'a Scrubber,
    limits: Limits,
    documents: Vec<Document>,
}

impl Maker<'_> {
    fn document(&mut self, name: &'static str, value: Value) {
        self.add(name, self.scrubber.document(value), 0, 0);
    }

    fn list<T: Serialize>(&mut self, name: &'static str, entries: &[T]) {
        let kept = &entries[..entries.len().min(self.limits.entries)];
        let values = kept.iter().map(|entry| self.scrubber.document(to_value(entry))).collect();
        self.add(name, values, kept.len(), entries.len() - kept.len());
    }

    fn add(&mut self, name: &'static str, value: Value, entries: usize, left_out: usize) {
        let text = format!("{value:#}\n");
        self.documents.push(Document { name, text, entries, left_out });
    }
}

fn to_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

/// All documents but the page and the index.
pub(super) fn documents(facts: &Facts, diagnosis: &Diagnosis, scrubber: &Scrubber, limits: Limits) -> Vec<Document> {
    let mut maker = Maker { scrubber, limits, documents: Vec::new() };
    maker.document("versions.json", versions(facts));
    maker.add("doctor.json", free(scrubber, to_value(diagnosis)), 0, 0);
    maker.document("machine.json", machine(facts));
    let settings: Vec<Value> = facts
        .settings
        .values
        .iter()
        .map(|(key, value)| json!({"key": key, "value": value, "from": facts.settings.places.get(key)}))
        .collect();
    maker.list("settings.json", &settings);
    if let Some(forwarder) = &facts.forwarder {
        of_forwarder(&mut maker, forwarder);
    }
    maker.documents
}

/// Findings are text that people read: words of names may be in them.
fn free(scrubber: &Scrubber, value: Value) -> Value {
    match value {
        Value::Object(values) => {
            let scrubbed = values.into_iter().map(|(key, value)| match (&*key, value) {
                ("message" | "try", Value::String(text)) => (key, Value::String(scrubber.free(&text))),
                (_, value) => (key, free(scrubber, value)),
            });
            Value::Object(scrubbed.collect())
        }
        Value::Array(values) => values.into_iter().map(|value| free(scrubber, value)).collect(),
        value => scrubber.document(value),
    }
}

fn versions(facts: &Facts) -> Value {
    let host = &facts.host;
    json!({
        "program": format!("namewire-{}", env!("CARGO_PKG_VERSION")),
        "forwarder": facts.forwarder.as_ref().map(|forwarder| &forwarder.version),
        "kernel": host.kernel,
        "distribution": host.distribution,
        "container": host.container,
    })
}

fn machine(facts: &Facts) -> Value {
    let (host, process) = (&facts.host, facts.process.as_ref());
    let huge_pages: Vec<Value> = host
        .huge_pages
        .iter()
        .map(|pages| json!({"size_kib": pages.size_kib, "total": pages.total, "free": pages.free}))
        .collect();
    let ports: Vec<Value> = facts
        .ports
        .iter()
        .map(|port| {
            let holders: Vec<&Option<String>> = port.holders.iter().map(|holder| &holder.program).collect();
            json!({"protocol": port.protocol, "port": port.port, "holders": holders})
        })
        .collect();
    json!({
        "unix_ms": facts.now_ms,
        "memory_bytes": host.memory_bytes,
        "available_bytes": host.available_bytes,
        "huge_pages": huge_pages,
        "has_ipv6": host.has_ipv6,
        "has_af_xdp": host.has_af_xdp,
        "ports": ports,
        "process": process.map(|process| json!({
            "program": process.program,
            "is_of_root": process.uid == Some(0),
            "start_unix_ms": process.start_unix_ms,
            "descriptors_max": process.descriptors.map(|(now, _)| now),
            "descriptors_hard_max": process.descriptors.map(|(_, most)| most),
            "open_descriptors": process.open_descriptors,
            "locked_bytes_max": process.locked_bytes_max,
            "resident_bytes": process.resident_bytes,
            "group_bytes_max": process.group_bytes_max,
            "group_bytes": process.group_bytes,
        })),
    })
}

#[derive(Serialize)]
struct FaceLine<'a> {
    #[serde(flatten)]
    face: &'a FaceStatus,
    state: &'static str,
    health: Option<&'a FaceHealth>,
}

fn of_forwarder(maker: &mut Maker<'_>, forwarder: &ForwarderFacts) {
    let state = &forwarder.after.state;
    maker.document("status.json", to_value(&state.general));
    let faces: Vec<FaceLine<'_>> = state
        .faces
        .iter()
        .map(|face| {
            let health = state.health_of(face.face_id);
            let word = face.state.map_or("unknown", |state| FaceHealth::state_word(health, state));
            FaceLine { face, state: word, health }
        })
        .collect();
    maker.list("faces.json", &faces);
    let routes: Vec<Value> = forwarder
        .rib
        .iter()
        .flat_map(|entry| entry.routes.iter().map(move |route| (entry, route)))
        .map(|(entry, route)| {
            let origin = origin::name(route.origin).map_or_else(|| json!(route.origin), |name| json!(name));
            let mut line = to_value(route);
            line["origin"] = origin;
            line["prefix"] = json!(entry.name.to_string());
            line
        })
        .collect();
    maker.list("routes.json", &routes);
    maker.list("fib.json", &forwarder.fib);
    maker.list("strategies.json", &state.strategies);
    maker.list("channels.json", &state.channels);
    maker.document("content-store.json", json!({"info": to_value(&state.cs), "usage": to_value(&state.cs_usage)}));
    maker.document("fib-usage.json", to_value(&state.fib_usage));
    maker.document("privileges.json", to_value(&state.privileges));
    maker.list("workers.json", &state.workers);
    maker.list("holders.json", &state.holders);
    maker.document("counters-1.json", counters(&forwarder.before, maker.limits.entries));
    maker.document("counters-2.json", counters(&forwarder.after, maker.limits.entries));
    let dropped: Vec<Value> = state
        .dropped
        .iter()
        .map(|packet| {
            let mut line = to_value(packet);
            line["packet"] = json!(packet.what());
            line
        })
        .collect();
    maker.list("drops.json", &dropped);
    log(maker, &forwarder.log);
}

/// What grows: of the forwarder, its drops, faces and workers.
fn counters(sample: &Sample, entries: usize) -> Value {
    let numbers = |face: &FaceStatus| {
        let Value::Object(fields) = to_value(face) else { return Value::Null };
        Value::Object(fields.into_iter().filter(|(_, value)| value.is_number()).collect())
    };
    let faces: Vec<Value> = sample.state.faces.iter().take(entries).map(numbers).collect();
    json!({
        "unix_ms": sample.unix_ms,
        "monotonic_ms": sample.monotonic_ms,
        "general": to_value(&sample.state.general),
        "drops": to_value(&sample.state.drops),
        "faces": faces,
        "workers": to_value(&sample.state.workers),
    })
}

fn log(maker: &mut Maker<'_>, records: &[LogRecord]) {
    let left_out = records.len().saturating_sub(maker.limits.entries);
    let scrubber = maker.scrubber;
    let scrubbed = |record: &LogRecord| LogRecord {
        message: scrubber.free(&record.message),
        fields: record
            .fields
            .iter()
            .map(|field| LogField { name: field.name.clone(), value: scrubber.free(&field.value) })
            .collect(),
        ..record.clone()
    };
    let line = |record: &LogRecord| {
        let mut line = LineForm::DatedText.line(&scrubbed(record));
        if line.len() > maker.limits.line_bytes {
            let cut = line.floor_char_boundary(maker.limits.line_bytes);
            line.truncate(cut);
            line += " (cut)\n";
        }
        line
    };
    let text: String = records[left_out..].iter().map(line).collect();
    let entries = records.len() - left_out;
    maker.documents.push(Document { name: "log.txt", text, entries, left_out });
}
