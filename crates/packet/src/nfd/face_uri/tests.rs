use super::*;
use proptest::prelude::*;
use std::net::SocketAddr;

fn parsed(text: &str) -> FaceUri {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn canonical_texts_are_kept_as_they_are() {
    for text in [
        "udp4://192.0.2.1:6363",
        "udp6://[2001:db8::1]:6363",
        "udp6://[fe80::1%eth0]:6363",
        "udp6://[ff02::1234%eth0]:56363",
        "udp4://224.0.23.170:56363",
        "tcp4://127.0.0.1:6363",
        "tcp6://[::1]:6363",
        "ether://[08:00:27:01:01:01]",
        "dev://eth0",
        "udp4+dev://eth0:7700",
        "udp6+dev://wlp3s0:56363",
        "ws://0.0.0.0:9696",
        "ws://[::]:9696",
        "ws://router.example.net:9696",
        "ws://192.0.2.1:9696/ws/",
        "wss://192.0.2.1:443",
        "wss://[2001:db8::1]:443/ndn",
        "wss://router.example.net:443/ws?token=1",
    ] {
        let uri = parsed(text);
        assert!(uri.is_canonical(), "{text}");
        assert_eq!(uri.to_string(), text);
        assert_eq!(uri.canonize(), Some(uri.clone()));
    }
}

#[test]
fn listing_texts_parse_but_are_not_canonical() {
    for text in [
        "unix:///run/nfd/nfd.sock",
        "memif:///run/nfd/memif.sock",
        "fd://17",
        "internal://",
        "contentstore://",
        "null://",
        "wsclient://127.0.0.1:40000",
    ] {
        let uri = parsed(text);
        assert!(!matches!(uri, FaceUri::NonCanonical(_)), "{text}");
        assert!(!uri.is_canonical(), "{text}");
        assert_eq!(uri.to_string(), text);
        assert_eq!(uri.canonize(), None);
    }
}

#[test]
fn what_the_client_must_still_canonize() {
    for (text, canonical) in [
        ("udp://192.0.2.1", Some("udp4://192.0.2.1:6363")),
        ("udp4://192.0.2.1", Some("udp4://192.0.2.1:6363")),
        ("udp4://224.0.23.170", Some("udp4://224.0.23.170:56363")),
        ("udp://[2001:DB8:0::1]", Some("udp6://[2001:db8::1]:6363")),
        ("udp6://[2001:DB8:0::1]:7777", Some("udp6://[2001:db8::1]:7777")),
        ("udp6://[fe80::1%25eth0]:6363", Some("udp6://[fe80::1%eth0]:6363")),
        ("tcp://127.0.0.1:6363", Some("tcp4://127.0.0.1:6363")),
        ("ether://[08:00:27:0A:01:01]", Some("ether://[08:00:27:0a:01:01]")),
        ("ether://08-00-27-0a-01-01", Some("ether://[08:00:27:0a:01:01]")),
        ("udp4://router.example.net:6363", None),
        ("udp4://192.0.2.1:6363/path", Some("udp4://192.0.2.1:6363")),
        ("udp4://192.0.2.01:6363", None),
        ("udp6://192.0.2.1:6363", None),
        ("udp6://[fe80::1]:6363", None),
        ("udp6://[2001:db8::1%eth0]:6363", None),
        ("tcp4://224.0.23.170:6363", None),
        ("quic://192.0.2.1:6363", None),
        ("dev://an-interface-name-too-long", None),
        ("fd://x", None),
        ("ws://Router.Example.net", Some("ws://router.example.net:9696")),
        ("ws://192.0.2.1/ws", Some("ws://192.0.2.1:9696/ws")),
        ("wss://[2001:DB8::1]/", Some("wss://[2001:db8::1]:443/")),
        ("wss://router_example", None),
        ("ws://[2001:db8::1%eth0]:9696", None),
        ("ether://[08:00:27:+a:01:01]", None),
        ("udp4+dev://eth0", None),
    ] {
        let uri = parsed(text);
        assert!(matches!(uri, FaceUri::NonCanonical(_)), "{text} parsed as {uri:?}");
        assert!(!uri.is_canonical(), "{text}");
        assert_eq!(uri.to_string(), text);
        assert_eq!(uri.canonize().map(|uri| uri.to_string()).as_deref(), canonical, "{text}");
    }
}

#[test]
fn host_names_are_canonized_with_a_looked_up_address() {
    let FaceUri::NonCanonical(uri) = parsed("udp://router.example.net") else { panic!("host name") };
    assert_eq!(uri.host, "router.example.net");
    let v4 = uri.canonize_with("192.0.2.9".parse().unwrap()).unwrap();
    assert_eq!(v4.to_string(), "udp4://192.0.2.9:6363");
    let FaceUri::NonCanonical(uri) = parsed("tcp6://router.example.net:99") else { panic!("host name") };
    assert_eq!(uri.canonize_with("192.0.2.9".parse().unwrap()), None);
}

#[test]
fn texts_that_are_no_face_uri() {
    for (text, error) in [
        ("", FaceUriError::NoScheme),
        ("udp4", FaceUriError::NoScheme),
        ("udp4:/192.0.2.1", FaceUriError::NoScheme),
        ("://192.0.2.1", FaceUriError::NoScheme),
        ("UDP4://192.0.2.1:6363", FaceUriError::NoScheme),
        ("udp4://", FaceUriError::BadAuthority),
        ("udp4://:6363", FaceUriError::BadAuthority),
        ("udp4://a b:6363", FaceUriError::BadAuthority),
        ("udp6://[2001:db8::1:6363", FaceUriError::BadAuthority),
        ("udp6://[2001:db8::1]6363", FaceUriError::BadAuthority),
        ("udp4://192.0.2.1:", FaceUriError::BadPort),
        ("udp4://192.0.2.1:65536", FaceUriError::BadPort),
        ("udp4://192.0.2.1:+1", FaceUriError::BadPort),
        ("udp4://192.0.2.1:06363", FaceUriError::BadPort),
        ("unix://", FaceUriError::BadAuthority),
    ] {
        assert_eq!(text.parse::<FaceUri>(), Err(error), "{text}");
    }
    let long = format!("udp4://{}:6363", "a".repeat(MAX_FACE_URI_BYTES));
    assert_eq!(long.parse::<FaceUri>(), Err(FaceUriError::TooLong));
}

#[test]
fn socket_addresses_become_canonical() {
    let mapped: SocketAddr = "[::ffff:192.0.2.1]:6363".parse().unwrap();
    assert_eq!(FaceUri::udp(mapped).to_string(), "udp4://192.0.2.1:6363");
    assert_eq!(FaceUri::tcp("[::1]:80".parse().unwrap()).to_string(), "tcp6://[::1]:80");
}

proptest! {
    #[test]
    fn any_text_parses_without_panic_and_is_printed_back(
        text in "(udp4|udp6|tcp|ether|fd|dev|unix|memif|ws|wss|x)?(://)?[\\[\\]:%/.0-9a-f]{0,30}\\PC{0,6}"
    ) {
        if let Ok(uri) = text.parse::<FaceUri>() {
            prop_assert_eq!(uri.to_string(), text);
            if let Some(canonical) = uri.canonize() {
                prop_assert!(canonical.is_canonical());
                prop_assert_eq!(canonical.to_string().parse::<FaceUri>(), Ok(canonical));
            }
        }
    }
}
