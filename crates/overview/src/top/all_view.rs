//! The screen of `namewire top --all`: a line for each named router, and more of one. This module uses no terminal and
//! no router.
//!
//! ```text
//!   how many routers there are, and how they are
//!   a line for each: state, rates, faces, PIT, drops, its worst finding       (or more of one: findings, faces, drops)
//!   keys
//! ```

use super::{
    Live,
    screen::{Look, Screen},
    view::{Wish, bit_rate, draw_help, line, packet_rate, shrunk},
};
use crate::all::Named;
use console::{Alignment, pad_str};
use namewire_network::{
    health::Level,
    network::{Network, Watch, Watched},
    summary::{FaceSummary, Rates},
};
use namewire_printing::{
    columns::{self, Column},
    quantity,
};
use std::ops::Range;

const HELP: &[&str] = &[
    "Up, Down     select a router (also k, j)",
    "Enter        more of it; Esc goes back",
    "s            sort by state, name or traffic",
    "Home, End    to the first or last router",
    "?            this help; any key closes it",
    "q, Ctrl-C    quit",
    "",
    "Rates are those of the last ten seconds.",
];

/// What the routers are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sort {
    #[default]
    State,
    Name,
    Traffic,
}

impl Sort {
    fn next(self) -> Self {
        match self {
            Sort::State => Sort::Name,
            Sort::Name => Sort::Traffic,
            Sort::Traffic => Sort::State,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Sort::State => "state",
            Sort::Name => "name",
            Sort::Traffic => "traffic",
        }
    }
}

/// All routers, and which of them is selected.
pub(super) struct AllView {
    network: Network,
    sort: Sort,
    /// By name, because the order changes.
    selected: String,
    /// More of the selected one is on the screen.
    is_open: bool,
    first_row: usize,
    page_rows: usize,
    has_help: bool,
}

impl AllView {
    /// Nothing yet of these routers.
    pub(super) fn new(routers: &[Named]) -> Self {
        let watched = |router: &Named| Watch::new(&router.name, router.place()).shown().clone();
        AllView {
            network: Network::of(routers.iter().map(watched).collect()),
            sort: Sort::default(),
            selected: routers.first().map(|router| router.name.clone()).unwrap_or_default(),
            is_open: false,
            first_row: 0,
            page_rows: 0,
            has_help: false,
        }
    }

    fn sorted(&self) -> Vec<&Watched> {
        let mut routers: Vec<&Watched> = self.network.routers.iter().collect();
        let bits = |router: &Watched| rates(router).map_or(0.0, |rates| rates.bits_per_s());
        // The sort is stable, and the routers come by name.
        match self.sort {
            Sort::State => routers.sort_by_key(|router| std::cmp::Reverse(router.level)),
            Sort::Name => {}
            Sort::Traffic => routers.sort_by(|a, b| bits(b).total_cmp(&bits(a))),
        }
        routers
    }

    /// Selects the router so many lines below.
    fn move_by(&mut self, lines: isize) {
        let names: Vec<String> = self.sorted().iter().map(|router| router.name.clone()).collect();
        let at = names.iter().position(|name| *name == self.selected).unwrap_or(0);
        let to = at.saturating_add_signed(lines).min(names.len().saturating_sub(1));
        self.selected = names.into_iter().nth(to).unwrap_or_default();
    }

    fn draw_list(&mut self, screen: &mut Screen, rows: Range<usize>) {
        let routers: Vec<Row> = self.sorted().into_iter().map(Row::of).collect();
        let at = routers.iter().position(|row| row.name == self.selected).unwrap_or(0);
        self.page_rows = rows.len().saturating_sub(1);
        // The selected one is on the screen.
        let first_min = (at + 1).saturating_sub(self.page_rows.max(1));
        self.first_row = self.first_row.clamp(first_min, at.max(first_min));
        let width = screen.width().saturating_sub(2);
        let fitted = shrunk(columns::fit(COLUMNS, &routers, Some(width)), "FINDING", width);
        let heading = line(fitted.iter().map(|column| (column, column.heading)));
        screen.put(rows.start, 0, &pad_str(&format!("  {heading}"), width + 2, Alignment::Left, None), Look::Reversed);
        for (row, number) in (rows.start + 1..rows.end).zip(self.first_row..routers.len()) {
            let text = line(fitted.iter().map(|column| (column, &column.cells[number][..])));
            let look = look(routers[number].level);
            screen.put(row, 0, if number == at { "> " } else { "  " }, Look::Bold);
            screen.put(row, 2, &text, look);
        }
    }

