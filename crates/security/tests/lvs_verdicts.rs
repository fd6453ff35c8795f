//! Verdicts and matches of LVS schemas, compared to those that python-ndn gave (`interop/lvs_cases.py`).
//!
//! `lvs/README.md` says where the schemas come from.

use namewire_packet::NameBuf;
use namewire_security::trust::lvs::{Refusal, Schema, SchemaError, UserFunctions};
use serde_json::Value;
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/lvs")
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).unwrap()
}

/// What the schemas call beside `$eq` and `$eq_type`; `lvs_cases.py` has the same.
fn functions() -> UserFunctions {
    UserFunctions::default()
        .with("$fn", |component, arguments| arguments.len() == 2 && arguments[1] != Some(component))
        .with("$isValidID", |component, _| component.value.len() == 6)
        .with("$isValidYear", |component, _| component.value.len() == 4)
}

fn name(value: &Value) -> NameBuf {
    value.as_str().unwrap().parse().unwrap()
}

/// The matches of a name in the form of the table; `null` if the check ends with an error.
fn matches(schema: &Schema, name: &NameBuf) -> Value {
    let Ok(found) = schema.matches(name.as_name()) else { return Value::Null };
    let found = found.into_iter().map(|one| {
        let values = one.values.into_iter().map(|value| (value.pattern, Value::String(value.value)));
        Value::Array(vec![one.rules.into(), Value::Object(values.collect())])
    });
    Value::Array(found.collect())
}

#[test]
fn every_verdict_is_that_of_python_ndn() {
    let tables: Value = serde_json::from_slice(&file("verdicts.json")).unwrap();
    let (mut cases, mut allowed) = (0, 0);
    for table in tables.as_array().unwrap() {
        let title = table["model"].as_str().unwrap();
        let schema = Schema::parse_with(&file(&format!("{title}.tlv")), &functions()).unwrap();
        let roots: Value = schema.roots_of_trust().into();
        assert_eq!(roots, table["roots"], "{title}");
        for (uri, expected) in table["matches"].as_object().unwrap() {
            assert_eq!(&matches(&schema, &uri.parse().unwrap()), expected, "{title}: {uri}");
        }
        for case in table["cases"].as_array().unwrap() {
            let (packet, key) = (name(&case[0]), name(&case[1]));
            let verdict = schema.check(packet.as_name(), key.as_name());
            assert_eq!(verdict.is_ok(), case[2].as_bool().unwrap(), "{title}: {case} {verdict:?}");
            cases += 1;
            allowed += usize::from(verdict.is_ok());
        }
    }
    assert!(cases >= 200 && allowed >= 100, "{cases} cases, {allowed} allowed");
}

#[test]
fn an_unknown_function_is_refused_by_its_name() {
    for (model, missing) in [("tutorial.tlv", "$isValidYear, $isValidID"), ("pyndn3.tlv", "$fn")] {
        let refused = Schema::parse(&file(model)).unwrap_err();
        let SchemaError::UnknownFunctions(named) = &refused else { panic!("{refused}") };
        let sorted = |text: &str| {
            let mut names: Vec<String> = text.split(", ").map(str::to_owned).collect();
            names.sort();
            names
        };
        assert_eq!(sorted(named), sorted(missing), "{model}");
        assert!(refused.to_string().contains("which this program does not have"), "{refused}");
    }
}

#[test]
fn a_refusal_says_which_rule_needs_another_key() {
    let schema = Schema::parse(&file("ndnd-dv.tlv")).unwrap();
    let check = |packet: &str, key: &str| {
        let (packet, key): (NameBuf, NameBuf) = (packet.parse().unwrap(), key.parse().unwrap());
        schema.check(packet.as_name(), key.as_name()).map(|permit| permit.to_string()).map_err(|no| no.to_string())
    };
    let advertisement = "/localhop/net/r1/32=DV/32=ADV/seg=1";
    let router = "/net/r1/32=DV/KEY/k/net/v=1";
    assert_eq!(check(advertisement, router), Ok("#advertisement_data <= #router_cert".to_owned()));
    let other = check(advertisement, "/net/r2/32=DV/KEY/k/net/v=1").unwrap_err();
    assert_eq!(other, "#advertisement_data of the schema does not let /net/r2/32=DV/KEY/k/net/v=1 sign this");
    assert_eq!(check("/elsewhere", router).unwrap_err(), "no rule of the schema says who may sign /elsewhere");
    assert!(matches!(schema.check(NameBuf::new().as_name(), NameBuf::new().as_name()), Err(Refusal::NoRule(_))));
}
