//! Which router does a command talk to?
//!
//! | place | who reads it |
//! | --- | --- |
//! | 1. the options `--transport URI` and `--router NAME`, of which a command takes one | all commands |
//! | 2. `NAMEWIRE_ROUTER=NAME` in the environment | all commands |
//! | 3. `NDN_CLIENT_TRANSPORT=URI` in the environment | all commands, and every NDN library |
//! | 4. the default of the file of named routers | our own commands, not those of other programs' names |
//! | 5. `client.conf`, then the usual sockets | all commands, and every NDN library |
//!
//! Places 3 and 5 are those of NDN libraries. Only what a user typed for Namewire comes before them: a variable of our
//! own name, or `namewire router default NAME`. Commands that take the place of other programs (`nfdc`) leave out place
//! 4, so a default never sends a script that was written for NFD elsewhere.

use crate::file::{NamedRouter, RoutersError, RoutersFile};
use namewire_client::discovery::TRANSPORT_VARIABLE;
use std::env;

/// The variable that names a router.
pub const ROUTER_VARIABLE: &str = "NAMEWIRE_ROUTER";

/// Where a name comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// The option `--router`.
    Option,
    /// [`ROUTER_VARIABLE`].
    Variable,
    /// The default of the file.
    Default,
}

/// A named router that a command talks to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its name.
    pub name: String,
    /// Who named it.
    pub named: Named,
    /// Where it is.
    pub router: NamedRouter,
}

impl Named {
    /// For messages.
    pub fn text(self) -> &'static str {
        match self {
            Named::Option => "--router",
            Named::Variable => ROUTER_VARIABLE,
            Named::Default => "the default of `namewire router`",
        }
    }
}

impl Choice {
    /// The named router of a command that was not given `--transport`, if one is named. `option` is that of `--router`.
    /// The file is not read unless a name or the default may be needed.
    ///
    /// # Errors
    /// The file cannot be read, or has no router of this name.
    pub fn of_process(option: Option<&str>, takes_default: bool) -> Result<Option<Self>, RoutersError> {
        let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
        let name = match option {
            Some(name) => Some((name.to_owned(), Named::Option)),
            None => variable(ROUTER_VARIABLE).map(|name| (name, Named::Variable)),
        };
        let takes_default = takes_default && variable(TRANSPORT_VARIABLE).is_none();
        if name.is_none() && !takes_default {
            return Ok(None);
        }
        let file = match RoutersFile::of_user() {
            Ok(file) => file,
            // A process without a home, such as a service, has no default.
            Err(RoutersError::NoPlace) if name.is_none() => return Ok(None),
            Err(error) => return Err(error),
        };
        let routers = file.read()?;
        let Some((name, named)) = name.or_else(|| routers.default.clone().map(|name| (name, Named::Default))) else {
            return Ok(None);
        };
        let router = routers.find(&name)?.clone();
        Ok(Some(Choice { name, named, router }))
    }
}