    fn draw_one(&self, screen: &mut Screen, rows: Range<usize>) {
        let Some((index, router)) =
            self.network.routers.iter().enumerate().find(|(_, router)| router.name == self.selected)
        else {
            return;
        };
        let lines = self.lines_of(index, router, screen.width());
        for (row, (text, look)) in rows.zip(lines) {
            screen.put(row, 0, &text, look);
        }
    }

    /// All of one router that is shown, with the most important first: the screen may be small.
    fn lines_of(&self, index: usize, router: &Watched, width: usize) -> Vec<(String, Look)> {
        let full = |text: &str| pad_str(text, width, Alignment::Left, None).into_owned();
        let mut lines = Vec::new();
        if let Some(summary) = &router.summary {
            let up = quantity::ms(summary.now_unix_ms.saturating_sub(summary.start_unix_ms));
            lines.push((format!("{} on {}, up {up}", summary.version, summary.host), Look::Plain));
            let rates = summary.rates.unwrap_or_default();
            let (bits_in, bits_out) = (bit_rate(rates.in_bits_per_s / 8.0), bit_rate(rates.out_bits_per_s / 8.0));
            let (packets_in, packets_out) = (packet_rate(rates.in_packets_per_s), packet_rate(rates.out_packets_per_s));
            lines.push((format!("In {bits_in}, {packets_in}   Out {bits_out}, {packets_out}"), Look::Plain));
            let (pit, fib) = (Row::of(router).pit, summary.fib_entries);
            lines.push((format!("PIT {pit}   FIB {fib} entries   {} faces", summary.face_count), Look::Plain));
        }
        lines.push((full("WHAT IS WRONG"), Look::Reversed));
        match &router.findings[..] {
            [] => lines.push(("nothing was found".to_owned(), Look::Green)),
            findings => lines.extend(
                findings
                    .iter()
                    .map(|finding| (format!("{}: {}", finding.level.word(), finding.text), look(finding.level))),
            ),
        }
        if !router.drops.is_empty() {
            lines.push((full("DROPS PER SECOND, and in all"), Look::Reversed));
            let drop = |drop: &namewire_network::rates::DropRate| {
                (format!("{:>8.1}  {:>8}  {}", drop.per_s, drop.count, drop.reason), Look::Plain)
            };
            lines.extend(router.drops.iter().map(drop));
        }
        let faces: Vec<FaceRow> = router
            .summary
            .iter()
            .flat_map(|summary| &summary.faces)
            .map(|face| FaceRow { face: face.clone(), leads_to: self.leads_to(index, face.id) })
            .collect();
        if !faces.is_empty() {
            let fitted = shrunk(columns::fit(FACE_COLUMNS, &faces, Some(width)), "REMOTE", width);
            lines.push((full(&line(fitted.iter().map(|column| (column, column.heading)))), Look::Reversed));
            for (number, row) in faces.iter().enumerate() {
                let text = line(fitted.iter().map(|column| (column, &column.cells[number][..])));
                let look = match &*row.face.state {
                    "down" => Look::Red,
                    "degraded" => Look::Yellow,
                    _ => Look::Plain,
                };
                lines.push((text, look));
            }
        }
        lines
    }

    /// The name of the router behind a face.
    fn leads_to(&self, router: usize, face: u64) -> String {
        let other = self.network.links.iter().find_map(|link| match (link.a, link.a_face, link.b, link.b_face) {
            (a, a_face, b, _) if (a, a_face) == (router, face) => Some(b),
            (a, _, b, Some(b_face)) if (b, b_face) == (router, face) => Some(a),
            _ => None,
        });
        other.and_then(|other| self.network.routers.get(other)).map_or("-".to_owned(), |other| other.name.clone())
    }

    fn head(&self) -> String {
        let count = |level| self.network.routers.iter().filter(|router| router.level == level).count();
        let parts = [Level::Trouble, Level::Unknown, Level::Warning, Level::Well]
            .map(|level| (count(level), level.word()))
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"));
        format!("{} routers: {}", self.network.routers.len(), parts.collect::<Vec<_>>().join(", "))
    }
}

impl Live for AllView {
    type News = Network;

    fn take(&mut self, news: Network) {
        self.network = news;
    }

    fn fulfil(&mut self, wish: Wish) -> bool {
        if self.has_help && wish != Wish::Quit {
            self.has_help = false;
            return true;
        }
        match wish {
            Wish::Sort => self.sort = self.sort.next(),
            Wish::Scroll(lines) => self.move_by(lines),
            Wish::Page(pages) => self.move_by(pages * self.page_rows.max(1) as isize),
            Wish::First => self.move_by(isize::MIN),
            Wish::Last => self.move_by(isize::MAX),
            Wish::Help => self.has_help = true,
            Wish::Open => self.is_open = true,
            Wish::Back if self.is_open => self.is_open = false,
            Wish::Other => {}
            Wish::Back | Wish::Quit => return false,
        }
        true
    }

