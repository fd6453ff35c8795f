//! `nfdc status`, and the nouns that only show one section of it: channel, fib, `cs info`.

use crate::{
    arguments::Arguments,
    context::{Context, FAILED, Unanswered},
    text,
    value::ReportFormat,
    xml,
};
use namewire_packet::nfd::CsInfo;

/// Parts of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    General,
    Channels,
    Faces,
    Fib,
    Rib,
    ContentStore,
    StrategyChoices,
}

/// Weight of a section's place in the number that tells what could not be had.
const SECTION_ERROR_STEP: u64 = 1_000_000;

/// A section as it is printed, and why it could not be had.
type Printed = (String, Option<Unanswered>);

/// `status report`: everything, asked for at once, so that a forwarder that answers nothing
/// is waited for once.
pub(crate) async fn report(context: &mut Context, arguments: &Arguments) {
    let format = arguments.format("format").copied().unwrap_or(ReportFormat::Text);
    let section = |section: Section| section.print(context, format);
    let (general, channels, faces, fib, rib, store, choices) = tokio::join!(
        section(Section::General),
        section(Section::Channels),
        section(Section::Faces),
        section(Section::Fib),
        section(Section::Rib),
        section(Section::ContentStore),
        section(Section::StrategyChoices),
    );
    finish(context, format, [general, channels, faces, fib, rib, store, choices].into());
}

/// One section as text.
pub(crate) async fn show(context: &mut Context, section: Section) {
    let printed = section.print(context, ReportFormat::Text).await;
    finish(context, ReportFormat::Text, vec![printed]);
}

/// Prints sections. One that cannot be had is printed empty, as NFD's nfdc does, and makes
/// the command fail; the number in the message says which and why.
fn finish(context: &mut Context, format: ReportFormat, sections: Vec<Printed>) {
    let mut error_number = 0;
    let mut printed = String::new();
    for (place, (text, failure)) in (0..).zip(sections) {
        printed += &text;
        match failure {
            None => {}
            Some(Unanswered::Refused(refusal)) => error_number = place * SECTION_ERROR_STEP + refusal.code,
            Some(Unanswered::Lost(stop)) => return context.stop(stop),
        }
    }
    if error_number != 0 {
        context.code = FAILED;
        context.err += &format!("Error while collecting status report ({error_number}).\n");
    }
    context.out += &match format {
        ReportFormat::Text => printed,
        ReportFormat::Xml => xml::document(&printed),
    };
}

impl Section {
    /// The section, empty if it cannot be had, and why it cannot.
    async fn print(self, context: &Context, format: ReportFormat) -> Printed {
        let is_text = format == ReportFormat::Text;
        /// Prints `$value`, or its default and the error.
        macro_rules! print {
            ($value:expr, $printer:ident) => {{
                let (value, failure) = or_default($value);
                let text = if is_text { text::$printer(&value) } else { xml::$printer(&value) };
                (text, failure)
            }};
        }
        match self {
            Section::General => print!(context.forwarder_status().await, general_section),
            Section::Channels => print!(context.list("faces", "channels").await, channel_section),
            Section::Faces => print!(context.list("faces", "list").await, face_section),
            Section::Fib => print!(context.list("fib", "list").await, fib_section),
            Section::Rib => print!(context.list("rib", "list").await, rib_section),
            Section::ContentStore => {
                let entries = context.list("cs", "info").await;
                print!(entries.map(|entries: Vec<CsInfo>| entries.first().copied().unwrap_or_default()), cs_section)
            }
            Section::StrategyChoices => print!(context.list("strategy-choice", "list").await, strategy_section),
        }
    }
}

fn or_default<T: Default>(result: Result<T, Unanswered>) -> (T, Option<Unanswered>) {
    match result {
        Ok(value) => (value, None),
        Err(error) => (T::default(), Some(error)),
    }
}
