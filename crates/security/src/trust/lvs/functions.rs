//! The functions that a schema may call in a constraint: python-ndn's two, and those that a program adds by name.
//!
//! Limits: a schema may be checked against any number of functions. What a function of the program costs is up to the
//! program; each call counts as one step.

use namewire_packet::Component;
use std::{collections::BTreeMap, fmt, sync::Arc};

/// Is this the right value? It receives the component, and the arguments of the call. An argument is `None` if it is a
/// pattern that has no value yet.
type Custom = dyn Fn(Component<'_>, &[Option<Component<'_>>]) -> bool + Send + Sync;

/// One function.
#[derive(Clone)]
pub(super) enum Function {
    /// `$eq`: every argument is this component.
    Equal,
    /// `$eq_type`: every argument is a component of the same type.
    EqualType,
    /// A function of the program.
    Custom(Arc<Custom>),
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Function::Equal => "Equal",
            Function::EqualType => "EqualType",
            Function::Custom(_) => "Custom",
        })
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Function::Equal, Function::Equal) | (Function::EqualType, Function::EqualType) => true,
            (Function::Custom(one), Function::Custom(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Function {
    /// What the function says of a component; an error if it needs a value that an argument does not have. As in
    /// python-ndn, `$eq` is then false, and `$eq_type` ends the check.
    pub(super) fn call(
        &self,
        component: Component<'_>,
        arguments: &[Option<Component<'_>>],
    ) -> Result<bool, &'static str> {
        match self {
            Function::Equal => Ok(arguments.iter().all(|argument| *argument == Some(component))),
            Function::EqualType => {
                for argument in arguments {
                    if argument.ok_or("$eq_type")?.type_number != component.type_number {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Function::Custom(function) => Ok(function(component, arguments)),
        }
    }
}

/// Functions by name, each with its `$`. The default has `$eq` and `$eq_type`.
#[derive(Clone, Debug)]
pub struct UserFunctions(BTreeMap<String, Function>);

impl Default for UserFunctions {
    fn default() -> Self {
        let built_in = [("$eq", Function::Equal), ("$eq_type", Function::EqualType)];
        UserFunctions(built_in.map(|(name, function)| (name.to_owned(), function)).into())
    }
}

impl UserFunctions {
    /// Adds a function, or replaces one: `$name`, and what decides whether a component is right. It receives the
    /// component and the arguments of the call; an argument is `None` if it is a pattern that has no value yet.
    #[must_use]
    pub fn with(
        mut self,
        name: impl Into<String>,
        function: impl Fn(Component<'_>, &[Option<Component<'_>>]) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.0.insert(name.into(), Function::Custom(Arc::new(function)));
        self
    }

    pub(super) fn get(&self, name: &str) -> Option<Function> {
        self.0.get(name).cloned()
    }
}