    fn draw(&mut self, height: usize, width: usize) -> Screen {
        let mut screen = Screen::new(height, width);
        let keys = screen.height().saturating_sub(1);
        let sort = self.sort.word();
        if self.is_open {
            let router = self.network.routers.iter().find(|router| router.name == self.selected);
            let (level, place) = router.map_or((Level::Unknown, ""), |router| (router.level, &*router.place));
            screen.put(0, 0, &format!("{}: {}   {place}", self.selected, level.word()), Look::Bold);
            self.draw_one(&mut screen, 1..keys);
            screen.put(keys, 0, "Esc back  Up, Down other routers  q quit  ? help", Look::Plain);
        } else {
            screen.put(0, 0, &self.head(), Look::Bold);
            self.draw_list(&mut screen, 1..keys.max(1));
            screen.put(keys, 0, &format!("q quit  Enter more  s sort: {sort}  ? help"), Look::Plain);
        }
        if self.has_help {
            draw_help(&mut screen, HELP);
        }
        screen
    }
}

fn rates(router: &Watched) -> Option<Rates> {
    router.present().and_then(|summary| summary.rates)
}

fn look(level: Level) -> Look {
    match level {
        Level::Well => Look::Plain,
        Level::Warning => Look::Yellow,
        Level::Trouble | Level::Unknown => Look::Red,
    }
}

/// A router as a line.
struct Row {
    name: String,
    level: Level,
    rates: Option<Rates>,
    faces: String,
    pit: String,
    drops: String,
    finding: String,
}

impl Row {
    fn of(router: &Watched) -> Self {
        let present = router.present();
        let dash = || "-".to_owned();
        Row {
            name: router.name.clone(),
            level: router.level,
            rates: rates(router),
            faces: present.map_or_else(dash, |summary| summary.face_count.to_string()),
            pit: present.map_or_else(dash, |summary| match summary.pit_capacity {
                0 => summary.pit_entries.to_string(),
                capacity => format!("{:.0} %", summary.pit_entries as f64 * 100.0 / capacity as f64),
            }),
            drops: present.map_or_else(dash, |_| format!("{:.0}/s", router.drops_per_s())),
            finding: router.findings.first().map(|finding| finding.text.clone()).unwrap_or_default(),
        }
    }

    fn rate(&self, of: fn(&Rates) -> f64, text: fn(f64) -> String) -> String {
        self.rates.as_ref().map_or_else(|| "-".to_owned(), |rates| text(of(rates)))
    }
}

fn bits(bits_per_s: f64) -> String {
    bit_rate(bits_per_s / 8.0)
}

const COLUMNS: &[Column<Row>] = &[
    Column::text("NAME", 0, |row| row.name.clone()),
    Column::text("STATE", 0, |row| row.level.word().to_owned()),
    Column::number("IN", 1, |row| row.rate(|rates| rates.in_bits_per_s, bits)),
    Column::number("OUT", 1, |row| row.rate(|rates| rates.out_bits_per_s, bits)),
    Column::number("PKT IN", 4, |row| row.rate(|rates| rates.in_packets_per_s, packet_rate)),
    Column::number("PKT OUT", 4, |row| row.rate(|rates| rates.out_packets_per_s, packet_rate)),
    Column::number("FACES", 3, |row| row.faces.clone()),
    Column::number("PIT", 3, |row| row.pit.clone()),
    Column::number("DROPS", 2, |row| row.drops.clone()),
    Column::text("FINDING", 0, |row| row.finding.clone()),
];

/// A face as a line.
struct FaceRow {
    face: FaceSummary,
    leads_to: String,
}

impl FaceRow {
    fn rate(&self, of: fn(&Rates) -> f64) -> String {
        self.face.rates.as_ref().map_or_else(|| "-".to_owned(), |rates| bits(of(rates)))
    }
}

