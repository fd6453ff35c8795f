//! Does not print binary data to a terminal, because the terminal could interpret it as commands.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::io::AsyncWrite;

/// Most bytes of a UTF-8 character after its first.
const CONTINUATION_BYTES_MAX: usize = 3;

/// Passes text on, and refuses the rest.
pub struct TextOnly<W>(pub W);

/// True for text as files have it. The text may begin and end within a character. Control characters other than those
/// of lines and columns are no text.
pub fn is_text(bytes: &[u8]) -> bool {
    let is_continuation = |byte: &&u8| **byte & 0xc0 == 0x80;
    let rest = bytes.iter().take(CONTINUATION_BYTES_MAX).take_while(is_continuation).count();
    let text = match std::str::from_utf8(&bytes[rest..]) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[rest..rest + error.valid_up_to()]).expect("valid up to there")
        }
        Err(_) => return false,
    };
    text.chars().all(|character| !character.is_control() || matches!(character, '\n' | '\r' | '\t' | '\x0c'))
}

impl<W: AsyncWrite + Unpin> AsyncWrite for TextOnly<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if !is_text(bytes) {
            let why =
                "this is binary data, and standard output a terminal; use -o FILE, or -o - to print it all the same";
            return Poll::Ready(Err(io::Error::other(why)));
        }
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_may_be_cut_within_a_character() {
        let text = "Grüße, 世界\n\tand more\r\n".as_bytes();
        for start in 0..text.len() {
            for end in start..=text.len() {
                assert!(is_text(&text[start..end]), "{start}..{end}");
            }
        }
    }

    #[test]
    fn binary_data_and_commands_to_the_terminal_are_no_text() {
        for bytes in
            [&b"\x7fELF"[..], b"a\0b", b"\x1b[31mred", b"\xff\xfe", b"ab\xc3(", b"\x80\x80\x80\x80", b"\xc2\x9b0m"]
        {
            assert!(!is_text(bytes), "{bytes:?}");
        }
    }
}
