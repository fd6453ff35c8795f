//! A router with real sockets: applications register, ask and answer.

use namewire_configuration::Settings;
use namewire_packet::{
    Data, DataBuilder, Interest, InterestBuilder, NackReason, NameBuf, Nonce, SignedInterestFields,
    lp::{LinkFields, LpHeaders, LpPacket, PitToken, write_headers},
    nfd::{ControlParameters, ControlResponse},
    tlv,
};
use namewire_router::{Router, RouterHandle};
use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    time::{Duration, SystemTime},
};

/// An application: one blocking Unix connection.
struct App {
    stream: UnixStream,
    buffer: Vec<u8>,
    nonce: u32,
}

impl App {
    fn connect(router: &RouterHandle) -> App {
        let stream = UnixStream::connect(router.socket().unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        App { stream, buffer: Vec::new(), nonce: 0 }
    }

    fn send(&mut self, packet: &[u8]) {
        self.stream.write_all(packet).unwrap();
    }

    /// The next element, or `None` if nothing comes.
    fn receive(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(size) = tlv::element_size(&self.buffer).unwrap()
                && self.buffer.len() >= size
            {
                return Some(self.buffer.drain(..size).collect());
            }
            let mut chunk = [0; 16384];
            match self.stream.read(&mut chunk) {
                Ok(0) | Err(_) => return None,
                Ok(size) => self.buffer.extend_from_slice(&chunk[..size]),
            }
        }
    }

    fn interest(&mut self, uri: &str) -> InterestBuilder {
        self.nonce += 1;
        InterestBuilder::new(uri.parse::<NameBuf>().unwrap()).nonce(Nonce::from_u32(self.nonce))
    }

    fn register(&mut self, prefix: &str) {
        let parameters = ControlParameters { name: Some(prefix.parse().unwrap()), ..Default::default() };
        let mut name: NameBuf = "/localhost/nfd/rib/register".parse().unwrap();
        name.push_generic(&parameters.to_wire());
        self.nonce += 1;
        let time_ms = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as u64;
        let fields = SignedInterestFields {
            nonce: self.nonce.to_be_bytes().to_vec(),
            time_ms: Some(time_ms + u64::from(self.nonce)),
            seq_num: None,
        };
        let command = InterestBuilder::new(name).nonce(Nonce::from_u32(self.nonce)).sign_digest(&fields);
        self.send(&command);
        let reply = self.receive().expect("a reply to rib/register");
        let data = Data::parse(&reply).unwrap();
        assert!(data.verify_digest_sha256());
        let response = ControlResponse::decode(data.content()).unwrap();
        assert_eq!((response.code, response.text.as_str()), (200, "OK"));
    }

    /// Answers `count` Interests with Data of their name and `suffix`, without tokens.
    fn serve(mut self, count: usize, suffix: &str) -> std::thread::JoinHandle<App> {
        let suffix: NameBuf = suffix.parse().unwrap();
        std::thread::spawn(move || {
            for _ in 0..count {
                let packet = self.receive().expect("an Interest");
                let lp = LpPacket::parse(&packet);
                let interest = Interest::parse(lp.as_ref().map_or(&packet[..], |lp| lp.fragment.unwrap())).unwrap();
                let mut name: NameBuf = interest.name().into();
                name.append(suffix.as_name());
                self.send(&DataBuilder::new(&name).content(b"hello").freshness_ms(1000).sign_digest());
            }
            self
        })
    }
}

fn start(workers: usize) -> (RouterHandle, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = Settings::listening_nowhere();
    (settings.router.workers, settings.router.seed) = (workers as u16, Some(workers as u64));
    (settings.faces.unix.enabled, settings.faces.unix.path) = (true, Some(directory.path().join("nfd.sock")));
    (Router::start(&settings.into()).unwrap(), directory)
}

#[test]
fn consumer_and_producer_meet() {
    for workers in [1, 4] {
        let (router, _directory) = start(workers);
        let mut producer = App::connect(&router);
        producer.register("/example");
        let serving = producer.serve(50, "/");
        let mut consumer = App::connect(&router);
        for i in 0..50 {
            let interest = consumer.interest(&format!("/example/{i}"));
            consumer.send(&interest.build());
            let reply = consumer.receive().unwrap_or_else(|| panic!("no answer to {i} with {workers} workers"));
            let data = Data::parse(&reply).unwrap();
            assert_eq!(data.name(), interest.name().as_name());
            assert_eq!(data.content(), b"hello");
        }
        // Again, with other nonces. Now the Content Store answers, because the producers have stopped.
        serving.join().unwrap();
        for i in 0..50 {
            let interest = consumer.interest(&format!("/example/{i}"));
            consumer.send(&interest.build());
            assert!(consumer.receive().is_some(), "{i} is not in the store");
        }
        router.stop();
    }
}

#[test]
fn prefix_interests_are_answered_by_a_producer_that_echoes_no_token() {
    for workers in [1, 4] {
        let (router, _directory) = start(workers);
        let mut producer = App::connect(&router);
        producer.register("/example");
        let _serving = producer.serve(200, "/v=1/seg=0");
        let mut consumer = App::connect(&router);
        for i in 0..200 {
            let interest = consumer.interest(&format!("/example/{i}")).can_be_prefix(true);
            consumer.send(&interest.build());
            let reply = consumer.receive().unwrap_or_else(|| panic!("no answer to {i} with {workers} workers"));
            assert_eq!(Data::parse(&reply).unwrap().name().prefix(2), interest.name().as_name());
        }
    }
}

#[test]
fn tokens_come_back_on_data_and_on_nacks() {
    let (router, _directory) = start(1);
    let mut producer = App::connect(&router);
    producer.register("/example");
    let _serving = producer.serve(1, "/");
    let mut consumer = App::connect(&router);
    for (uri, length) in [("/example/a", 1), ("/nowhere", 32)] {
        let interest = consumer.interest(uri).build();
        let token = PitToken::new(&vec![7; length]);
        let headers = LpHeaders { pit_token: token, ..LpHeaders::default() };
        let mut frame = Vec::new();
        write_headers(&mut frame, &headers, &LinkFields::default(), interest.len());
        frame.extend_from_slice(&interest);
        consumer.send(&frame);
        let reply = consumer.receive().unwrap();
        let lp = LpPacket::parse(&reply).unwrap();
        assert_eq!(lp.headers.pit_token, token);
        let is_nack = uri == "/nowhere";
        assert_eq!(lp.headers.nack, is_nack.then_some(NackReason::NoRoute));
    }
}

#[test]
fn routes_vanish_with_their_face() {
    let (router, _directory) = start(4);
    let mut producer = App::connect(&router);
    producer.register("/example");
    drop(producer);
    let mut consumer = App::connect(&router);
    for attempt in 0.. {
        std::thread::sleep(Duration::from_millis(10));
        let interest = consumer.interest("/example/a").lifetime_ms(100);
        consumer.stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        consumer.send(&interest.build());
        if let Some(reply) = consumer.receive() {
            assert_eq!(LpPacket::parse(&reply).unwrap().headers.nack, Some(NackReason::NoRoute));
            break;
        }
        assert!(attempt < 50, "the route outlived its face");
    }
}
