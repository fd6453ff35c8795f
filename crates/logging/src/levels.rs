//! The levels of all areas, read by every thread and changed while the router runs.

use namewire_configuration::log_levels::{LogArea, LogLevel, LogLevels};
use std::sync::{Mutex, PoisonError};
use tracing::{Level, level_filters::LevelFilter};

/// Levels that change live.
pub(crate) struct LiveLevels(Mutex<LogLevels>);

impl LiveLevels {
    pub(crate) fn new(levels: LogLevels) -> Self {
        LiveLevels(Mutex::new(levels))
    }

    pub(crate) fn get(&self) -> LogLevels {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, levels: LogLevels) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = levels;
    }

    /// True if the area logs lines of this level.
    pub(crate) fn admits(&self, area: LogArea, level: Level) -> bool {
        filter(self.get().of(area)) >= level
    }

    /// The most that any area logs.
    pub(crate) fn most(&self) -> LevelFilter {
        self.get().iter().map(|(_, level)| filter(level)).max().unwrap_or(LevelFilter::OFF)
    }
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

/// The level of a statement, in our words.
pub(crate) fn name(level: Level) -> &'static str {
    let ours = match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        Level::DEBUG => LogLevel::Debug,
        Level::TRACE => LogLevel::Trace,
    };
    ours.name()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_logs_its_level_and_what_is_more_important() {
        let mut levels = LogLevels::default();
        levels.take(&"off,faces=warn,tag=trace".parse().unwrap());
        let live = LiveLevels::new(levels);
        let admitted = |area| {
            [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG, Level::TRACE].map(|level| live.admits(area, level))
        };
        assert_eq!(admitted(LogArea::Routes), [false; 5]);
        assert_eq!(admitted(LogArea::Faces), [true, true, false, false, false]);
        assert_eq!(admitted(LogArea::Tag), [true; 5]);
        assert_eq!(live.most(), LevelFilter::TRACE);
        levels.take(&"off".parse().unwrap());
        live.set(levels);
        assert_eq!(live.most(), LevelFilter::OFF);
    }
}
