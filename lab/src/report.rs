//! Shows records: as text on the terminal and as one self-contained HTML page (no script, no external resource), with
//! the figures of others beside ours.

use std::fmt::Write as _;

use crate::bar_chart::{Bar, bar_chart};
use crate::peers::{self, Peers};
use crate::record::{Record, Row};

/// The record as text for a terminal; figures of others follow ours for the same case and metric.
///
/// # Errors
/// If a data file of peers is malformed.
pub fn text(record: &Record) -> serde_json::Result<String> {
    let peers = peers::for_experiment(&record.experiment)?;
    let mut out = format!("{}: {}\n", record.experiment, record.question);
    let width = |text: fn(&Row) -> &str| record.rows.iter().map(|row| text(row).chars().count()).max().unwrap_or(0);
    let [case_width, subject_width, metric_width] =
        [width(|row| &row.case), width(|row| &row.subject), width(|row| &row.metric)];
    for (place, row) in record.rows.iter().enumerate() {
        let value = match (&row.value, &row.refused) {
            (Some(value), _) => {
                format!("{:>14} {:14} ±{:.0} %", figure(value.median), row.unit, value.spread_percent / 2.0)
            }
            (None, reason) => format!("refused: {}", reason.as_deref().unwrap_or("no reason given")),
        };
        let remark = row.remark.as_ref().map(|remark| format!("  ({remark})")).unwrap_or_default();
        let (case, subject, metric) = (&row.case, &row.subject, &row.metric);
        let _ = writeln!(out, "  {case:case_width$} {subject:subject_width$} {metric:metric_width$} {value}{remark}");
        let is_like = |other: &Row| (&other.case, &other.metric, &other.unit) == (&row.case, &row.metric, &row.unit);
        if record.rows[place + 1..].iter().any(is_like) {
            continue;
        }
        for (subject, value) in recorded(&peers, row) {
            let _ = writeln!(out, "    recorded: {subject}: {} {}", figure(value), row.unit);
        }
    }
    Ok(out)
}

/// The figures of others for the case, metric and unit of `like`.
fn recorded<'a>(peers: &'a [Peers], like: &Row) -> impl Iterator<Item = (&'a str, f64)> {
    peers
        .iter()
        .flat_map(|source| &source.figures)
        .filter(|figure| (&figure.case, &figure.metric, &figure.unit) == (&like.case, &like.metric, &like.unit))
        .flat_map(|figure| figure.values.iter().map(|(subject, &value)| (subject.as_str(), value)))
}

/// One HTML page of all `records`.
///
/// # Errors
/// If a data file of peers is malformed.
pub fn html(records: &[Record]) -> serde_json::Result<String> {
    let mut out = String::from(PAGE_START);
    for record in records {
        write_record(&mut out, record, &peers::for_experiment(&record.experiment)?);
    }
    out.push_str("</body></html>\n");
    Ok(out)
}

fn write_record(out: &mut String, record: &Record, peers: &[Peers]) {
    let machine = &record.machine;
    let tsc = machine.tsc_mhz.map_or_else(|| "TSC not available".to_owned(), |mhz| format!("TSC {mhz} MHz"));
    let _ = write!(
        out,
        "<h1>{}</h1><p class=\"question\">{}</p>\n<p>{}, {} CPUs, {} MiB, {}, {tsc}; commit {}; <code>{}</code>; {:.0} s.</p>\n",
        escaped(&record.experiment),
        escaped(&record.question),
        escaped(&machine.processor),
        machine.cpus,
        machine.memory_mib,
        escaped(&machine.kernel),
        escaped(&record.commit),
        escaped(&record.command),
        record.duration_s
    );
    write_list(out, &record.notes);
    let mut charted: Vec<(&str, &str)> = Vec::new();
    out.push_str("<div class=\"charts\">\n");
    for row in record.rows.iter().filter(|row| row.metric != "lost") {
        let key = (row.case.as_str(), row.metric.as_str());
        if !charted.contains(&key) {
            charted.push(key);
            write_chart(out, record, peers, row);
        }
    }
    out.push_str("</div>\n");
    write_table(out, record);
    for source in peers {
        let _ = writeln!(
            out,
            "<p class=\"source\">Light bars: {}. {} Machine: {}. {}</p>",
            escaped(&source.title),
            escaped(&source.source),
            escaped(&source.machine),
            escaped(&source.method)
        );
    }
}

fn write_chart(out: &mut String, record: &Record, peers: &[Peers], like: &Row) {
    let same = |case: &str, metric: &str, unit: &str| case == like.case && metric == like.metric && unit == like.unit;
    let ours = record.rows.iter().filter(|row| same(&row.case, &row.metric, &row.unit)).filter_map(|row| {
        let value = row.value.as_ref()?;
        Some(Bar {
            label: row.subject.clone(),
            value: value.median,
            range: Some((value.low, value.high)),
            is_ours: true,
        })
    });
    let theirs = recorded(peers, like).map(|(label, value)| Bar {
        label: format!("{label} (recorded)"),
        value,
        range: None,
        is_ours: false,
    });
    let bars: Vec<Bar> = ours.chain(theirs).collect();
    out.push_str(&bar_chart(&format!("{}: {}, {}", like.case, like.metric, like.unit), &bars));
}

