//! Files of links.
//!
//! Two forms are read. With a header that names the columns `a` and `b`, it is CSV; further columns are keys of a link
//! in the scenario file (`delay`, `jitter`, `loss`, `bandwidth`, `queue`, `mtu`, `reliability`, `up`), and an empty
//! cell is as in `link_defaults`. Otherwise each line names two nodes between spaces, tabs or `|`, as graphs of CAIDA
//! do; what follows on the line and lines that begin with `#` are left out, and so are repeated links.

use crate::file::Link;
use anyhow::{Context as _, bail, ensure};
use std::collections::HashSet;
use std::path::Path;

/// Most links of a file.
pub const LINKS_MAX: usize = 1_000_000;

/// The links of a file.
///
/// # Errors
/// If it cannot be read, a cell is malformed, or it has no link or too many.
pub fn links(file: &Path) -> anyhow::Result<Vec<Link>> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    of_text(&text).with_context(|| file.display().to_string())
}

fn of_text(text: &str) -> anyhow::Result<Vec<Link>> {
    let header: Vec<&str> = text.lines().next().unwrap_or_default().split(',').map(str::trim).collect();
    let links = if header.contains(&"a") && header.contains(&"b") { of_csv(text)? } else { of_pairs(text) };
    ensure!(!links.is_empty(), "it has no links");
    ensure!(links.len() <= LINKS_MAX, "{} links, {LINKS_MAX} are allowed", links.len());
    Ok(links)
}

fn of_csv(text: &str) -> anyhow::Result<Vec<Link>> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
    let columns = reader.headers()?.clone();
    let mut links = Vec::new();
    for record in reader.records() {
        let record = record?;
        let mut link = Link::default();
        for (column, cell) in columns.iter().zip(&record) {
            set_cell(&mut link, column, cell)
                .with_context(|| format!("line {}", record.position().map_or(0, csv::Position::line)))?;
        }
        links.push(link);
    }
    Ok(links)
}

fn set_cell(link: &mut Link, column: &str, cell: &str) -> anyhow::Result<()> {
    if cell.is_empty() {
        return Ok(());
    }
    let what = || format!("{column} {cell:?}");
    let text = |error: String| anyhow::Error::msg(error);
    match column {
        "a" => link.a = cell.to_owned(),
        "b" => link.b = cell.to_owned(),
        "delay" => link.delay = Some(cell.parse().map_err(text).with_context(what)?),
        "jitter" => link.jitter = Some(cell.parse().map_err(text).with_context(what)?),
        "loss" => link.loss = Some(cell.parse().with_context(what)?),
        "bandwidth" => link.bandwidth = Some(cell.parse().map_err(text).with_context(what)?),
        "queue" => link.queue = Some(cell.parse().map_err(text).with_context(what)?),
        "mtu" => link.mtu = Some(cell.parse().with_context(what)?),
        "reliability" => link.reliability = Some(cell.parse().with_context(what)?),
        "up" => link.up = Some(truth(cell).with_context(what)?),
        other => bail!("a link has no {other:?}"),
    }
    Ok(())
}

/// `up`, `down`, `true`, `false`, `1` and `0`.
pub(crate) fn truth(cell: &str) -> anyhow::Result<bool> {
    match cell {
        "true" | "up" | "1" => Ok(true),
        "false" | "down" | "0" => Ok(false),
        _ => bail!("it is up or down"),
    }
}

fn of_pairs(text: &str) -> Vec<Link> {
    let mut seen = HashSet::new();
    let mut links = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut names = line.split([' ', '\t', '|', ',']).filter(|name| !name.is_empty());
        let (Some(a), Some(b)) = (names.next(), names.next()) else { continue };
        if a != b && seen.insert((a.min(b), a.max(b))) {
            links.push(Link { a: a.to_owned(), b: b.to_owned(), ..Link::default() });
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_configuration::units::Span;
    use std::time::Duration;

    #[test]
    fn a_csv_file_has_a_header() -> anyhow::Result<()> {
        let links = of_text("a,b,delay,loss,up\nx,y,2.5ms,0.1,\ny,z,,,down\n")?;
        assert_eq!((links[0].delay, links[0].loss), (Some(Span(Duration::from_micros(2_500))), Some(0.1)));
        assert_eq!((links[1].a.as_str(), links[1].delay, links[1].up), ("y", None, Some(false)));
        for (text, reason) in [
            ("a,b,delay\nx,y,fast\n", "line 2"),
            ("a,b,colour\nx,y,red\n", "a link has no \"colour\""),
            ("a,b,up\nx,y,maybe\n", "up or down"),
            ("a,b\n", "no links"),
        ] {
            let error = format!("{:#}", of_text(text).unwrap_err());
            assert!(error.contains(reason), "{error}");
        }
        Ok(())
    }

    #[test]
    fn a_list_of_pairs_has_none() -> anyhow::Result<()> {
        let links = of_text("# as1|as2|relation\n1|2|-1\n2|1|0\n3 3\n2\t4\n")?;
        let ends: Vec<(&str, &str)> = links.iter().map(|link| (link.a.as_str(), link.b.as_str())).collect();
        assert_eq!(ends, [("1", "2"), ("2", "4")]);
        Ok(())
    }
}
