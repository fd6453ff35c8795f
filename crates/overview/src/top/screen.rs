//! The cells of a screen: which letter is in each cell, and in which style?
//!
//! The parts of a view write one after the other, and overwrite former letters. Then every line becomes a text as wide
//! as the screen, with the escape sequences of its styles.
//!
//! Text from a router cannot control the terminal: control characters and characters without width are left out. A
//! letter of two columns takes two cells; if one of them is written over, the other becomes blank.
//!
//! Memory: a cell has 8 bytes. Limits: text that does not fit is cut off. If a terminal has more than [`SIDE_MAX`]
//! lines or columns, the rest stays empty.

use console::{Style, measure_text_width};

/// Most lines, and most columns.
const SIDE_MAX: usize = 1024;
/// In the second cell of a letter of two columns.
const SECOND_HALF: char = '\0';

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Plain,
    Bold,
    Reversed,
    Red,
    BoldRed,
    Green,
    Yellow,
}

impl Look {
    fn style(self) -> Style {
        match self {
            Look::Plain => Style::new(),
            Look::Bold => Style::new().bold(),
            Look::Reversed => Style::new().reverse(),
            Look::Red => Style::new().red(),
            Look::BoldRed => Style::new().bold().red(),
            Look::Green => Style::new().green(),
            Look::Yellow => Style::new().yellow(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    letter: char,
    look: Look,
}

const BLANK: Cell = Cell { letter: ' ', look: Look::Plain };

pub(super) struct Screen {
    rows: Vec<Vec<Cell>>,
    width: usize,
}

impl Screen {
    /// An empty one.
    pub(super) fn new(height: usize, width: usize) -> Self {
        let width = width.min(SIDE_MAX);
        Screen { rows: vec![vec![BLANK; width]; height.min(SIDE_MAX)], width }
    }

    pub(super) fn height(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Writes into a row, from a column on.
    pub(super) fn put(&mut self, row: usize, mut column: usize, text: &str, look: Look) {
        let Some(cells) = self.rows.get_mut(row) else { return };
        for letter in text.chars().filter(|letter| !letter.is_control()) {
            let width = measure_text_width(letter.encode_utf8(&mut [0; 4]));
            if column + width > cells.len() {
                return;
            }
            for half in 0..width {
                let letter = if half == 0 { letter } else { SECOND_HALF };
                write(cells, column + half, Cell { letter, look });
            }
            column += width;
        }
    }

    /// The rows as text, in colours where the terminal has them.
    pub(super) fn lines(&self) -> Vec<String> {
        let run = |cells: &[Cell]| cells[0].look.style().apply_to(letters(cells)).to_string();
        self.rows.iter().map(|row| row.chunk_by(|a, b| a.look == b.look).map(run).collect()).collect()
    }
}

/// Writes a cell, and blanks what it leaves of a letter of two columns.
fn write(cells: &mut [Cell], column: usize, cell: Cell) {
    let is_second_half = |cell: Option<&Cell>| cell.is_some_and(|cell| cell.letter == SECOND_HALF);
    if cell.letter != SECOND_HALF && is_second_half(cells.get(column)) {
        cells[column - 1].letter = ' ';
    }
    if is_second_half(cells.get(column + 1)) {
        cells[column + 1].letter = ' ';
    }
    cells[column] = cell;
}

fn letters(cells: &[Cell]) -> String {
    cells.iter().map(|cell| cell.letter).filter(|letter| *letter != SECOND_HALF).collect()
}

#[cfg(test)]
impl Screen {
    /// The rows without looks and blanks at the end.
    pub(super) fn text(&self) -> Vec<String> {
        self.rows.iter().map(|row| letters(row).trim_end().to_owned()).collect()
    }

    /// The looks in a row that letters have, from left to right.
    pub(super) fn looks(&self, row: usize) -> Vec<Look> {
        let mut looks: Vec<Look> =
            self.rows[row].iter().filter(|cell| cell.letter != ' ').map(|cell| cell.look).collect();
        looks.dedup();
        looks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_later_is_above_and_what_is_outside_is_cut() {
        let mut screen = Screen::new(2, 6);
        screen.put(0, 0, "abcdefgh", Look::Bold);
        screen.put(0, 2, "XY", Look::Red);
        screen.put(1, 5, "12", Look::Plain);
        screen.put(2, 0, "below", Look::Plain);
        screen.put(1, 9, "beside", Look::Plain);
        assert_eq!(screen.text(), ["abXYef", "     1"]);
        assert_eq!(screen.looks(0), [Look::Bold, Look::Red, Look::Bold]);
    }

    #[test]
    fn no_sequence_of_a_router_reaches_the_terminal() {
        let mut screen = Screen::new(1, 12);
        screen.put(0, 0, "a\u{1b}[2J\u{9b}b\r\n\u{7}c\u{301}", Look::Plain);
        assert_eq!(screen.lines(), ["a[2Jbc      "], "the accent is left out too");
    }

    #[test]
    fn wide_letters_are_never_halved() {
        let mut screen = Screen::new(3, 5);
        (0..3).for_each(|row| screen.put(row, 0, "表a表示", Look::Plain));
        assert_eq!(screen.lines()[0], "表a表");
        screen.put(1, 1, "x", Look::Plain);
        screen.put(2, 3, "示", Look::Plain);
        screen.put(2, 0, "y", Look::Plain);
        assert_eq!(screen.lines(), ["表a表", " xa表", "y a示"]);
        screen.put(2, 2, "示", Look::Plain);
        assert_eq!(screen.lines()[2], "y 示 ");
    }
}
