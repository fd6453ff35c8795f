//! ControlResponse: the answer to a command.

use super::{ControlParameters, element::element, numbers::types::CONTROL_PARAMETERS};

element! {
    message 101:
    /// Answer to a command (management.md §4).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ControlResponse {
        /// 200 for success; others as in HTTP.
        pub code: u64 = 102,
        /// The code in words.
        pub text: String = 103,
        /// What was done, or what conflicts (409).
        pub body: Option<ControlParameters> = CONTROL_PARAMETERS,
    }
}

impl ControlResponse {
    /// An answer without body.
    pub fn new(code: u64, text: impl Into<String>) -> Self {
        ControlResponse { code, text: text.into(), body: None }
    }

    /// Success with the fields that the command's definition lists.
    pub fn ok(body: ControlParameters) -> Self {
        ControlResponse { code: 200, text: "OK".to_owned(), body: Some(body) }
    }

    /// Adds or replaces the body.
    #[must_use]
    pub fn with_body(mut self, body: ControlParameters) -> Self {
        self.body = Some(body);
        self
    }
}
