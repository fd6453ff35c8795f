//! `--set KEY=VALUE` on the command line: shells complete the key.

use clap::builder::{PossibleValue, TypedValueParser};
use namewire_configuration::{Assignment, setting_keys};
use std::{ffi::OsStr, str::FromStr as _};

/// Reads an [`Assignment`]; lists every key for the scripts of `namewire completions`.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnySetting;

impl TypedValueParser for AnySetting {
    type Value = Assignment;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Assignment, clap::Error> {
        Assignment::from_str.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(setting_keys().into_iter().map(|key| PossibleValue::new(format!("{key}=")))))
    }
}
