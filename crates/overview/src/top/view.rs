//! The screen of `namewire top`: its contents, and how keys change them. This module uses no terminal and no router.
//!
//! ```text
//!   version, uptime, place of the router            (or that there is no connection)
//!   packets per second
//!   hits, sizes of tables, Content Store, PIT       (from 16 lines on)
//!   faces, the busiest first, as many as there is room for
//!   drops that rose within ten seconds              (from 12 lines on, at most a quarter of the screen)
//!   keys
//! ```

use super::{
    rates::{FaceRates, History, Rates, Sample},
    screen::{Look, Screen},
};
use console::{Alignment, measure_text_width, pad_str, pad_str_with};
use namewire_packet::nfd::{FaceState, FaceStatus};
use namewire_printing::{
    columns::{self, Column, Fitted, GAP},
    quantity,
};
use std::{iter, ops::Range};

const HEAD_HEIGHT: usize = 2;
const GAUGES_HEIGHT: usize = 3;
/// Screens with fewer lines have no gauges.
const GAUGES_HEIGHT_MIN: usize = 16;
/// Screens with fewer lines show no drops.
const DROPS_HEIGHT_MIN: usize = 12;

/// Lines of fewer characters have short forms.
const WIDE_MIN: usize = 72;
/// The box around the help.
const HELP_WIDTH: usize = 46;

const HELP: &[&str] = &[
    "s            sort by the next column",
    "Up, Down     scroll by one line (also k, j)",
    "PgUp, PgDn   scroll by a page",
    "Home, End    to the first or last face",
    "?            this help; any key closes it",
    "q, Ctrl-C    quit",
    "",
    "Rates are those of the last ten seconds.",
];

/// What the user wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Sort,
    Scroll(isize),
    Page(isize),
    First,
    Last,
    Help,
    /// Show more of what is selected.
    Open,
    /// Leave what was opened, or the program.
    Back,
    Quit,
    /// A key without a meaning.
    Other,
}

/// What the faces are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sort {
    #[default]
    Traffic,
    In,
    Out,
    Id,
    Remote,
}

impl Sort {
    fn next(self) -> Self {
        match self {
            Sort::Traffic => Sort::In,
            Sort::In => Sort::Out,
            Sort::Out => Sort::Id,
            Sort::Id => Sort::Remote,
            Sort::Remote => Sort::Traffic,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Sort::Traffic => "traffic",
            Sort::In => "in",
            Sort::Out => "out",
            Sort::Id => "number",
            Sort::Remote => "remote",
        }
    }
}

/// A face with its rates.
struct FaceRow {
    status: FaceStatus,
    rates: Option<FaceRates>,
}

impl FaceRow {
    fn rate(&self, of: fn(&FaceRates) -> f64) -> f64 {
        self.rates.as_ref().map_or(0.0, of)
    }

    fn rate_text(&self, of: fn(&FaceRates) -> f64, text: fn(f64) -> String) -> String {
        self.rates.as_ref().map_or_else(|| "-".to_owned(), |rates| text(of(rates)))
    }
}

pub(super) fn bit_rate(bytes_per_second: f64) -> String {
    quantity::scaled(bytes_per_second * 8.0, "bit/s")
}

pub(super) fn packet_rate(packets_per_second: f64) -> String {
    quantity::scaled(packets_per_second, "/s")
}

const COLUMNS: &[Column<FaceRow>] = &[
    Column::number("ID", 0, |face| face.status.face_id.to_string()),
    Column::text("STATE", 1, |face| face.status.state.map_or("-", FaceState::word).to_owned()),
    Column::text("REMOTE", 0, |face| face.status.uri.clone()),
    Column::number("IN", 0, |face| face.rate_text(|rates| rates.in_bytes, bit_rate)),
    Column::number("OUT", 0, |face| face.rate_text(|rates| rates.out_bytes, bit_rate)),
    Column::number("PKT IN", 2, |face| face.rate_text(|rates| rates.in_packets, packet_rate)),
    Column::number("PKT OUT", 2, |face| face.rate_text(|rates| rates.out_packets, packet_rate)),
    Column::number("TOTAL IN", 3, |face| quantity::bytes(face.status.counters.in_bytes)),
    Column::number("TOTAL OUT", 3, |face| quantity::bytes(face.status.counters.out_bytes)),
    Column::text("PERSISTENCY", 4, |face| face.status.face_persistency.to_string()),
    Column::text("LOCAL", 5, |face| face.status.local_uri.clone()),
];

