//! Table 4.2 of Yuan15 compared with ours: is α within the paper's range, by any reading?
//!
//! The paper's three lists are not available. A reading that is the paper's should give values near its range for lists
//! of the same kind, in each of the three conversions. The notes say how many lists are within it, for every reading.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::paper_count::Reading;
use crate::name_sets::NameConversion;
use crate::papers;

/// The paper's figures, and ours so far.
#[derive(Deserialize)]
pub(super) struct Table42 {
    alpha_percent: BTreeMap<String, BTreeMap<String, f64>>,
    c_trie_size: BTreeMap<String, BTreeMap<String, u32>>,
    #[serde(skip)]
    ours: Vec<Ours>,
}

/// α of one list in one conversion, by every reading.
struct Ours {
    list: String,
    conversion: &'static str,
    alpha_percent: [f64; Reading::ALL.len()],
}

impl Table42 {
    pub(super) fn of_the_paper() -> anyhow::Result<Self> {
        papers::figures(papers::YUAN_15, "/table_4_2")
    }

    pub(super) fn add(&mut self, list: &str, conversion: &'static str, alpha_percent: [f64; Reading::ALL.len()]) {
        self.ours.push(Ours { list: list.to_owned(), conversion, alpha_percent });
    }

    /// The paper's figures, then what each reading gives, then the result.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.alpha_percent.keys().map(|list| self.papers_note(list)).collect();
        let mut found_again = Vec::new();
        for (place, reading) in Reading::ALL.into_iter().enumerate() {
            let counts = NameConversion::YUAN.map(|conversion| self.within(conversion.name(), place));
            let texts = NameConversion::YUAN.iter().zip(counts).map(|(conversion, (within, lists))| {
                let (least, most) = self.range(conversion.name());
                format!("{} {within} of {lists} lists within {least} to {most} %", conversion.name())
            });
            let texts: Vec<String> = texts.collect();
            notes.push(format!("alpha {}: {}.", reading.name(), texts.join(", ")));
            if counts.iter().all(|&(within, lists)| lists > 0 && within == lists) {
                found_again.push(reading.name());
            }
        }
        notes.extend(self.alpha_percent.keys().filter_map(|list| self.nearest(list)));
        notes.push(match found_again.is_empty() {
            true => format!(
                "Table 4.2 is not found again: none of the {} readings has all lists within the paper's ranges.",
                Reading::ALL.len(),
            ),
            false => format!("Table 4.2 is found again by: alpha {}.", found_again.join("; ")),
        });
        notes
    }

    fn papers_note(&self, list: &str) -> String {
        let cell = |conversion: &NameConversion| {
            let alpha = self.alpha_percent.get(list)?.get(conversion.name())?;
            let prefixes = self.c_trie_size.get(list)?.get(conversion.name())?;
            Some(format!("{} {alpha} % with {prefixes}", conversion.name()))
        };
        let cells: Vec<String> = NameConversion::YUAN.iter().filter_map(cell).collect();
        format!("Yuan15 Table 4.2, {list}: alpha and prefixes in the C-Trie: {}", cells.join(", "))
    }

    /// The least and the greatest α of the paper's lists.
    fn range(&self, conversion: &str) -> (f64, f64) {
        let all = self.alpha_percent.values().filter_map(|list| list.get(conversion).copied());
        all.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), alpha| (least.min(alpha), most.max(alpha)))
    }

    /// How many lists are within the paper's range, and how many there are.
    fn within(&self, conversion: &str, reading: usize) -> (usize, usize) {
        let (least, most) = self.range(conversion);
        let of_conversion = || self.ours.iter().filter(|ours| ours.conversion == conversion);
        let within = of_conversion().filter(|ours| (least..=most).contains(&ours.alpha_percent[reading]));
        (within.count(), of_conversion().count())
    }

    /// For each list of the paper, the reading and the list of ours that come nearest on average.
    fn nearest(&self, papers_list: &str) -> Option<String> {
        let wanted = self.alpha_percent.get(papers_list)?;
        let mut nearest: Option<(f64, String)> = None;
        for (place, reading) in Reading::ALL.into_iter().enumerate() {
            for list in self.ours.iter().filter(|ours| ours.conversion == NameConversion::YUAN[0].name()) {
                let of_list = self.ours.iter().filter(|ours| ours.list == list.list);
                let (mut distance, mut values) = (0.0, Vec::new());
                for ours in of_list {
                    let alpha = ours.alpha_percent[place];
                    distance += (alpha - wanted.get(ours.conversion)?).abs() / NameConversion::YUAN.len() as f64;
                    values.push(format!("{} {alpha:.2} %", ours.conversion));
                }
                if values.len() == NameConversion::YUAN.len()
                    && nearest.as_ref().is_none_or(|(least, _)| distance < *least)
                {
                    let (list, reading, values) = (&list.list, reading.name(), values.join(", "));
                    nearest = Some((distance, format!("{list} by alpha {reading}, with {values}")));
                }
            }
        }
        nearest.map(|(distance, text)| format!("Nearest to {papers_list}: {text}; {distance:.2} points on average."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_follows_from_the_values() {
        let mut table = Table42::of_the_paper().expect("the paper's table");
        assert_eq!((table.range("TLD"), table.range("Host")), ((9.94, 12.08), (0.49, 8.6)));
        for (conversion, alpha) in [("TLD", 11.0), ("Site", 5.0), ("Host", 1.0)] {
            table.add("list", conversion, [alpha, 90.0, 90.0, 90.0]);
        }
        let found_again = table.notes().pop().expect("a result");
        assert_eq!(found_again, "Table 4.2 is found again by: alpha as the paper counts.");
        // Only one of its conversions was counted, so it is nearest to nothing.
        table.add("other", "TLD", [12.58, 90.0, 90.0, 90.0]);
        let notes = table.notes();
        let has = |text: &str| notes.iter().any(|note| note.contains(text));
        assert!(has("TLD 1 of 2 lists within 9.94 to 12.08 %"), "{notes:?}");
        assert!(has("Nearest to Alexa: list by alpha as the paper counts") && has("; 0.72 points"), "{notes:?}");
        assert!(notes.last().is_some_and(|note| note.contains("not found again")), "{notes:?}");
    }
}
