//! The screen of `namewire top`: what it shows, and how keys change it. It knows no terminal and no router.
//!
//! ```text
//!   version, uptime, place of the router            (or that there is no connection)
//!   packets per second
//!   hits, sizes of tables, Content Store, PIT       (from 16 lines on)
//!   faces, the busiest first, as many as there is room for
//!   drops that rose within ten seconds              (from 12 lines on, at most a quarter of the screen)
//!   keys
//! ```

use super::rates::{DropRate, FaceRates, History, Rates, Sample};
use crate::{
    columns::{self, Column, Fitted, GAP},
    quantity,
};
use namewire_packet::nfd::{FaceState, FaceStatus};
use ratatui::{
    Frame,
    layout::{Alignment, Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    symbols,
    text::Line,
    widgets::{Block, Clear, LineGauge, Paragraph, Row, Table},
};

/// Screens with fewer lines have no gauges.
const GAUGES_HEIGHT_MIN: u16 = 16;
/// Screens with fewer lines show no drops.
const DROPS_HEIGHT_MIN: u16 = 12;

/// Lines of fewer characters have short forms.
const WIDE_MIN: u16 = 72;

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

fn bit_rate(bytes_per_second: f64) -> String {
    quantity::scaled(bytes_per_second * 8.0, "bit/s")
}

fn packet_rate(packets_per_second: f64) -> String {
    quantity::scaled(packets_per_second, "/s")
}

fn state(face: &FaceRow) -> String {
    face.status.state.map_or("-", FaceState::word).to_owned()
}

const COLUMNS: &[Column<FaceRow>] = &[
    Column { heading: "ID", rank: 0, is_number: true, cell: |face| face.status.face_id.to_string() },
    Column { heading: "STATE", rank: 1, is_number: false, cell: state },
    Column { heading: "REMOTE", rank: 0, is_number: false, cell: |face| face.status.uri.clone() },
    Column { heading: "IN", rank: 0, is_number: true, cell: |face| face.rate_text(|rates| rates.in_bytes, bit_rate) },
    Column { heading: "OUT", rank: 0, is_number: true, cell: |face| face.rate_text(|rates| rates.out_bytes, bit_rate) },
    Column {
        heading: "PKT IN",
        rank: 2,
        is_number: true,
        cell: |face| face.rate_text(|rates| rates.in_packets, packet_rate),
    },
    Column {
        heading: "PKT OUT",
        rank: 2,
        is_number: true,
        cell: |face| face.rate_text(|rates| rates.out_packets, packet_rate),
    },
    Column {
        heading: "TOTAL IN",
        rank: 3,
        is_number: true,
        cell: |face| quantity::bytes(face.status.counters.n_in_bytes),
    },
    Column {
        heading: "TOTAL OUT",
        rank: 3,
        is_number: true,
        cell: |face| quantity::bytes(face.status.counters.n_out_bytes),
    },
    Column { heading: "PERSISTENCY", rank: 4, is_number: false, cell: |face| face.status.face_persistency.to_string() },
    Column { heading: "LOCAL", rank: 5, is_number: false, cell: |face| face.status.local_uri.clone() },
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
            Wish::Other => {}
            Wish::Quit => return false,
        }
        true
    }

    pub(super) fn draw(&mut self, frame: &mut Frame) {
        let area = frame.area();
        let gauges = if area.height >= GAUGES_HEIGHT_MIN { 3 } else { 0 };
        let drops = match self.rates.drops.len() as u16 {
            0 => 0,
            _ if area.height < DROPS_HEIGHT_MIN => 0,
            count => (count + 1).min(area.height / 4),
        };
        let heights = [2, gauges, 0, drops, 1].map(Constraint::Length);
        let [head, gauges_area, faces, drops_area, keys] =
            Layout::vertical([heights[0], heights[1], Constraint::Fill(1), heights[3], heights[4]]).areas(area);
        self.draw_head(frame, head);
        if gauges > 0 {
            self.draw_gauges(frame, gauges_area);
        }
        self.draw_faces(frame, faces);
        if drops > 0 {
            draw_drops(frame, drops_area, &self.rates.drops);
        }
        self.draw_keys(frame, keys);
        if self.has_help {
            draw_help(frame, area);
        }
    }

    fn draw_head(&self, frame: &mut Frame, area: Rect) {
        let status = &self.latest.status;
        let [first, second] = Layout::vertical([Constraint::Length(1); 2]).areas(area);
        let uptime = quantity::ms(status.current_timestamp_ms.saturating_sub(status.start_timestamp_ms));
        let title = format!("{}  up {uptime}  {}", status.nfd_version, self.place);
        let line = match &self.lost {
            None => Line::styled(title, Modifier::BOLD),
            Some(why) => Line::styled(
                format!("no connection, trying again: {why}"),
                Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
            ),
        };
        frame.render_widget(Paragraph::new(line), first);
        frame.render_widget(Paragraph::new(self.rates_line(area.width)), second);
    }

    fn rates_line(&self, width: u16) -> String {
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

    fn draw_gauges(&self, frame: &mut Frame, area: Rect) {
        let [sizes, store, pit] = Layout::vertical([Constraint::Length(1); 3]).areas(area);
        let (fib, choices) = (self.latest.status.n_fib_entries, self.latest.strategy_choices);
        let text = format!("Hits {}  FIB {fib} entries  strategy choices {choices}", self.hits());
        frame.render_widget(Paragraph::new(text), sizes);
        let entries = self.latest.status.n_cs_entries;
        match &self.latest.cs_usage {
            None => frame.render_widget(Paragraph::new(format!("Content Store  {entries} packets")), store),
            Some(usage) => {
                let (now, most) = (quantity::bytes(usage.bytes), quantity::bytes(usage.capacity_bytes));
                let label = format!("Content Store  {now} of {most}, {entries} packets");
                draw_gauge(frame, store, label, usage.bytes, usage.capacity_bytes);
            }
        }
        match self.latest.pit {
            None => {
                let text = format!("PIT            {} entries", self.latest.status.n_pit_entries);
                frame.render_widget(Paragraph::new(text), pit);
            }
            Some((held, capacity)) => {
                draw_gauge(frame, pit, format!("PIT            {held} of {capacity} entries"), held, capacity);
            }
        }
    }

    fn draw_faces(&mut self, frame: &mut Frame, area: Rect) {
        let rows = self.sorted_faces();
        self.page_rows = usize::from(area.height.saturating_sub(1));
        self.first_row = self.first_row.min(rows.len().saturating_sub(self.page_rows));
        let shown: Vec<FaceRow> = rows.into_iter().skip(self.first_row).take(self.page_rows).collect();
        let fitted = shrunk(columns::fit(COLUMNS, &shown, Some(area.width.into())), area.width.into());
        let line = |row: usize| fitted.iter().map(move |column| cell(column, &column.cells[row]));
        let heading = Row::new(fitted.iter().map(|column| cell(column, column.heading)));
        let down = Style::new().fg(Color::Red);
        let style = |face: &FaceRow| if face.status.state == Some(FaceState::Down) { down } else { Style::new() };
        let lines = shown.iter().enumerate().map(|(row, face)| Row::new(line(row)).style(style(face)));
        let widths = fitted.iter().map(|column| Constraint::Length(column.width as u16));
        let table = Table::new(lines, widths)
            .header(heading.style(Style::new().add_modifier(Modifier::REVERSED)))
            .column_spacing(GAP as u16);
        frame.render_widget(table, area);
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

    fn draw_keys(&self, frame: &mut Frame, area: Rect) {
        let count = self.latest.faces.len();
        let (first, last) = (self.first_row + 1, (self.first_row + self.page_rows).min(count));
        let place = if last < count || first > 1 { format!(", {first} to {last}") } else { String::new() };
        let sort = if area.width < WIDE_MIN { String::new() } else { format!("s sort: {}  ", self.sort.word()) };
        let text = format!("q quit  {sort}? help");
        let counted = format!("{count} faces{place}");
        frame.render_widget(Paragraph::new(text), area);
        frame.render_widget(Paragraph::new(counted).alignment(Alignment::Right), area);
    }
}

/// The columns in a line that is too short even for the most important ones: the text columns become shorter.
fn shrunk(mut fitted: Vec<Fitted>, width: usize) -> Vec<Fitted> {
    let total = fitted.iter().map(|column| column.width).sum::<usize>() + GAP * fitted.len().saturating_sub(1);
    if let Some(text) = fitted.iter_mut().find(|column| column.heading == "REMOTE") {
        text.width = text.width.saturating_sub(total.saturating_sub(width)).max(1);
    }
    fitted
}

fn cell(column: &Fitted, text: &str) -> Line<'static> {
    let alignment = if column.is_number { Alignment::Right } else { Alignment::Left };
    Line::from(text.to_owned()).alignment(alignment)
}