/// Everything that the screen shows.
#[derive(Default)]
pub(super) struct View {
    place: String,
    history: History,
    latest: Sample,
    rates: Rates,
    /// Why there is no connection at present.
    lost: Option<String>,
    sort: Sort,
    first_row: usize,
    /// Faces that the last screen had room for.
    page_rows: usize,
    has_help: bool,
}

impl View {
    /// Nothing yet of the router at `place`.
    pub(super) fn new(place: String) -> Self {
        View { place, ..View::default() }
    }

    pub(super) fn take_sample(&mut self, sample: Sample) {
        self.history.push(&sample);
        self.rates = self.history.rates();
        self.latest = sample;
        self.lost = None;
    }

    pub(super) fn lose_connection(&mut self, why: String) {
        self.lost = Some(why);
    }

    /// Does what the user wants; false if that is to quit.
    pub(super) fn fulfil(&mut self, wish: Wish) -> bool {
        if self.has_help && wish != Wish::Quit {
            self.has_help = false;
            return true;
        }
        match wish {
            Wish::Sort => self.sort = self.sort.next(),
            Wish::Scroll(rows) => self.first_row = self.first_row.saturating_add_signed(rows),
            Wish::Page(pages) => {
                self.first_row = self.first_row.saturating_add_signed(pages * self.page_rows.max(1) as isize);
            }
            Wish::First => self.first_row = 0,
            Wish::Last => self.first_row = usize::MAX,
            Wish::Help => self.has_help = true,
            Wish::Other | Wish::Open => {}
            Wish::Quit | Wish::Back => return false,
        }
        true
    }

    pub(super) fn draw(&mut self, height: usize, width: usize) -> Screen {
        let mut screen = Screen::new(height, width);
        let height = screen.height();
        let gauges = if height >= GAUGES_HEIGHT_MIN { GAUGES_HEIGHT } else { 0 };
        let drops = match self.rates.drops.len() {
            0 => 0,
            _ if height < DROPS_HEIGHT_MIN => 0,
            count => (count + 1).min(height / 4),
        };
        let keys = height.saturating_sub(1);
        let faces = HEAD_HEIGHT + gauges..keys.saturating_sub(drops);
        self.draw_head(&mut screen);
        if gauges > 0 {
            self.draw_gauges(&mut screen, HEAD_HEIGHT);
        }
        self.draw_drops(&mut screen, faces.end..faces.end + drops);
        self.draw_faces(&mut screen, faces);
        if keys >= HEAD_HEIGHT {
            self.draw_keys(&mut screen, keys);
        }
        if self.has_help {
            draw_help(&mut screen, HELP);
        }
        screen
    }

    fn draw_head(&self, screen: &mut Screen) {
        let status = &self.latest.status;
        let uptime = quantity::ms(status.current_timestamp_ms.saturating_sub(status.start_timestamp_ms));
        match &self.lost {
            None => {
                screen.put(0, 0, &format!("{}  up {uptime}  {}", status.nfd_version, self.place), Look::Bold);
            }
            Some(why) => screen.put(0, 0, &format!("no connection, trying again: {why}"), Look::BoldRed),
        }
        screen.put(1, 0, &self.rates_line(screen.width()), Look::Plain);
    }

    fn rates_line(&self, width: usize) -> String {
        let Rates { in_interests, out_interests, in_data, out_data, in_nacks, out_nacks, .. } = self.rates;
        if width < WIDE_MIN {
            let both = |ins, outs| format!("{}/{}", quantity::scaled(ins, ""), quantity::scaled(outs, ""));
            let (interests, data) = (both(in_interests, out_interests), both(in_data, out_data));
            return format!("I {interests} D {data} N {} /s, hits {}", both(in_nacks, out_nacks), self.hits());
        }
        let both = |ins, outs| format!("{} in {} out", quantity::scaled(ins, ""), quantity::scaled(outs, ""));
        let (interests, data) = (both(in_interests, out_interests), both(in_data, out_data));
        format!("Per second: Interests {interests}, Data {data}, Nacks {}", both(in_nacks, out_nacks))
    }

