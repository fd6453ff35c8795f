//! What an operator sees of a router over HTTP, while packets pass.

use crate::application::{Application, eventually, start_with};
use namewire_packet::nfd::ControlParameters;
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    thread::spawn,
};

/// The body of an answer with status 200.
fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
    body.to_owned()
}

/// The value of a metric's first sample whose line has all these parts.
fn metric(text: &str, parts: &[&str]) -> Option<f64> {
    let line = text.lines().find(|line| !line.starts_with('#') && parts.iter().all(|part| line.contains(part)))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[test]
fn metrics_and_state_follow_the_packets() {
    let (router, _directory) =
        start_with(2, |config| config.settings.observe.listen = vec!["127.0.0.1:0".parse().unwrap()]);
    let [address] = *router.observed_at() else { panic!("{:?}", router.observed_at()) };
    assert!(get(address, "/healthz").len() < 100);
    get(address, "/readyz");

    let mut producer = Application::connect(&router);
    let face = producer.register("/seen");
    let serving = spawn(move || {
        producer.serve(10, b"hello");
        producer
    });
    let mut consumer = Application::connect(&router);
    for index in 0..10 {
        consumer.express(&format!("/seen/{index}")).expect("Data");
    }
    consumer.express("/nowhere").expect("a Nack");
    let _producer = serving.join().unwrap();

    let label = format!("face=\"{}\"", face.0);
    eventually("metrics have followed", || {
        let metrics = get(address, "/metrics");
        metric(&metrics, &["namewire_face_out_interests_total", &label]).is_some_and(|count| count >= 10.0)
            && metric(&metrics, &["namewire_drops_total", "no-route"]) == Some(1.0)
    });
    let metrics = get(address, "/metrics");
    assert_eq!(metric(&metrics, &["namewire_face_up", &label]), Some(1.0));
    assert!(metric(&metrics, &["namewire_cs_entries"]).is_some_and(|entries| entries >= 10.0), "{metrics}");
    assert!(metric(&metrics, &["namewire_routes"]).is_some_and(|routes| routes >= 1.0), "{metrics}");

    let mut operator = Application::connect(&router);
    let uri = Some("udp4://127.0.0.1:9".to_owned());
    operator.succeed("/faces/create", ControlParameters { uri, ..Default::default() });
    eventually("the new face is in the state", || get(address, "/status.json").contains("udp4://127.0.0.1:9"));
    assert!(get(address, "/routes.json").contains("/seen"));
    let explained = get(address, "/explain?name=/seen/new");
    assert!(explained.contains("it goes to the one next hop of /seen, by best-route"), "{explained}");
    assert!(explained.contains("\"answered\":10"), "each answer was timed: {explained}");
    assert!(get(address, "/explain?name=/seen/1").contains("stored Data answers it"));
    assert!(metric(&get(address, "/metrics"), &["namewire_face_answer_seconds_count", &label]) == Some(10.0));
    assert!(get(address, "/").contains("<html"));
    drop(router);
    assert!(TcpStream::connect(address).is_err(), "it ends with its router");
}

#[test]
fn settings_have_a_limited_number_of_strategies_and_say_how_many_more_there_are() {
    let (router, _directory) =
        start_with(1, |config| config.settings.observe.listen = vec!["127.0.0.1:0".parse().unwrap()]);
    let address = router.observed_at()[0];
    let json = |path: &str| serde_json::from_str::<serde_json::Value>(&get(address, path)).unwrap();
    let mut operator = Application::connect(&router);
    for index in 0..1010 {
        let name = Some(format!("/many/{index}").parse().unwrap());
        let strategy = Some("/localhost/nfd/strategy/multicast/v=5".parse().unwrap());
        operator.succeed("/strategy-choice/set", ControlParameters { name, strategy, ..Default::default() });
    }
    let all = || json("/status.json")["strategies"].as_array().unwrap().len();
    eventually("all are chosen", || all() >= 1010);
    eventually("the settings have followed", || json("/settings.json")["left_out"] == all() - 1000);
    let settings = json("/settings.json")["settings"].clone();
    let keys = settings.as_array().unwrap().iter().filter_map(|setting| setting["key"].as_str());
    assert_eq!(keys.filter(|key| key.starts_with("strategy.")).count(), 1000);
}

/// The page's trace: packets under its prefix alone, as JSON; it ends when its client leaves.
#[test]
fn a_trace_streams_decisions_and_ends_with_its_client() {
    let (router, _directory) = start_with(2, |config| {
        config.settings.observe.listen = vec!["127.0.0.1:0".parse().unwrap()];
        config.settings.observe.trace = true;
    });
    let address = router.observed_at()[0];
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /trace?prefix=/seen HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut read = String::new();
    let mut read_until = |part: &str| {
        let mut bytes = [0; 4096];
        while !read.contains(part) {
            let count = stream.read(&mut bytes).unwrap();
            assert!(count > 0, "{read}");
            read.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        }
        read.clone()
    };
    read_until("the trace has begun");

    let mut producer = Application::connect(&router);
    let face = producer.register("/seen");
    let serving = spawn(move || {
        producer.serve(2, b"hello");
        producer
    });
    let mut consumer = Application::connect(&router);
    consumer.express("/nowhere").expect("a Nack");
    consumer.express("/seen/1").expect("Data");
    consumer.express("/seen/2").expect("Data");
    let _producer = serving.join().unwrap();
    let told = read_until("\"after_us\":");
    let sent = "\"name\":\"/seen/1\",\"packet\":\"Interest\"";
    assert!(told.contains(sent) && told.contains(&format!("\"to\":[{}]", face.0)), "{told}");
    assert!(!told.contains("nowhere") && !told.contains("localhost/nfd"), "{told}");

    // The operator may have as many as the router allows only when that trace has ended.
    let mut operator = Application::connect(&router);
    let mut start = |name: &str| {
        let wanted = ControlParameters { name: Some(name.parse().unwrap()), ..Default::default() };
        operator.command("/capture/start", wanted).code
    };
    assert_eq!(["/a", "/b", "/c"].map(&mut start), [200; 3]);
    assert_ne!(start("/d"), 200);
    drop(stream);
    eventually("there is room again", || start("/d") == 200);
}

#[test]
fn an_address_in_use_is_an_error_of_the_start() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = namewire_configuration::Configuration::from(namewire_configuration::Settings::listening_nowhere());
    config.settings.observe.listen = vec![taken.local_addr().unwrap()];
    let error = namewire_router::Router::start(&config).err().expect("an error");
    assert!(error.to_string().starts_with("cannot listen on 127.0.0.1:"), "{error}");
}