fn draw_gauge(frame: &mut Frame, area: Rect, label: String, part: u64, whole: u64) {
    let ratio = if whole == 0 { 0.0 } else { (part as f64 / whole as f64).clamp(0.0, 1.0) };
    let gauge = LineGauge::default()
        .label(label)
        .ratio(ratio)
        .filled_symbol(symbols::line::THICK_HORIZONTAL)
        .unfilled_symbol(symbols::line::HORIZONTAL)
        .filled_style(Style::new().fg(if ratio > 0.9 { Color::Yellow } else { Color::Green }));
    frame.render_widget(gauge, area);
}

fn draw_drops(frame: &mut Frame, area: Rect, drops: &[DropRate]) {
    let heading = Line::styled("DROPS in 10 s, and in all", Modifier::REVERSED);
    let room = usize::from(area.height.saturating_sub(1));
    let lines =
        drops.iter().take(room).map(|drop| Line::from(format!("{:>8}  {:>8}  {}", drop.rise, drop.total, drop.reason)));
    frame.render_widget(Paragraph::new(std::iter::once(heading).chain(lines).collect::<Vec<_>>()), area);
}

fn draw_help(frame: &mut Frame, area: Rect) {
    let (width, height) = (46.min(area.width), (HELP.len() as u16 + 2).min(area.height));
    let place = Rect::new((area.width - width) / 2, (area.height - height) / 2, width, height);
    frame.render_widget(Clear, place);
    let text: Vec<Line> = HELP.iter().map(|line| Line::from(*line)).collect();
    frame.render_widget(Paragraph::new(text).block(Block::bordered().title("Keys")), place);
}

#[cfg(test)]
mod tests {
    use super::{super::rates::tests::face, *};
    use namewire_packet::nfd::{CsInfo, CsUsage, FaceCounters, ForwarderStatus};
    use ratatui::{Terminal, backend::TestBackend};
    use std::{collections::BTreeMap, time::Duration};

    /// Of a router with this number of faces. Face 300 + n has sent n packets of 1000 bytes each second; the second is
    /// down.
    fn sample(second: u64, faces: u64) -> Sample {
        let status = |number: u64| {
            let counters = FaceCounters {
                n_in_data: number * second,
                n_in_bytes: number * second * 1000,
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
                n_in_interests: second * 1200,
                n_out_data: second * 7,
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
    fn screen(view: &mut View, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect()
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
