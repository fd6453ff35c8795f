//! The log's interface to management.

use crate::Log;
use namewire_configuration::log_levels::LogChange;
use namewire_management::LogPlane;
use namewire_packet::nfd::{LogAreaLevel, LogRecord};

impl LogPlane for &'static Log {
    fn set_levels(&mut self, text: &str) -> Result<String, String> {
        let change: LogChange = text.parse()?;
        Ok(self.change_levels(&change).to_string())
    }

    fn levels(&self) -> Vec<LogAreaLevel> {
        let levels = Log::levels(self);
        levels
            .iter()
            .map(|(area, level)| LogAreaLevel { area: area.name().into(), level: level.name().into() })
            .collect()
    }

    fn recent(&self, after: u64) -> Vec<LogRecord> {
        Log::recent(self, after)
    }
}
