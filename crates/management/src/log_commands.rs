//! `log`: an operator changes how much the router logs, and marks a moment in the log.
//!
//! The module is ours; in NFD the levels change with the configuration file only. Its commands follow the rules of the
//! protocol.
//!
//! | verb | takes | answer |
//! | --- | --- | --- |
//! | `set` | LogLevels: a text of levels | LogLevels: the levels of all areas |
//! | `mark` | Name, for the line that it writes | the same |
//!
//! The datasets are `log/levels` and `log/recent`. After the name of the latter, a sequence number component asks for
//! the lines after this one.

use crate::{
    command::{CommandResult, Refusal, invalid_parameters, malformed, refusal},
    environment::Environment,
    log_plane::LogPlane,
};
use namewire_packet::{Component, nfd::ControlParameters};

/// `log/set`.
pub(crate) fn set_log_levels(parameters: &ControlParameters, environment: &mut dyn Environment) -> CommandResult {
    let text = parameters.log_levels.as_deref().ok_or_else(|| invalid_parameters("LogLevels is required"))?;
    let levels = log_plane(environment)?.set_levels(text).map_err(|why| invalid_parameters(&why))?;
    Ok(ControlParameters { log_levels: Some(levels), ..Default::default() })
}

/// The log, or 503 without one.
pub(crate) fn log_plane(environment: &mut dyn Environment) -> Result<&mut dyn LogPlane, Refusal> {
    environment.log_plane().ok_or_else(|| refusal(503, "This forwarder keeps no log"))
}

/// The number after which lines are asked for, in a component of that type.
pub(crate) fn read_number(component: Component<'_>) -> Result<u64, Refusal> {
    component.as_nni().ok_or_else(|| malformed("the sequence number after log/recent is malformed"))
}
