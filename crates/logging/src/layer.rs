//! The layer that passes the events of `tracing` to the log.

use crate::{
    Log, levels,
    record::{Fields, unix_ms},
};
use namewire_configuration::log_levels::LogArea;
use namewire_packet::nfd::LogRecord;
use tracing::{Event, Metadata, Subscriber, level_filters::LevelFilter, subscriber::Interest};
use tracing_subscriber::layer::{Context, Layer};

/// Takes the events of our areas.
pub(crate) struct LogLayer {
    log: &'static Log,
}

impl LogLayer {
    pub(crate) const fn of(log: &'static Log) -> Self {
        LogLayer { log }
    }
}

impl<S: Subscriber> Layer<S> for LogLayer {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        // Levels change without a new decision here, so none is final for an area of ours.
        if metadata.is_event() && LogArea::find(metadata.target()).is_some() {
            Interest::sometimes()
        } else {
            Interest::never()
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        LogArea::find(metadata.target()).is_some_and(|area| self.log.levels.admits(area, *metadata.level()))
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.log.levels.most())
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let Some(area) = LogArea::find(metadata.target()) else { return };
        self.log.take(metadata.callsite(), || {
            let mut fields = Fields::default();
            event.record(&mut fields);
            let (message, fields) = fields.into_parts();
            let (level, area) = (levels::name(*metadata.level()).to_owned(), area.name().to_owned());
            LogRecord { number: 0, unix_ms: unix_ms(), level, area, message, fields }
        });
    }
}
