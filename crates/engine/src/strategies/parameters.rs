//! Parameters: the components after the version in a strategy's name (NFD's developer guide §5, "strategy parameters").

use namewire_packet::Component;
use std::str::FromStr;

/// Why a parameter is refused.
pub(crate) struct InvalidParameter(pub(crate) String);

/// The `<key>~<value>` components of a strategy name. Unknown keys are ignored, as NFD does.
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    pub(crate) fn parse<'a>(components: impl Iterator<Item = Component<'a>>) -> Result<Self, InvalidParameter> {
        let parse_one = |component: Component<'a>| {
            let text = std::str::from_utf8(component.value).ok();
            let (key, value) = text
                .and_then(|text| text.split_once('~'))
                .ok_or_else(|| InvalidParameter(format!("Parameter {component} is not of the form <key>~<value>")))?;
            Ok((key.to_owned(), value.to_owned()))
        };
        components.map(parse_one).collect::<Result<_, _>>().map(Parameters)
    }

    /// For strategies without parameters: NFD also refuses any.
    pub(crate) fn refuse_all(&self, strategy: &str) -> Result<(), InvalidParameter> {
        match self.0.first() {
            Some((key, _)) => Err(InvalidParameter(format!("{strategy} takes no parameters, but {key} is given"))),
            None => Ok(()),
        }
    }

    /// The value of `key` as a number, if it is given.
    pub(crate) fn number<T: FromStr>(&self, key: &str) -> Result<Option<T>, InvalidParameter> {
        let Some((_, value)) = self.0.iter().find(|(known, _)| known == key) else { return Ok(None) };
        value.parse().map(Some).map_err(|_| InvalidParameter(format!("Value of {key} must be a number: {value:?}")))
    }
}