/// Connections to an observer whose requests are not complete, so that an answer can only be a refusal.
fn pile_up(observer: SocketAddr) -> Vec<TcpStream> {
    let open = |_| {
        let mut stream = TcpStream::connect(observer).unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\n").unwrap();
        stream.set_nonblocking(true).unwrap();
        stream
    };
    (0..40).map(open).collect()
}

/// What those that were refused meanwhile were told.
fn refusals(streams: &[TcpStream]) -> Vec<String> {
    let told = |mut stream: &TcpStream| {
        let mut answer = [0; 4096];
        let length = stream.read(&mut answer).unwrap_or(0);
        String::from_utf8_lossy(&answer[..length]).into_owned()
    };
    streams.iter().map(told).filter(|answer| !answer.is_empty()).collect()
}

/// The story: one remote client opened 64 connections. The listener on loopback had no place for the operator's own
/// browser, and Prometheus none either.
#[test]
fn a_remote_host_leaves_places_for_this_machine_and_is_told_why_it_gets_no_more() {
    let any = ["127.0.0.1:0", "0.0.0.0:0"].map(|address| address.parse().unwrap());
    let (router, _directory) = start_with(1, |config| config.settings.observe.listen = any.to_vec());
    let [loopback, everywhere] = *router.observed_at() else { panic!("{:?}", router.observed_at()) };
    let mut operator = Application::connect(&router);
    // From its own address that is not loopback, this machine is a remote host.
    let own = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let own = own.connect("192.0.2.1:9").and_then(|()| own.local_addr()).map(|address| address.ip());
    let mut assert_refused = |observer| {
        let (streams, mut told) = (pile_up(observer), Vec::new());
        eventually("some are refused", || {
            told.extend(refusals(&streams));
            !told.is_empty()
        });
        let is_told = |answer: &String| answer.starts_with("HTTP/1.1 503 ") && answer.contains("as its share allows");
        assert!(told.iter().all(is_told), "{told:?}");
        eventually("they are counted", || operator.drops("share-used.observer-connections") >= told.len() as u64);
        streams
    };
    let _remote = match own {
        Ok(address) if !address.is_loopback() => assert_refused(SocketAddr::new(address, everywhere.port())),
        _ => Vec::new(),
    };
    get(loopback, "/healthz");
    let local = assert_refused(loopback);
    drop(local);
    eventually("places are given back", || {
        let mut stream = TcpStream::connect(loopback).unwrap();
        let asked = write!(stream, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let mut answer = String::new();
        // Beyond a few at a time, a refused connection may be reset.
        asked.is_ok() && stream.read_to_string(&mut answer).is_ok() && answer.starts_with("HTTP/1.1 200")
    });
    let metrics = get(loopback, "/metrics");
    assert!(metrics.contains("observer-connections"), "{metrics}");
}