    /// Hits of the Content Store among its look-ups.
    fn hits(&self) -> String {
        self.rates.hit_share.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share * 100.0))
    }

    fn draw_gauges(&self, screen: &mut Screen, row: usize) {
        let (fib, choices) = (self.latest.status.n_fib_entries, self.latest.strategy_choices);
        let sizes = format!("Hits {}  FIB {fib} entries  strategy choices {choices}", self.hits());
        screen.put(row, 0, &sizes, Look::Plain);
        let entries = self.latest.status.n_cs_entries;
        match &self.latest.cs_usage {
            None => screen.put(row + 1, 0, &format!("Content Store  {entries} packets"), Look::Plain),
            Some(usage) => {
                let (now, most) = (quantity::bytes(usage.bytes), quantity::bytes(usage.capacity_bytes));
                let label = format!("Content Store  {now} of {most}, {entries} packets");
                draw_gauge(screen, row + 1, &label, usage.bytes, usage.capacity_bytes);
            }
        }
        match self.latest.pit {
            None => {
                let text = format!("PIT            {} entries", self.latest.status.n_pit_entries);
                screen.put(row + 2, 0, &text, Look::Plain);
            }
            Some((held, capacity)) => {
                let label = format!("PIT            {held} of {capacity} entries");
                draw_gauge(screen, row + 2, &label, held, capacity);
            }
        }
    }

    fn draw_faces(&mut self, screen: &mut Screen, mut rows: Range<usize>) {
        let faces = self.sorted_faces();
        self.page_rows = rows.len().saturating_sub(1);
        self.first_row = self.first_row.min(faces.len().saturating_sub(self.page_rows));
        let shown: Vec<FaceRow> = faces.into_iter().skip(self.first_row).take(self.page_rows).collect();
        let width = screen.width();
        let fitted = shrunk(columns::fit(COLUMNS, &shown, Some(width)), "REMOTE", width);
        if let Some(row) = rows.next() {
            let heading = line(fitted.iter().map(|column| (column, column.heading)));
            screen.put(row, 0, &pad_str(&heading, width, Alignment::Left, None), Look::Reversed);
        }
        for (number, (row, face)) in rows.zip(&shown).enumerate() {
            let is_down = face.status.state == Some(FaceState::Down);
            let text = line(fitted.iter().map(|column| (column, &column.cells[number][..])));
            screen.put(row, 0, &text, if is_down { Look::Red } else { Look::Plain });
        }
    }

    fn sorted_faces(&self) -> Vec<FaceRow> {
        let with_rates = |status: &FaceStatus| FaceRow {
            status: status.clone(),
            rates: self.rates.faces.get(&status.face_id).copied(),
        };
        let mut rows: Vec<FaceRow> = self.latest.faces.iter().map(with_rates).collect();
        let by = |of: fn(&FaceRates) -> f64| move |a: &FaceRow, b: &FaceRow| b.rate(of).total_cmp(&a.rate(of));
        // The sort is stable, and the faces come by number.
        match self.sort {
            Sort::Traffic => rows.sort_by(by(|rates| rates.in_bytes + rates.out_bytes)),
            Sort::In => rows.sort_by(by(|rates| rates.in_bytes)),
            Sort::Out => rows.sort_by(by(|rates| rates.out_bytes)),
            Sort::Id => rows.sort_by_key(|row| row.status.face_id),
            Sort::Remote => rows.sort_by(|a, b| a.status.uri.cmp(&b.status.uri)),
        }
        rows
    }

    fn draw_drops(&self, screen: &mut Screen, rows: Range<usize>) {
        let drops = self.rates.drops.iter();
        let lines = drops.map(|drop| (format!("{:>8}  {:>8}  {}", drop.rise, drop.total, drop.reason), Look::Plain));
        let heading = ("DROPS in 10 s, and in all".to_owned(), Look::Reversed);
        for (row, (text, look)) in rows.zip(iter::once(heading).chain(lines)) {
            screen.put(row, 0, &text, look);
        }
    }

    fn draw_keys(&self, screen: &mut Screen, row: usize) {
        let count = self.latest.faces.len();
        let (first, last) = (self.first_row + 1, (self.first_row + self.page_rows).min(count));
        let place = if last < count || first > 1 { format!(", {first} to {last}") } else { String::new() };
        let sort = if screen.width() < WIDE_MIN { String::new() } else { format!("s sort: {}  ", self.sort.word()) };
        let counted = format!("{count} faces{place}");
        let column = screen.width().saturating_sub(counted.len());
        screen.put(row, 0, &format!("q quit  {sort}? help"), Look::Plain);
        screen.put(row, column, &counted, Look::Plain);
    }
}

