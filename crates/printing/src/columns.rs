//! Which columns of a table fit into a line of the terminal?

use crate::terminal;

/// Spaces between two columns.
pub const GAP: usize = 2;

/// A column of a table.
pub struct Column<R> {
    /// Its first line.
    pub heading: &'static str,
    /// Columns of the highest number give way first, together, where the line is too short; those of 0 stay.
    pub rank: u8,
    /// Numbers stand at the right.
    pub is_number: bool,
    /// The text of a row.
    pub cell: fn(&R) -> String,
}

impl<R> Column<R> {
    /// A column of words, at the left.
    pub const fn text(heading: &'static str, rank: u8, cell: fn(&R) -> String) -> Self {
        Column { heading, rank, is_number: false, cell }
    }

    /// A column of numbers, at the right.
    pub const fn number(heading: &'static str, rank: u8, cell: fn(&R) -> String) -> Self {
        Column { heading, rank, is_number: true, cell }
    }
}

/// A column as it is printed.
pub struct Fitted {
    /// Its first line.
    pub heading: &'static str,
    /// Numbers stand at the right.
    pub is_number: bool,
    /// Characters.
    pub width: usize,
    /// Its text in each row.
    pub cells: Vec<String>,
}

/// The columns that fit into `width` characters, in their order; all of them without a width.
pub fn fit<R>(columns: &[Column<R>], rows: &[R], width: Option<usize>) -> Vec<Fitted> {
    let all = columns.iter().map(|column| {
        let cells: Vec<String> = rows.iter().map(column.cell).collect();
        let widest = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
        let width = widest.max(column.heading.chars().count());
        (column.rank, Fitted { heading: column.heading, is_number: column.is_number, width, cells })
    });
    let mut kept: Vec<(u8, Fitted)> = all.collect();
    let total = |kept: &[(u8, Fitted)]| {
        kept.iter().map(|(_, column)| column.width).sum::<usize>() + GAP * kept.len().saturating_sub(1)
    };
    while width.is_some_and(|width| total(&kept) > width) {
        let Some(worst) = kept.iter().map(|(rank, _)| *rank).max().filter(|rank| *rank > 0) else { break };
        kept.retain(|(rank, _)| *rank != worst);
    }
    kept.into_iter().map(|(_, column)| column).collect()
}

/// The columns as lines of text, alarming rows in red on a terminal. Without rows, `empty` in their place.
pub fn text(columns: &[Fitted], is_alarming: impl Fn(usize) -> bool, empty: &str) -> String {
    let rows = columns.first().map_or(0, |column| column.cells.len());
    if rows == 0 {
        return format!("{empty}\n");
    }
    let padded = |column: &Fitted, cell: &str| match column.is_number {
        true => format!("{cell:>width$}", width = column.width),
        false => format!("{cell:<width$}", width = column.width),
    };
    let line = |cell: &dyn Fn(&Fitted) -> String| {
        let cells: Vec<String> = columns.iter().map(cell).collect();
        cells.join(&" ".repeat(GAP)).trim_end().to_owned()
    };
    let mut text = terminal::bold(&line(&|column| padded(column, column.heading))) + "\n";
    for row in 0..rows {
        let line = line(&|column| padded(column, &column.cells[row]));
        text += &if is_alarming(row) { terminal::alarming(&line) } else { line };
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_important_columns_give_way() {
        console::set_colors_enabled(false);
        let column = |heading, rank, cell| Column { heading, rank, is_number: false, cell };
        let columns: [Column<u8>; 3] = [
            column("A", 0, |_| "1234".to_owned()),
            column("B", 2, |_| "12".to_owned()),
            column("C", 1, |_| "123".to_owned()),
        ];
        let shown = |width| fit(&columns, &[7], width).iter().map(|column| column.heading).collect::<String>();
        assert_eq!(shown(None), "ABC");
        assert_eq!(shown(Some(13)), "ABC");
        assert_eq!(shown(Some(12)), "AC");
        assert_eq!(shown(Some(8)), "A");
        assert_eq!(shown(Some(1)), "A", "the most important one stays");
        let lines = text(&fit(&columns, &[7, 8], Some(12)), |_| false, "none");
        assert_eq!(lines, "A     C\n1234  123\n1234  123\n");
        assert_eq!(text(&fit(&columns, &[], None), |_| false, "none"), "none\n");
    }
}
