//! What one end of the line says arrives at the other; what breaks the rules ends the conversation.

use namewire_handover::{
    Handed, Kind, Line, LineError, TakeOver, faces,
    messages::{Face, Hello},
};
use std::{
    io::{Read, Seek, SeekFrom, Write},
    os::fd::{AsFd, BorrowedFd},
    os::unix::net::UnixStream,
    time::Duration,
};

/// Two ends; the second as a socket, to say anything.
fn ends() -> (Line, UnixStream) {
    let (line, other) = Line::pair().unwrap();
    line.set_timeout(Duration::from_secs(20)).unwrap();
    (line, other.into())
}

fn header(numbers: [u32; 4]) -> Vec<u8> {
    numbers.into_iter().flat_map(u32::to_le_bytes).collect()
}

#[test]
fn text_bytes_and_many_descriptors_arrive() {
    let (line, other) = ends();
    let mut files: Vec<std::fs::File> = (0..450).map(|_| tempfile::tempfile().unwrap()).collect();
    for (number, file) in files.iter_mut().enumerate() {
        file.write_all(&[number as u8]).unwrap();
    }
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|at| at as u8).collect();
    let face = Face { face: 300, remote: "fd://7".to_owned(), ..Face::default() };
    let (sent, expected) = (face.clone(), bytes.clone());
    let sender = std::thread::spawn(move || {
        let descriptors: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
        line.send(Kind::FACE, &sent, &bytes, &descriptors).unwrap();
        line.send(Kind::GO, &(), &[], &[]).unwrap();
    });
    let there = Line::of(other.into());
    let message = there.receive().unwrap();
    assert_eq!((message.kind, message.read::<Face>().unwrap()), (Kind::FACE, face));
    assert_eq!(message.bytes, expected);
    assert_eq!(message.descriptors.len(), 450);
    for (number, descriptor) in message.descriptors.into_iter().enumerate() {
        let mut file = std::fs::File::from(descriptor);
        file.seek(SeekFrom::Start(0)).unwrap();
        let mut read = Vec::new();
        file.read_to_end(&mut read).unwrap();
        assert_eq!(read, [number as u8]);
    }
    assert_eq!(there.receive().unwrap().kind, Kind::GO);
    sender.join().unwrap();
    assert!(matches!(there.receive(), Err(LineError::Closed)));
}

#[test]
fn kinds_and_fields_of_a_later_version_are_skipped() {
    let (line, mut other) = ends();
    other.write_all(&[header([999, 2, 3, 0]), b"{}abc".to_vec()].concat()).unwrap();
    let text = br#"{"protocol":1,"moon":"full","version":"9.9"}"#;
    other.write_all(&[header([1, text.len() as u32, 0, 0]), text.to_vec()].concat()).unwrap();
    let message = line.receive().unwrap();
    let hello = Hello { protocol: 1, version: "9.9".to_owned(), ..Hello::default() };
    assert_eq!((message.kind, message.read::<Hello>().unwrap()), (Kind::HELLO, hello));
}

#[test]
fn what_breaks_the_rules_ends_the_conversation() {
    for numbers in [[1, u32::MAX, 0, 0], [1, 0, u32::MAX, 0], [1, 0, 0, 1_000_000]] {
        let (line, mut other) = ends();
        other.write_all(&header(numbers)).unwrap();
        assert!(matches!(line.receive(), Err(LineError::TooLarge)), "{numbers:?}");
    }
    let (line, mut other) = ends();
    other.write_all(&[header([1, 2, 0, 1]), b"{}d".to_vec()].concat()).unwrap();
    assert!(matches!(line.receive(), Err(LineError::Malformed(_))), "a descriptor is missing");
    let (line, mut other) = ends();
    other.write_all(&[header([1, 2, 0, 0]), b"[}".to_vec()].concat()).unwrap();
    assert!(matches!(line.receive().unwrap().read::<Hello>(), Err(LineError::Malformed(_))));
    let (line, other) = ends();
    drop(other);
    assert!(matches!(line.receive(), Err(LineError::Closed)));
    assert!(line.send(Kind::GO, &(), &[], &[]).is_err(), "and no signal ends this process");
    let (line, other) = ends();
    line.set_timeout(Duration::from_millis(10)).unwrap();
    assert!(matches!(line.receive(), Err(LineError::TimedOut)));
    drop(other);
}

/// The seed of the fuzz target `hand_over`: everything that has no socket.
const CONVERSATION: &[u8] = include_bytes!("../../../fuzz/corpus/hand_over/conversation");

/// What a program that takes over makes of these bytes; the line closes behind them.
fn taken(bytes: &[u8]) -> Result<Handed, LineError> {
    let (line, mut other) = ends();
    other.write_all(bytes).unwrap();
    other.shutdown(std::net::Shutdown::Write).unwrap();
    Handed::receive(TakeOver { line, version: "1".to_owned() }, 1)
}

#[test]
fn a_conversation_is_taken_and_broken_ones_end_with_an_error_at_most() {
    let mut handed = taken(CONVERSATION).unwrap();
    assert_eq!((handed.node.next_face, handed.routes.len()), (301, 1));
    let described: Vec<bool> = handed.faces.drain(..).map(|face| faces::of_line(face).is_some()).collect();
    assert_eq!(described, [true, true, true]);

    let mut dice = fastrand::Rng::with_seed(7);
    let mut refused = 0;
    for _ in 0..2000 {
        let mut bytes = CONVERSATION.to_vec();
        for _ in 0..dice.usize(1..4) {
            let at = dice.usize(..bytes.len());
            match dice.u8(..3) {
                0 => bytes[at] = dice.u8(..),
                1 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, dice.u8(..)),
            }
        }
        match taken(&bytes) {
            Ok(mut handed) => handed.faces.drain(..).for_each(|face| _ = faces::of_line(face)),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 1000, "{refused}");
}
