//! Options whose value is one of several names. Help and error messages list the names.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use namewire_configuration::settings::Named;

/// Reads the name of a `T`.
pub(crate) fn choice<T: Named + Send + Sync>() -> impl TypedValueParser<Value = T> {
    let find = |name: String| T::find(&name).ok_or_else(|| format!("unknown value {name}"));
    PossibleValuesParser::new(T::ALL.iter().map(|value| value.name())).try_map(find)
}
