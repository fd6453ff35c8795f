//! The latest lines, in memory.
//!
//! Limits: [`MAX_RECORDS`] and [`MAX_BYTES`]. When there are too many, the area with the most bytes loses its oldest
//! line. So a flood of faces that come and go leaves the lines about trust and routes in place.

use namewire_packet::nfd::LogRecord;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Most lines that are kept.
pub(crate) const MAX_RECORDS: usize = 1000;

/// Most bytes of their texts and records together.
pub(crate) const MAX_BYTES: usize = 512 << 10;

/// The latest lines. Their numbers grow; those of one area that gave way are missing.
#[derive(Default)]
pub(crate) struct Recent {
    records: BTreeMap<u64, LogRecord>,
    areas: HashMap<String, Area>,
    bytes: usize,
    last_number: u64,
}

/// The lines of one area.
#[derive(Default)]
struct Area {
    /// Oldest first.
    numbers: VecDeque<u64>,
    bytes: usize,
}

impl Recent {
    /// Keeps a line, which gets the next number.
    pub(crate) fn add(&mut self, record: LogRecord) {
        self.last_number += 1;
        let (number, bytes) = (self.last_number, bytes_of(&record));
        let area = self.areas.entry(record.area.clone()).or_default();
        area.numbers.push_back(number);
        (area.bytes, self.bytes) = (area.bytes + bytes, self.bytes + bytes);
        self.records.insert(number, LogRecord { number, ..record });
        while self.records.len() > MAX_RECORDS || self.bytes > MAX_BYTES {
            self.drop_one();
        }
    }

    /// Drops the oldest line of the area with the most bytes.
    fn drop_one(&mut self) {
        let Some(area) = self.areas.values_mut().max_by_key(|area| area.bytes) else { return };
        let oldest = area.numbers.pop_front().and_then(|number| self.records.remove(&number));
        let bytes = oldest.as_ref().map_or(0, bytes_of);
        (area.bytes, self.bytes) = (area.bytes - bytes, self.bytes - bytes);
    }

    /// The lines with numbers greater than `after`.
    pub(crate) fn after(&self, after: u64) -> Vec<LogRecord> {
        self.records.range(after.saturating_add(1)..).map(|(_, record)| record.clone()).collect()
    }
}

fn bytes_of(record: &LogRecord) -> usize {
    let fields = record.fields.iter().map(|field| size_of_val(field) + field.name.len() + field.value.len());
    size_of::<LogRecord>() + record.level.len() + record.area.len() + record.message.len() + fields.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(message: &str) -> LogRecord {
        LogRecord { message: message.to_owned(), ..LogRecord::default() }
    }

    #[test]
    fn the_oldest_lines_go_when_there_are_too_many() {
        let mut recent = Recent::default();
        (0..MAX_RECORDS + 7).for_each(|line| recent.add(record(&line.to_string())));
        let kept = recent.after(0);
        assert_eq!((kept.len(), kept[0].number, kept[0].message.as_str()), (MAX_RECORDS, 8, "7"));
        assert_eq!(recent.after(1005).iter().map(|record| record.number).collect::<Vec<_>>(), [1006, 1007]);
        assert_eq!(recent.after(1007), []);
    }

    #[test]
    fn a_flood_of_one_area_leaves_the_lines_of_others() {
        let mut recent = Recent::default();
        let of = |area: &str, message: &str| LogRecord { area: area.to_owned(), ..record(message) };
        recent.add(of("trust", "refused"));
        (0..10 * MAX_RECORDS).for_each(|line| recent.add(of("faces", &line.to_string())));
        let kept = recent.after(0);
        assert_eq!((kept.len(), kept[0].message.as_str()), (MAX_RECORDS, "refused"));
        assert_eq!(kept[MAX_RECORDS - 1].message, (10 * MAX_RECORDS - 1).to_string());
        assert!(kept.is_sorted_by_key(|record| record.number));
    }

    #[test]
    fn and_when_they_are_too_long() {
        let mut recent = Recent::default();
        (0..MAX_RECORDS).for_each(|_| recent.add(record(&"x".repeat(2000))));
        let kept = recent.after(0).len();
        assert!((MAX_BYTES / 2200..MAX_BYTES / 2000).contains(&kept), "{kept}");
        recent.add(record(&"x".repeat(2 * MAX_BYTES)));
        assert_eq!(recent.after(0), [], "even the latest");
        assert_eq!(recent.bytes, 0);
        recent.add(record(""));
        assert_eq!(recent.after(0).len(), 1);
    }
}