/// The columns in a line that is too short even for the most important ones: the elastic one becomes shorter.
pub(super) fn shrunk(mut fitted: Vec<Fitted>, elastic: &str, width: usize) -> Vec<Fitted> {
    let total = fitted.iter().map(|column| column.width).sum::<usize>() + GAP * fitted.len().saturating_sub(1);
    if let Some(text) = fitted.iter_mut().find(|column| column.heading == elastic) {
        text.width = text.width.saturating_sub(total.saturating_sub(width)).max(1);
    }
    fitted
}

/// Cells beside each other, each as wide as its column.
pub(super) fn line<'a>(cells: impl Iterator<Item = (&'a Fitted, &'a str)>) -> String {
    let padded = |(column, text): (&'a Fitted, &'a str)| {
        let alignment = if column.is_number { Alignment::Right } else { Alignment::Left };
        pad_str(text, column.width, alignment, Some(""))
    };
    cells.map(padded).collect::<Vec<_>>().join(&" ".repeat(GAP))
}

/// A label, and a line to the end of the row that is thick as far as the part goes.
fn draw_gauge(screen: &mut Screen, row: usize, label: &str, part: u64, whole: u64) {
    let ratio = if whole == 0 { 0.0 } else { (part as f64 / whole as f64).clamp(0.0, 1.0) };
    let begin = measure_text_width(label) + 1;
    let room = screen.width().saturating_sub(begin);
    let filled = (room as f64 * ratio) as usize;
    screen.put(row, 0, label, Look::Plain);
    screen.put(row, begin, &"━".repeat(filled), if ratio > 0.9 { Look::Yellow } else { Look::Green });
    screen.put(row, begin + filled, &"─".repeat(room - filled), Look::Plain);
}

