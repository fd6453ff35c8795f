//! The terminal while `namewire top` runs: how does the program prepare it, draw on it and restore it?
//!
//! The terminal is in raw mode all the time, so that typed keys do not appear on it, and shows its alternate screen
//! without a cursor. The program restores it when the display is dropped. It also does so before it prints the message
//! of a panic, because a release build does not unwind.
//!
//! A drawing is one write with the lines that have changed, each at its place and as wide as the screen, so nothing
//! flickers. After a change of size, the program writes all lines, because the terminal may have moved them.

use super::screen::Screen;
use console::Term;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::{
    fmt::Write as _,
    io, panic,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

// The private modes of xterm: 1049 is the alternate screen, 25 the cursor.
const TAKE: &str = "\x1b[?1049h\x1b[?25l";
const GIVE_BACK: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";
const CLEAR: &str = "\x1b[2J";

pub(super) struct Display {
    terminal: Term,
    loan: Arc<Loan>,
    /// The lines on the screen; none if it must be drawn anew.
    shown: Vec<String>,
}

/// What is to be given back.
struct Loan {
    attributes: Termios,
    is_taken: AtomicBool,
}

impl Loan {
    /// Writes without a lock: a panic may come while the output has one.
    fn give_back(&self) {
        if self.is_taken.swap(false, Relaxed) {
            let _ = rustix::io::write(io::stdout(), GIVE_BACK);
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.attributes);
        }
    }
}

impl Display {
    /// Takes the terminal.
    pub(super) fn take() -> io::Result<Self> {
        let attributes = tcgetattr(io::stdin())?;
        let mut raw = attributes.clone();
        raw.make_raw();
        let loan = Arc::new(Loan { attributes, is_taken: AtomicBool::new(true) });
        let (of_hook, say) = (Arc::clone(&loan), panic::take_hook());
        panic::set_hook(Box::new(move |why| {
            of_hook.give_back();
            say(why);
        }));
        let display = Display { terminal: Term::stdout(), loan, shown: Vec::new() };
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        display.terminal.write_str(TAKE)?;
        display.terminal.flush()?;
        Ok(display)
    }

    /// Lines and columns.
    pub(super) fn size(&self) -> (usize, usize) {
        let (height, width) = self.terminal.size();
        (height.into(), width.into())
    }

    /// The next drawing writes all lines.
    pub(super) fn forget(&mut self) {
        self.shown.clear();
    }

    pub(super) fn draw(&mut self, screen: &Screen) -> io::Result<()> {
        let lines = screen.lines();
        let changes = changes(&self.shown, &lines);
        self.shown = lines;
        self.terminal.write_str(&changes)?;
        self.terminal.flush()
    }
}

/// What a terminal that shows these lines must get to show others.
fn changes(shown: &[String], lines: &[String]) -> String {
    let mut changes = if shown.is_empty() { CLEAR.to_owned() } else { String::new() };
    for (row, line) in lines.iter().enumerate().filter(|(row, line)| shown.get(*row) != Some(line)) {
        let _ = write!(changes, "\x1b[{};1H{line}", row + 1);
    }
    changes
}

impl Drop for Display {
    fn drop(&mut self) {
        self.loan.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_lines_are_written() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(changes(&[], &lines("a\nb")), "\x1b[2J\x1b[1;1Ha\x1b[2;1Hb");
        assert_eq!(changes(&lines("a\nb"), &lines("a\nc")), "\x1b[2;1Hc");
        assert_eq!(changes(&lines("a\nb"), &lines("a\nb")), "");
        assert_eq!(changes(&lines("a"), &lines("a\nb")), "\x1b[2;1Hb");
    }
}
