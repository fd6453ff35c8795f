//! ControlResponse: the answer to a command.

use super::{
    ControlParameters,
    field::{Field, Fields, NfdError},
    numbers::types::{CONTROL_PARAMETERS, CONTROL_RESPONSE, STATUS_CODE, STATUS_TEXT},
};
use crate::tlv;

/// Answer to a command (management.md §4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlResponse {
    /// 200 for success; others as in HTTP.
    pub code: u64,
    /// The code in words.
    pub text: String,
    /// What was done, or what conflicts (409).
    pub body: Option<ControlParameters>,
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

    /// Appends the whole element.
    pub fn encode(&self, out: &mut Vec<u8>) {
        tlv::write_nested(out, CONTROL_RESPONSE, |out| {
            self.code.write(out, STATUS_CODE);
            self.text.write(out, STATUS_TEXT);
            if let Some(body) = &self.body {
                body.encode(out);
            }
        });
    }

    /// The whole element as bytes, ready to be a Data's Content.
    pub fn to_wire(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }

    /// Reads one whole element.
    ///
    /// # Errors
    /// If the bytes are not exactly one ControlResponse element.
    pub fn decode(wire: &[u8]) -> Result<Self, NfdError> {
        let fields = Fields::of_element(wire, CONTROL_RESPONSE)?;
        let body: Option<Body> = fields.optional(CONTROL_PARAMETERS)?;
        Ok(ControlResponse {
            code: fields.required(STATUS_CODE)?,
            text: fields.required(STATUS_TEXT)?,
            body: body.map(|body| body.0),
        })
    }
}

/// The nested ControlParameters, seen as a field.
struct Body(ControlParameters);

impl Field for Body {
    fn write(&self, out: &mut Vec<u8>, _: u32) {
        self.0.encode(out);
    }
    fn read(type_number: u32, value: &[u8]) -> Result<Self, NfdError> {
        let mut wire = Vec::with_capacity(value.len() + 10);
        tlv::write_tlv(&mut wire, type_number, value);
        ControlParameters::decode(&wire).map(Body)
    }
}