const FACE_COLUMNS: &[Column<FaceRow>] = &[
    Column::number("FACE", 0, |row| row.face.id.to_string()),
    Column::text("STATE", 1, |row| row.face.state.clone()),
    Column::text("REMOTE", 0, |row| row.face.process.clone().unwrap_or_else(|| row.face.remote.clone())),
    Column::text("LEADS TO", 0, |row| row.leads_to.clone()),
    Column::number("IN", 0, |row| row.rate(|rates| rates.in_bits_per_s)),
    Column::number("OUT", 0, |row| row.rate(|rates| rates.out_bits_per_s)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_network::{
        reading::{Problem, Reason},
        summary::Summary,
    };
    use std::time::Duration;

    fn face(id: u64, local: &str, remote: &str, state: &str) -> FaceSummary {
        let rates = Some(Rates { in_bits_per_s: 1_500_000.0, ..Rates::default() });
        let (local, remote, state) = (local.to_owned(), remote.to_owned(), state.to_owned());
        FaceSummary { id, local, remote, state, rates, ..FaceSummary::default() }
    }

    fn summary(face: FaceSummary) -> Summary {
        Summary {
            version: "0.1.0".into(),
            host: "far".into(),
            pit_capacity: 100,
            faces: vec![face],
            ..Summary::default()
        }
        .bounded()
    }

    fn view() -> AllView {
        let (a, b) = ("udp4://192.0.2.1:6363", "udp4://192.0.2.2:6363");
        let said = [
            ("campus", Ok(summary(face(300, a, b, "up")))),
            ("home", Err(Problem::new(Reason::Unreachable, "http://home:9695 cannot be reached"))),
            ("lab", Ok(summary(face(301, b, a, "down")))),
        ];
        let watched = said.map(|(name, said)| {
            let mut watch = Watch::new(name, format!("http://{name}:9695"));
            watch.push(Duration::ZERO, said);
            watch.shown().clone()
        });
        let mut view = AllView::new(&[]);
        view.take(Network::of(watched.into()));
        view.selected = "campus".to_owned();
        view
    }

    fn lines(view: &mut AllView, width: usize) -> Vec<String> {
        view.draw(12, width).text()
    }

    #[test]
    fn the_worst_router_is_first_and_says_why() {
        let shown = lines(&mut view(), 140);
        assert_eq!(shown[0], "3 routers: 1 trouble, 1 unknown, 1 well");
        let cells = |line: &str| {
            line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(
            cells(&shown[2]),
            ["home", "unknown", "-", "-", "-", "-", "-", "-", "-", "http://home:9695 cannot be reached"]
        );
        assert_eq!(cells(&shown[3])[..4], ["lab", "trouble", "1.5 Mbit/s", "0 bit/s"]);
        assert!(shown[3].ends_with("face 301 to udp4://192.0.2.1:6363 is down"), "{}", shown[3]);
        assert!(shown[4].starts_with("> campus  well"), "{}", shown[4]);
        let narrow = lines(&mut view(), 60);
        assert!(
            narrow.iter().all(|line| line.chars().count() <= 60) && narrow[2].contains("http://home"),
            "{narrow:?}"
        );
    }

    #[test]
    fn keys_select_open_and_leave() {
        let mut view = view();
        view.fulfil(Wish::Scroll(-1));
        assert!(lines(&mut view, 140)[3].starts_with("> lab"));
        view.fulfil(Wish::Open);
        let shown = lines(&mut view, 140);
        assert_eq!(shown[0], "lab: trouble   http://lab:9695");
        assert!(shown.iter().any(|line| line == "trouble: face 301 to udp4://192.0.2.1:6363 is down"), "{shown:?}");
        assert!(shown.iter().any(|line| line.contains("udp4://192.0.2.1:6363  campus")), "{shown:?}");
        assert!(view.fulfil(Wish::Back), "back to the list");
        view.fulfil(Wish::Sort);
        assert!(lines(&mut view, 140)[2].starts_with("  campus"));
        view.fulfil(Wish::First);
        assert!(lines(&mut view, 140)[2].starts_with("> campus"));
        view.fulfil(Wish::Help);
        assert!(lines(&mut view, 140).iter().any(|line| line.contains("select a router")));
        assert!(view.fulfil(Wish::Back), "the key closes the help");
        assert!(!view.fulfil(Wish::Back), "and the next one ends the program");
    }

    #[test]
    fn no_screen_is_too_small() {
        for (height, width) in [(1, 1), (2, 3), (3, 10), (200, 300)] {
            let mut view = view();
            view.draw(height, width);
            view.fulfil(Wish::Open);
            view.draw(height, width);
        }
    }

    #[test]
    fn the_selected_router_stays_on_the_screen() {
        let watched = |index: usize| Watch::new(format!("r{index:02}"), "").shown().clone();
        let mut view = AllView::new(&[]);
        view.take(Network::of((0..40).map(watched).collect()));
        for _ in 0..60 {
            view.fulfil(Wish::Scroll(1));
            assert!(lines(&mut view, 80).iter().any(|line| line.starts_with("> r")));
        }
        assert!(lines(&mut view, 80).iter().any(|line| line.starts_with("> r39")));
    }
}
