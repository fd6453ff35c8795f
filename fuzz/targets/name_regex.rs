//! Question: can an NDN regular expression, or a name matched against it, make the matcher panic, run for long, or
//! capture components that are not in the name?
//!
//! Input: an expression, a line feed, a template, a line feed, and the URI of a name.
#![no_main]

use libfuzzer_sys::fuzz_target;
use namewire_packet::NameBuf;
use namewire_security::trust::name_regex::{MAX_EXPRESSION_BYTES, NameRegex, NameTemplate};

/// Most components of a name; more only take longer.
const COMPONENTS_MAX: usize = 64;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let mut lines = text.splitn(3, '\n');
    let (Some(expression), Some(template), Some(uri)) = (lines.next(), lines.next(), lines.next()) else { return };
    let Ok(regex) = NameRegex::parse(expression) else { return };
    assert!(expression.len() <= MAX_EXPRESSION_BYTES && regex.as_str() == expression);
    let Ok(name) = uri.parse::<NameBuf>() else { return };
    let name = name.as_name().prefix(COMPONENTS_MAX.min(name.len())).to_buf();
    let Some(captures) = regex.captures(name.as_name()) else {
        assert!(!regex.is_match(name.as_name()));
        return;
    };
    assert!(regex.is_match(name.as_name()));
    let expand = |template: &str| NameTemplate::parse(template).expect("well-formed").expand(&captures);
    assert_eq!(expand("\\0"), name, "the whole name matches");
    for group in 1..=regex.groups() {
        let part = expand(&format!("\\{group}"));
        // Consecutive components, or a part of one.
        let is_run = (0..=name.len() - part.len().min(name.len())).any(|skip| {
            let run = name.as_name().components().skip(skip).take(part.len());
            run.eq(part.as_name().components())
        });
        let is_part = || {
            let part = part.as_name().last().map_or(&[][..], |component| component.value);
            name.as_name().components().any(|component| {
                let text = component.to_string();
                part.is_empty() || text.as_bytes().windows(part.len()).any(|window| window == part)
            })
        };
        assert!(is_run || part.len() == 1 && is_part(), "group {group} of {expression} on {name} is {part}");
    }
    if let Ok(template) = NameTemplate::parse(template) {
        let _ = template.check(&regex);
        let _ = template.expand(&captures);
    }
});
