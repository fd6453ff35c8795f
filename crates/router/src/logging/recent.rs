//! The latest lines, in memory.
//!
//! Limits: [`MAX_RECORDS`] and [`MAX_BYTES`]; the oldest lines go first.

use namewire_packet::nfd::LogRecord;
use std::collections::VecDeque;

/// Most lines that are kept.
pub(super) const MAX_RECORDS: usize = 1000;

/// Most bytes of their texts and records together.
pub(super) const MAX_BYTES: usize = 512 << 10;

/// The latest lines, oldest first, with consecutive numbers.
#[derive(Default)]
pub(super) struct Recent {
    records: VecDeque<LogRecord>,
    bytes: usize,
    last_number: u64,
}

impl Recent {
    /// Keeps a line, which gets the next number.
    pub(super) fn add(&mut self, record: LogRecord) {
        self.last_number += 1;
        self.bytes += bytes_of(&record);
        self.records.push_back(LogRecord { number: self.last_number, ..record });
        while self.records.len() > MAX_RECORDS || self.bytes > MAX_BYTES {
            let Some(oldest) = self.records.pop_front() else { return };
            self.bytes -= bytes_of(&oldest);
        }
    }

    /// The lines with numbers greater than `after`.
    pub(super) fn after(&self, after: u64) -> Vec<LogRecord> {
        let first = self.records.partition_point(|record| record.number <= after);
        self.records.range(first..).cloned().collect()
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
