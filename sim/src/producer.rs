//! Producer: an application that answers Interests.

use crate::application::{AppIo, Application};
use namewire_packet::lp::LpHeaders;
use namewire_packet::{Data, DataBuilder, Interest, NameBuf};

type Answer = Box<dyn FnMut(&Interest<'_>) -> Option<Vec<u8>>>;

/// Answers each Interest with the result of a closure, after a processing time.
pub struct Producer {
    answer: Answer,
    processing_ns: u64,
    echo_tokens: bool,
    tally: ProducerTally,
}

/// Counts of a [`Producer`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProducerTally {
    /// Interests received.
    pub interests: u64,
    /// How many of these were answered.
    pub answered: u64,
    /// How many of these had a PIT token.
    pub with_token: u64,
    /// Nacks, and packets that are not Interests. A router never sends these to a producer.
    pub unexpected: u64,
}

impl Producer {
    /// A producer that answers with the closure's Data, or not at all. It answers at once and echoes tokens.
    pub fn new(answer: impl FnMut(&Interest<'_>) -> Option<Vec<u8>> + 'static) -> Self {
        Producer { answer: Box::new(answer), processing_ns: 0, echo_tokens: true, tally: ProducerTally::default() }
    }

    /// A producer of `content_bytes` bytes, derived from the name, for every Interest. For a CanBePrefix Interest the
    /// Data's name has one more component.
    pub fn of_content(content_bytes: usize, freshness_ms: u64) -> Self {
        Producer::new(move |interest| {
            let mut name = interest.name().to_buf();
            if interest.can_be_prefix() {
                name.push_version(1);
            }
            Some(data_for(&name, content_bytes, freshness_ms))
        })
    }

    /// Sets the time between an Interest and its answer.
    pub fn processing_ns(mut self, processing_ns: u64) -> Self {
        self.processing_ns = processing_ns;
        self
    }

    /// Whether Data echo PIT tokens; applications without NDNLPv2 send none.
    pub fn echo_tokens(mut self, yes: bool) -> Self {
        self.echo_tokens = yes;
        self
    }

    /// The counts so far.
    pub fn tally(&self) -> ProducerTally {
        self.tally
    }
}

impl Application for Producer {
    fn receive(&mut self, io: &mut AppIo<'_>, headers: &LpHeaders, packet: &[u8]) {
        let Ok(interest) = Interest::parse(packet) else {
            self.tally.unexpected += 1;
            return;
        };
        if headers.nack.is_some() {
            self.tally.unexpected += 1;
            return;
        }
        self.tally.interests += 1;
        self.tally.with_token += u64::from(headers.pit_token.is_some());
        if let Some(data) = (self.answer)(&interest) {
            self.tally.answered += 1;
            let pit_token = headers.pit_token.filter(|_| self.echo_tokens);
            let headers = LpHeaders { pit_token, ..LpHeaders::default() };
            io.send_at(io.now_ns + self.processing_ns, headers, data);
        }
    }
}

/// The Data of [`Producer::of_content`]: unique content for each name and a digest signature, so that a consumer
/// detects mixed-up or damaged Data.
pub fn data_for(name: &NameBuf, content_bytes: usize, freshness_ms: u64) -> Vec<u8> {
    let content = content_for(name, content_bytes);
    DataBuilder::new(name.clone()).freshness_ms(freshness_ms).content(&content).sign_digest()
}

/// True if `data` equals [`data_for`] its name.
pub fn is_intact(data: &Data<'_>) -> bool {
    data.verify_digest_sha256() && data.content() == content_for(&data.name().to_buf(), data.content().len())
}

fn content_for(name: &NameBuf, bytes: usize) -> Vec<u8> {
    let seed = name.value().iter().fold(1u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut content = vec![0; bytes];
    rng.fill(&mut content);
    content
}
