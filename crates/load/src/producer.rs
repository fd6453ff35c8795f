//! Producer: answers every Interest at once, without a signature.

use crate::{Link, packet_parts::write_data};
use namewire_packet::{
    Interest,
    lp::{LpHeaders, LpPacket},
};
use std::{
    io,
    ops::RangeInclusive,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// How often the end is looked for while nothing arrives.
const PAUSE: Duration = Duration::from_millis(50);

/// How Interests are answered.
#[derive(Clone, Debug)]
pub struct Answers {
    /// Bytes of content, chosen anew for each Data.
    pub content_bytes: RangeInclusive<usize>,
    /// FreshnessPeriod.
    pub freshness_ms: u64,
}

/// Serves one link until `stop`, until this many answers are given, or until the peer closes it. Counts in `answered`.
///
/// # Errors
/// If the link is broken.
pub fn serve(
    mut link: Link,
    answers: &Answers,
    count: Option<u64>,
    answered: &AtomicU64,
    stop: &AtomicBool,
) -> io::Result<()> {
    let content = vec![b'x'; *answers.content_bytes.end()];
    let mut random = fastrand::Rng::with_seed(1);
    let is_over = || stop.load(Relaxed) || count.is_some_and(|count| answered.load(Relaxed) >= count);
    while !is_over() {
        // While the peer takes nothing, nothing is read: what is not answered waits in the kernel.
        if link.has_room() {
            let received = link.receive(|packet, outbox| {
                let size = random.usize(answers.content_bytes.clone());
                outbox.push(|out| {
                    if write_answer(packet, &content[..size], answers.freshness_ms, out) {
                        answered.fetch_add(1, Relaxed);
                    }
                });
            });
            match received {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return link.flush(),
                received => drop(received?),
            }
        }
        link.flush()?;
        link.wait(PAUSE)?;
    }
    Ok(())
}

/// Appends the Data for an Interest, with its PIT token. False for anything else, and for Interests that ask for a
/// digest, which no Data made now has.
fn write_answer(packet: &[u8], content: &[u8], freshness_ms: u64, out: &mut Vec<u8>) -> bool {
    let (headers, packet) = match LpPacket::parse(packet) {
        Ok(LpPacket { headers, fragment: Some(fragment), .. }) => (headers, fragment),
        Ok(_) => return false,
        Err(_) => (LpHeaders::default(), packet),
    };
    let Ok(interest) = Interest::parse(packet) else { return false };
    if headers.nack.is_some() || interest.implicit_digest().is_some() {
        return false;
    }
    let token = headers.pit_token.as_ref().map(|token| token.as_bytes());
    write_data(out, token, freshness_ms, content, |name| name.extend_from_slice(interest.name().value()));
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::{
        Data, InterestBuilder,
        lp::{LinkFields, PitToken, write_headers},
    };

    #[test]
    fn an_answer_has_the_name_and_the_token() {
        let interest = InterestBuilder::new("/a/b".parse::<namewire_packet::NameBuf>().unwrap()).build();
        let token = PitToken::new(&[1, 2, 3]);
        let mut packet = Vec::new();
        let headers = LpHeaders { pit_token: token, ..LpHeaders::default() };
        write_headers(&mut packet, &headers, &LinkFields::default(), interest.len());
        packet.extend_from_slice(&interest);
        let mut out = Vec::new();
        assert!(write_answer(&packet, b"hello", 1000, &mut out));
        let answer = LpPacket::parse(&out).unwrap();
        assert_eq!(answer.headers.pit_token, token);
        let data = Data::parse(answer.fragment.unwrap()).unwrap();
        assert_eq!(
            (data.name().to_string(), data.content(), data.freshness_ms()),
            ("/a/b".to_owned(), &b"hello"[..], 1000)
        );
        out.clear();
        assert!(write_answer(&interest, b"", 0, &mut out));
        assert!(Data::parse(&out).is_ok(), "a bare Interest gets bare Data");
        out.clear();
        assert!(!write_answer(&[5, 0], b"", 0, &mut out) && out.is_empty());
    }
}
