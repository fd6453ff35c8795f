//! The codec against recorded messages and random ones.

use super::*;
use proptest::prelude::*;

fn name(uri: &str) -> NameBuf {
    uri.parse().unwrap()
}

fn hex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digit).collect()
}

fn object(uri: &str, start: Option<u64>, end: Option<u64>) -> ObjectParam {
    ObjectParam { name: name(uri), start, end, ..ObjectParam::default() }
}

/// Recorded from ndn-python-repo 0.4 and its clients (repo-protocol §3.1).
#[test]
fn recorded_messages() {
    let with_hint = ObjectParam {
        forwarding_hint: vec![name("/gw")],
        register_prefix: Some(name("/files")),
        ..object("/files/f1", Some(0), None)
    };
    let to_register = ObjectParam { register_prefix: Some(name("/files/f1")), ..object("/files/f1", Some(0), Some(2)) };
    for (wire, expected) in [
        ("FD012D13070B080566696C657308026631CC0100CD0102", object("/files/f1", Some(0), Some(2))),
        ("FD012D0D070B080566696C657308026631", object("/files/f1", None, None)),
        ("FD012D23070B080566696C657308026631D306070408026777CC0100D4090707080566696C6573", with_hint),
        ("FD012D22070B080566696C657308026631CC0100CD0102D40D070B080566696C657308026631", to_register),
    ] {
        let command = Command { objects: vec![expected], groups: Vec::new() };
        assert_eq!(Command::decode(&hex(wire)), Ok(command.clone()));
        assert_eq!(command.encode(), hex(wire));
    }
    let request_no = Command::request_no(&hex("FD012D13070B080566696C657308026631CC0100CD0102"));
    assert_eq!(request_no[..], hex("7574438086745AA0AD3BEC2F5A3491EBCB26655A82BD27716A0A40E62C477F7B"));
    assert_eq!(decode_query(&encode_query(&request_no)), Ok(request_no));

    let running = hex("D002012CFD012E14070B080566696C657308026631D002012CD10101");
    let result = CommandResult::decode(&running).unwrap();
    assert_eq!((result.code, result.objects[0].code), (status::RUNNING, status::RUNNING));
    assert_eq!((&result.objects[0].name, result.objects[0].inserted), (&name("/files/f1"), Some(1)));
    assert_eq!(result.encode(), running);
    assert_eq!(CommandResult::of_code(status::UNKNOWN).encode(), hex("D0020194"));
    assert_eq!(CommandResult::of_code(status::REFUSED).encode(), hex("D0020193"));

    let notification = Notification::decode(&hex("07050803636C69800457F3F69C")).unwrap();
    assert_eq!(notification.message_name(name("/testrepo/insert").as_name()), {
        let mut expected = name("/cli/msg/testrepo/insert");
        expected.push_generic(&[0x57, 0xF3, 0xF6, 0x9C]);
        expected
    });
    assert_eq!(notification.encode(), hex("07050803636C69800457F3F69C"));
}

#[test]
fn order_is_strict_and_unknown_even_types_are_ignored() {
    let one = "FD012D13070B080566696C657308026631CC0100CD0102";
    let with_even = "FD012D16070B080566696C657308026631FC0100CC0100CD0102";
    assert_eq!(Command::decode(&hex(with_even)), Command::decode(&hex(one)));
    for (wire, error) in [
        ("FD012D13070B080566696C657308026631CD0102CC0100", CommandError::Unexpected(204)),
        ("FD012D13070B080566696C657308026631CC0100CC0102", CommandError::Unexpected(204)),
        ("FD012D13070B080566696C657308026631CC0100CB0102", CommandError::Unexpected(203)),
        ("FD012D03CC0100", CommandError::Missing(7)),
        ("", CommandError::Empty),
        ("FD012D13070B080566696C6573080266", CommandError::Tlv(tlv::TlvError::Truncated)),
    ] {
        assert_eq!(Command::decode(&hex(wire)), Err(error), "{wire}");
    }
    assert_eq!(decode_query(&hex("CE0101")), Err(CommandError::BadValue(206)));
    assert_eq!(Notification::decode(&hex("07050803636C698000")), Err(CommandError::BadValue(128)));
}

#[test]
fn an_answer_always_fits_in_a_data() {
    let long = |bytes: usize| {
        let mut long = NameBuf::new();
        long.push_generic(&vec![7; bytes]);
        Command { objects: vec![ObjectParam { name: long, ..ObjectParam::default() }], groups: Vec::new() }
    };
    assert!(Command::decode(&long(8000).encode()).is_ok());
    assert_eq!(Command::decode(&long(8200).encode()), Err(CommandError::TooMany));
    let many = |count| Command { objects: vec![object("/a", None, None); count], groups: Vec::new() };
    assert!(Command::decode(&many(300).encode()).is_ok());
    assert_eq!(Command::decode(&many(OBJECTS_MAX + 1).encode()), Err(CommandError::TooMany));
}

fn any_name() -> impl Strategy<Value = NameBuf> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..4), 0..4).prop_map(|components| {
        let mut name = NameBuf::new();
        for component in components {
            name.push_generic(&component);
        }
        name
    })
}

fn any_object() -> impl Strategy<Value = ObjectParam> {
    let hint = prop::collection::vec(any_name(), 0..3);
    (any_name(), hint, any::<Option<u64>>(), any::<Option<u64>>(), prop::option::of(any_name())).prop_map(
        |(name, forwarding_hint, start, end, register_prefix)| ObjectParam {
            name,
            forwarding_hint,
            start,
            end,
            register_prefix,
        },
    )
}

fn any_group() -> impl Strategy<Value = SyncParam> {
    (any_name(), prop::option::of(any_name()), any::<bool>(), any::<bool>()).prop_map(
        |(sync_prefix, register_prefix, data_name_dedupe, reset)| SyncParam {
            sync_prefix,
            register_prefix,
            data_name_dedupe,
            reset,
        },
    )
}

proptest! {
    #[test]
    fn written_messages_are_read_back(
        objects in prop::collection::vec(any_object(), 1..5),
        groups in prop::collection::vec(any_group(), 0..3),
        counts in any::<[Option<u64>; 2]>(),
    ) {
        let command = Command { objects, groups };
        prop_assert_eq!(Command::decode(&command.encode()), Ok(command.clone()));
        let mut result = command.accepted();
        (result.objects[0].inserted, result.objects[0].deleted) = (counts[0], counts[1]);
        prop_assert_eq!(CommandResult::decode(&result.encode()), Ok(result));
    }

    /// Any bytes: no panic, and what is accepted is written and read again.
    #[test]
    fn damaged_commands_do_no_harm(
        objects in prop::collection::vec(any_object(), 1..3),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let mut bytes = Command { objects, groups: Vec::new() }.encode();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(command) = Command::decode(&bytes) {
            prop_assert_eq!(Command::decode(&command.encode()), Ok(command));
        }
    }
}