fn write_table(out: &mut String, record: &Record) {
    out.push_str(
        "<table><tr><th>case</th><th>subject</th><th>metric</th><th>median</th><th>low</th><th>high</th>\
         <th>unit</th><th>repetitions</th><th>remark</th></tr>\n",
    );
    for row in &record.rows {
        let values = match &row.value {
            Some(value) => format!(
                "<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td><td class=\"n\">{}</td>",
                figure(value.median),
                figure(value.low),
                figure(value.high),
                escaped(&row.unit),
                value.samples.len()
            ),
            None => {
                let reason = row.refused.as_deref().unwrap_or("no reason given");
                format!("<td colspan=\"5\">refused: {}</td>", escaped(reason))
            }
        };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td>{values}<td>{}</td></tr>",
            escaped(&row.case),
            escaped(&row.subject),
            escaped(&row.metric),
            escaped(row.remark.as_deref().unwrap_or(""))
        );
    }
    out.push_str("</table>\n");
}

fn write_list(out: &mut String, lines: &[String]) {
    out.push_str("<ul>");
    for line in lines {
        let _ = write!(out, "<li>{}</li>", escaped(line));
    }
    out.push_str("</ul>\n");
}

/// A number with about four significant digits and a comma between thousands.
pub(crate) fn figure(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 1_000.0 || size == 0.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    let plain = format!("{value:.decimals$}");
    let (whole, rest) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let (sign, digits) = whole.split_at(whole.len() - whole.trim_start_matches('-').len());
    let mut grouped = String::from(sign);
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

/// Escapes text for HTML, also for attributes.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const PAGE_START: &str = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>namewire-lab</title><style>\
body{font:15px/1.45 system-ui,sans-serif;max-width:72em;margin:2em auto;padding:0 1em;color:#222}\
.question{font-size:1.2em}.charts{display:flex;flex-wrap:wrap;gap:1em}.source{color:#555}\
table{border-collapse:collapse;margin:1em 0}td,th{padding:.15em .6em;border-bottom:1px solid #ddd;text-align:left}\
td.n{text-align:right;font-variant-numeric:tabular-nums}svg text{font:12px system-ui,sans-serif;fill:#222}\
@media (prefers-color-scheme:dark){body{background:#181818;color:#ddd}svg text{fill:#ddd}.source{color:#aaa}td,th{border-color:#444}}\
</style></head><body>\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::machine::Machine;
    use crate::statistics::Summary;

    fn record() -> Record {
        let row = |metric: &str, value: Option<Summary>, refused: Option<&str>| Row {
            case: "unix-100".to_owned(),
            subject: "namewire <&>".to_owned(),
            metric: metric.to_owned(),
            unit: "per s".to_owned(),
            value,
            refused: refused.map(str::to_owned),
            remark: None,
        };
        Record {
            experiment: "router-sockets".to_owned(),
            question: "how many?".to_owned(),
            scale: "smoke".to_owned(),
            machine: Machine::describe(&Clock::calibrate()),
            commit: "abc".to_owned(),
            command: "namewire-lab run router-sockets".to_owned(),
            seed: 1,
            started_unix_s: 0,
            duration_s: 1.0,
            memory_peak_mib: None,
            rows: vec![
                row("exchanges", Summary::of(&[123_456.0, 130_000.0]), None),
                row("cpu", None, Some("3 ns measured")),
            ],
            headline: std::collections::BTreeMap::new(),
            notes: vec!["a note".to_owned()],
        }
    }

    #[test]
    fn numbers_are_grouped_and_short() {
        for (value, expected) in [
            (0.0, "0"),
            (0.1234, "0.123"),
            (12.345, "12.35"),
            (999.96, "1000.0"),
            (1_633_000.0, "1,633,000"),
            (-4_321.0, "-4,321"),
        ] {
            assert_eq!(figure(value), expected.replace("1000.0", "1,000.0"));
        }
    }

    #[test]
    fn the_page_holds_ours_and_theirs_and_nothing_from_outside() -> serde_json::Result<()> {
        let page = html(&[record()])?;
        for part in
            ["126,728", "ndn-rs (recorded)", "namewire &lt;&amp;&gt;", "refused: 3 ns measured", "a note", "<svg"]
        {
            assert!(page.contains(part), "{part} is missing");
        }
        for outside in ["<script", "src=", "href=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
        Ok(())
    }

    #[test]
    fn the_text_names_refusals_and_figures_of_others() -> serde_json::Result<()> {
        let text = text(&record())?;
        assert!(text.contains("126,728") && text.contains("refused: 3 ns measured"), "{text}");
        let (ours, theirs) = (text.find("126,728"), text.find("recorded: ndn-rs"));
        assert!(ours < theirs, "{text}");
        Ok(())
    }
}
