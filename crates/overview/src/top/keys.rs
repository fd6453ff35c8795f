//! Keys: what does a pressed key mean?
//!
//! A terminal in raw mode sends the letters themselves, and for other keys the sequences of xterm (its "Control
//! Sequences", PC-style function keys): CSI or SS3, parameters, and a final byte. With Alt, a letter has an Escape
//! before it. So an Escape counts as the key Escape only if no byte follows it at once.
//!
//! `console::Term::read_key` does not fit here. It mistakes each signal that interrupts its wait, also a change of the
//! window's size, for Ctrl-C. And it sets the terminal's attributes around each key, so that it could undo their
//! restoration at the end.
//!
//! Limit: a sequence of more than [`SEQUENCE_MAX`] bytes counts as an unknown key, and its end is read as letters.

use super::view::Wish;
use std::io;
use tokio::sync::mpsc;

/// Keys that may wait for the screen.
const KEYS_MAX: usize = 64;
/// Most bytes of a sequence.
const SEQUENCE_MAX: usize = 32;

const ESCAPE: u8 = 0x1b;
const CTRL_C: u8 = 0x03;

/// The wishes of the user until the terminal is gone. Reading blocks, so it has a thread, which ends with the process.
pub(super) fn read() -> mpsc::Receiver<Wish> {
    let (sender, wishes) = mpsc::channel(KEYS_MAX);
    std::thread::spawn(move || {
        let (mut typed, mut bytes) = (Vec::new(), [0; 64]);
        loop {
            match rustix::io::read(io::stdin(), &mut bytes) {
                Err(rustix::io::Errno::INTR) => continue,
                Ok(0) | Err(_) => return,
                Ok(count) => typed.extend_from_slice(&bytes[..count]),
            }
            while let Some((wish, length)) = first_key(&typed) {
                typed.drain(..length);
                if sender.blocking_send(wish).is_err() {
                    return;
                }
            }
        }
    });
    wishes
}

/// The first key among these bytes, and how many it takes; `None` if more must come.
fn first_key(bytes: &[u8]) -> Option<(Wish, usize)> {
    match bytes {
        [] => None,
        [ESCAPE] => Some((Wish::Back, 1)),
        [ESCAPE, b'[', rest @ ..] => match rest.iter().position(|byte| (b'@'..=b'~').contains(byte)) {
            Some(last) => Some((of_sequence(&rest[..last], rest[last]), last + 3)),
            None if bytes.len() > SEQUENCE_MAX => Some((Wish::Other, bytes.len())),
            None => None,
        },
        [ESCAPE, b'O'] => None,
        [ESCAPE, b'O', last, ..] => Some((of_sequence(&[], *last), 3)),
        [ESCAPE, ESCAPE, ..] => Some((Wish::Other, 1)),
        [ESCAPE, letter, ..] => Some((of_letter(*letter), 2)),
        [letter, ..] => Some((of_letter(*letter), 1)),
    }
}

fn of_letter(letter: u8) -> Wish {
    match letter {
        b'q' | CTRL_C => Wish::Quit,
        b'\r' | b'\n' => Wish::Open,
        0x7f => Wish::Back,
        b's' => Wish::Sort,
        b'?' | b'h' => Wish::Help,
        b'k' => Wish::Scroll(-1),
        b'j' => Wish::Scroll(1),
        b' ' => Wish::Page(1),
        _ => Wish::Other,
    }
}

/// Parameters after the first are Shift, Alt and Ctrl.
fn of_sequence(parameters: &[u8], last: u8) -> Wish {
    let first = parameters.split(|byte| *byte == b';').next().unwrap_or_default();
    match (last, first) {
        (b'A', _) => Wish::Scroll(-1),
        (b'B', _) => Wish::Scroll(1),
        (b'H', _) | (b'~', b"1" | b"7") => Wish::First,
        (b'F', _) | (b'~', b"4" | b"8") => Wish::Last,
        (b'~', b"5") => Wish::Page(-1),
        (b'~', b"6") => Wish::Page(1),
        _ => Wish::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The keys in these bytes, and what is left of them.
    fn keys(mut bytes: &[u8]) -> (Vec<Wish>, &[u8]) {
        let mut keys = Vec::new();
        while let Some((wish, length)) = first_key(bytes) {
            keys.push(wish);
            bytes = &bytes[length..];
        }
        (keys, bytes)
    }

    #[test]
    fn each_key_has_its_wish() {
        let table: &[(&[u8], Wish)] = &[
            (b"q", Wish::Quit),
            (b"\x03", Wish::Quit),
            (b"\x1b", Wish::Back),
            (b"\r", Wish::Open),
            (b"\x7f", Wish::Back),
            (b"s", Wish::Sort),
            (b"?", Wish::Help),
            (b"h", Wish::Help),
            (b"\x1b[A", Wish::Scroll(-1)),
            (b"k", Wish::Scroll(-1)),
            (b"\x1bOB", Wish::Scroll(1)),
            (b"\x1b[1;5B", Wish::Scroll(1)),
            (b"j", Wish::Scroll(1)),
            (b"\x1b[5~", Wish::Page(-1)),
            (b"\x1b[6~", Wish::Page(1)),
            (b" ", Wish::Page(1)),
            (b"\x1b[H", Wish::First),
            (b"\x1b[1~", Wish::First),
            (b"\x1bOH", Wish::First),
            (b"\x1b[F", Wish::Last),
            (b"\x1b[4~", Wish::Last),
            (b"\x1bs", Wish::Sort),
            (b"\x1b[3~", Wish::Other),
            (b"\x1b[15~", Wish::Other),
            (b"x", Wish::Other),
        ];
        for (bytes, wish) in table {
            assert_eq!(keys(bytes), (vec![*wish], &b""[..]), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn keys_come_together_and_in_parts() {
        assert_eq!(keys(b"j\x1b[Bs\x1b[").0, [Wish::Scroll(1), Wish::Scroll(1), Wish::Sort]);
        for part in [&b"\x1b["[..], b"\x1b[1;", b"\x1bO"] {
            assert_eq!(keys(part), (vec![], part), "more must come");
        }
        assert_eq!(keys(b"\x1b\x1b[A").0, [Wish::Other, Wish::Scroll(-1)]);
        assert_eq!(keys(&[&b"\x1b["[..], &[b'1'; SEQUENCE_MAX]].concat()), (vec![Wish::Other], &b""[..]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert!(keys(&bytes).1.len() <= SEQUENCE_MAX);
        }
    }
}