/// A box above the middle of the screen.
pub(super) fn draw_help(screen: &mut Screen, help: &[&str]) {
    let (width, height) = (HELP_WIDTH.min(screen.width()), (help.len() + 2).min(screen.height()));
    let (row, column) = ((screen.height() - height) / 2, (screen.width() - width) / 2);
    let inside = width.saturating_sub(2);
    let lines = help.iter().take(height.saturating_sub(2));
    let lines = lines.map(|line| format!("│{}│", pad_str(line, inside, Alignment::Left, Some(""))));
    let first = format!("┌{}┐", pad_str_with("Keys", inside, Alignment::Left, Some(""), '─'));
    let last = format!("└{}┘", "─".repeat(inside));
    for (row, line) in (row..).zip(iter::once(first).chain(lines).chain(iter::once(last))) {
        screen.put(row, column, &line, Look::Plain);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::rates::tests::face, *};
    use namewire_packet::nfd::{CsInfo, CsUsage, FaceCounters, ForwarderStatus, PacketCounts};
    use std::{collections::BTreeMap, time::Duration};

    /// Of a router with this number of faces. Face 300 + n has sent n packets of 1000 bytes each second; the second is
    /// down.
    fn sample(second: u64, faces: u64) -> Sample {
        let status = |number: u64| {
            let counters = FaceCounters {
                packets: PacketCounts { in_data: number * second, ..PacketCounts::default() },
                in_bytes: number * second * 1000,
                ..FaceCounters::default()
            };
            let state = if number == 1 { FaceState::Down } else { FaceState::Up };
            let status = face(300 + number, &format!("udp4://192.0.2.{number}:6363"), counters);
            FaceStatus { state: Some(state), ..status }
        };
        Sample {
            taken: Duration::from_secs(second),
            status: ForwarderStatus {
                nfd_version: "namewire-0.1.0".to_owned(),
                current_timestamp_ms: 62_000,
                packets: PacketCounts { in_interests: second * 1200, out_data: second * 7, ..PacketCounts::default() },
                n_fib_entries: 12,
                n_cs_entries: 34,
                ..ForwarderStatus::default()
            },
            faces: (0..faces).map(status).collect(),
            cs: CsInfo { n_hits: second * 3, n_misses: second, ..CsInfo::default() },
            cs_usage: Some(CsUsage { bytes: 16 << 20, capacity_bytes: 64 << 20, ..CsUsage::default() }),
            pit: Some((5, 1000)),
            drops: Some(BTreeMap::from([("engine.no-route".to_owned(), second * 2)])),
            strategy_choices: 4,
        }
    }

    fn view(faces: u64) -> View {
        let mut view = View::new("unix:///run/nfd/nfd.sock".to_owned());
        view.take_sample(sample(0, faces));
        view.take_sample(sample(2, faces));
        view
    }

    /// The lines of a screen of this size.
    fn screen(view: &mut View, width: usize, height: usize) -> Vec<String> {
        let lines = view.draw(height, width).text();
        assert!(lines.len() == height && lines.iter().all(|line| measure_text_width(line) <= width));
        lines
    }

    #[test]
    fn an_ordinary_screen_shows_everything() {
        let lines = screen(&mut view(3), 80, 24);
        assert_eq!(lines[0], "namewire-0.1.0  up 1 min 2 s  unix:///run/nfd/nfd.sock");
        assert_eq!(lines[1], "Per second: Interests 1.2 k in 0 out, Data 0 in 7 out, Nacks 0 in 0 out");
        assert_eq!(lines[2], "Hits 75 %  FIB 12 entries  strategy choices 4");
        assert!(lines[3].starts_with("Content Store  16.0 MiB of 64.0 MiB, 34 packets ━"), "{}", lines[3]);
        assert!(lines[4].starts_with("PIT            5 of 1000 entries ─"), "{}", lines[4]);
        let heading: Vec<&str> = lines[5].split_whitespace().collect();
        assert_eq!(heading, ["ID", "STATE", "REMOTE", "IN", "OUT", "PKT", "IN", "PKT", "OUT"], "by rank");
        let cells =
            |line: &String| line.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect::<Vec<_>>().join("|");
        assert_eq!(cells(&lines[6]), "302|up|udp4://192.0.2.2:6363|16.0 kbit/s|0 bit/s|2 /s|0 /s", "the busiest first");
        assert_eq!(cells(&lines[7]), "301|down|udp4://192.0.2.1:6363|8.0 kbit/s|0 bit/s|1 /s|0 /s");
        assert_eq!(lines[21], "DROPS in 10 s, and in all");
        assert_eq!(lines[22], "       4         4  engine.no-route");
        assert!(lines[23].starts_with("q quit  s sort: traffic  ? help") && lines[23].ends_with("3 faces"));
    }

    #[test]
    fn looks_show_what_matters() {
        let mut view = view(3);
        let screen = view.draw(24, 80);
        let looks = |row| screen.looks(row);
        assert_eq!((looks(0), looks(1)), (vec![Look::Bold], vec![Look::Plain]));
        assert_eq!(looks(3), [Look::Plain, Look::Green, Look::Plain], "a quarter of the Content Store is taken");
        assert_eq!((looks(5), looks(21)), (vec![Look::Reversed], vec![Look::Reversed]), "the headings");
        assert_eq!((looks(6), looks(7)), (vec![Look::Plain], vec![Look::Red]), "the second face is down");
        view.latest.pit = Some((950, 1000));
        view.lose_connection("refused".to_owned());
        let screen = view.draw(24, 80);
        assert_eq!(screen.looks(0), [Look::BoldRed]);
        assert_eq!(screen.looks(4), [Look::Plain, Look::Yellow, Look::Plain], "the PIT is nearly full");
    }

    #[test]
    fn the_help_is_a_box_above_the_faces() {
        let mut view = view(20);
        view.fulfil(Wish::Help);
        let lines = screen(&mut view, 80, 24);
        let edge = |from: &str, to: &str| lines.iter().filter(|l| l.contains(from) && l.contains(to)).count();
        assert_eq!((edge("┌Keys───", "───┐"), edge("└───", "───┘"), edge("│", "│")), (1, 1, HELP.len()));
        assert_eq!(lines[12], "313  up     udp4:│?            this help; any key closes it   │/s     0 /s");
    }

    #[test]
    fn a_small_screen_shows_the_most_important() {
        let lines = screen(&mut view(20), 40, 10);
        assert_eq!(lines[1], "I 1.2 k/0 D 0/7 N 0/0 /s, hits 75 %");
        assert_eq!(lines[2].split_whitespace().collect::<Vec<_>>(), ["ID", "REMOTE", "IN", "OUT"]);
        assert_eq!(lines[3], "319  udp4://192.0  152.0 kbit/s  0 bit/s");
        assert!(lines.iter().all(|line| !line.contains("DROPS") && !line.contains("Content Store")));
        assert_eq!(lines[9], "q quit  ? help          20 faces, 1 to 6");
    }

    #[test]
    fn a_large_screen_shows_all_columns() {
        let lines = screen(&mut view(100), 200, 60);
        let heading = lines.iter().find(|line| line.contains("REMOTE")).unwrap();
        for column in COLUMNS {
            assert!(heading.contains(column.heading), "{heading}");
        }
        assert!(lines[59].ends_with("100 faces, 1 to 51"), "{}", lines[59]);
    }

    #[test]
    fn keys_sort_scroll_and_help() {
        let mut view = view(20);
        let first = |view: &mut View| screen(view, 80, 24)[6][..3].to_owned();
        assert_eq!(first(&mut view), "319");
        for expected in ["319", "300", "300", "300", "319"] {
            assert!(view.fulfil(Wish::Sort));
            assert_eq!(first(&mut view), expected, "{:?}", view.sort);
        }
        view.fulfil(Wish::Scroll(1));
        assert_eq!(first(&mut view), "318");
        view.fulfil(Wish::Last);
        assert_eq!(first(&mut view), "314", "the last page is full");
        view.fulfil(Wish::Page(-1));
        view.fulfil(Wish::First);
        view.fulfil(Wish::Scroll(-1));
        assert_eq!(first(&mut view), "319");
        view.fulfil(Wish::Help);
        assert!(screen(&mut view, 80, 24).iter().any(|line| line.contains("sort by the next column")));
        view.fulfil(Wish::Scroll(1));
        assert_eq!(first(&mut view), "319", "the key closed the help only");
        assert!(!view.fulfil(Wish::Quit));
    }

    #[test]
    fn a_lost_connection_is_said_until_it_is_back() {
        let mut view = view(1);
        view.lose_connection("refused".to_owned());
        assert_eq!(screen(&mut view, 80, 24)[0], "no connection, trying again: refused");
        view.take_sample(sample(3, 1));
        assert!(screen(&mut view, 80, 24)[0].starts_with("namewire"));
    }

    #[test]
    fn other_forwarders_have_fewer_gauges_and_no_drops() {
        let mut view = View::new("unix:///run/nfd/nfd.sock".to_owned());
        let of_nfd = |second| Sample { cs_usage: None, pit: None, drops: None, ..sample(second, 1) };
        view.take_sample(of_nfd(0));
        view.take_sample(of_nfd(2));
        let lines = screen(&mut view, 80, 24);
        assert_eq!((&lines[3][..], &lines[4][..]), ("Content Store  34 packets", "PIT            0 entries"));
        assert!(lines.iter().all(|line| !line.contains("DROPS")));
    }

    #[test]
    fn no_screen_is_too_small() {
        for (width, height) in [(1, 1), (2, 3), (10, 4), (300, 2)] {
            let mut view = view(5);
            view.fulfil(Wish::Help);
            screen(&mut view, width, height);
        }
    }
}
