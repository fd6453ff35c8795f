//! Question: can a compiled LVS schema, or a name checked by it, make the reader or the checker panic, take more than
//! its steps, or give a verdict that its own matches contradict?
//!
//! Input: the URI of a packet's name, a line feed, that of a key's, a line feed, and a schema.
#![no_main]

use libfuzzer_sys::fuzz_target;
use namewire_packet::NameBuf;
use namewire_security::trust::lvs::{MATCHES_MAX, Refusal, STEPS_MAX, Schema, UserFunctions};
use std::{cell::Cell, str};

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

fn name(line: &[u8]) -> Option<NameBuf> {
    str::from_utf8(line).ok()?.parse().ok()
}

fuzz_target!(|input: &[u8]| {
    let mut parts = input.splitn(3, |&byte| byte == b'\n');
    let (Some(packet), Some(key), Some(bytes)) = (parts.next(), parts.next(), parts.next()) else { return };
    let (Some(packet), Some(key)) = (name(packet), name(key)) else { return };
    let functions = UserFunctions::default().with("$fn", |component, arguments| {
        CALLS.set(CALLS.get() + 1);
        arguments.iter().all(|argument| *argument != Some(component))
    });
    let Ok(schema) = Schema::parse_with(bytes, &functions) else { return };
    CALLS.set(0);
    let verdict = schema.check(packet.as_name(), key.as_name());
    assert!(CALLS.get() <= STEPS_MAX);
    assert_eq!(verdict, schema.check(packet.as_name(), key.as_name()));
    let (of_packet, of_key) = (schema.matches(packet.as_name()), schema.matches(key.as_name()));
    match (verdict, of_packet) {
        // What is signed follows a rule by itself; the key, with the values of the packet's patterns.
        (Ok(permit), Ok(rules)) if !permit.packet_rules.is_empty() && rules.len() < MATCHES_MAX => {
            assert!(rules.iter().any(|one| one.rules == permit.packet_rules));
        }
        // A check ends at the first permission; all matches may take more steps than there are.
        (Ok(_), _) => {}
        (Err(Refusal::NoRule(_) | Refusal::OtherSigner { .. }), of_packet) => assert!(of_packet.is_ok()),
        (Err(_), _) => {}
    }
    if let Ok(roots) = schema.roots_of(key.as_name()) {
        let all = schema.roots_of_trust();
        assert!(of_key.is_ok() && roots.iter().all(|root| all.contains(root)));
    }
});
