//! What NFD does and the router under test does not (yet): found out by asking it, so that a
//! session counts in full from the day on which the router can do it.
//!
//! Nothing here concerns nfdc itself. Delete an entry once its feature is there to stay.

use crate::{
    normalise::Normaliser,
    session::{Step, Tool},
};
use regex_lite::Regex;

pub(crate) struct Pending {
    /// Congestion marking, MTU and reliability of faces cannot be set.
    has_link_properties: bool,
    /// There is cs/erase.
    has_erase: bool,
    /// Strategies that it lacks.
    strategies: Vec<&'static str>,
    congestion: Vec<(Regex, &'static str)>,
}

impl Pending {
    pub(crate) fn of(tool: &Tool) -> Self {
        let ask = |command: &str| tool.run(&Step::of(command), &mut Normaliser::new(0, None));
        let created = ask("face create udp4://127.0.0.250 mtu 1400");
        ask("face destroy udp4://127.0.0.250");
        let lacks =
            |strategy: &&str| !ask(&format!("strategy set /probe /localhost/nfd/strategy/{strategy}")).succeeded();
        let strategies = ["asf", "access"].into_iter().filter(lacks).collect();
        ask("strategy unset /probe");
        let congestion = [
            (
                r" reliability=\w+ congestion-marking=\w+( congestion-marking-interval=\d+ms)?( default-congestion-threshold=\d+B)?",
                "",
            ),
            (r" congestion=\{[^}]*\}", ""),
            (r"^congestion=.*$", ""),
            (r" congestion-marking\}", "}"),
            (r"<congestion>.*</congestion>", "<congestion/>"),
            (r"<flags><congestionMarkingEnabled/></flags>", "<flags/>"),
        ];
        Pending {
            has_link_properties: created.to_string().contains("congestion-marking=on"),
            has_erase: ask("cs erase /probe").succeeded(),
            strategies,
            congestion: congestion.map(|(pattern, text)| (Regex::new(pattern).unwrap(), text)).to_vec(),
        }
    }

    /// False if the router cannot do what the whole session is about.
    pub(crate) fn applies_to_session(&self, name: &str) -> bool {
        self.has_link_properties || name != "link_properties"
    }

    /// False if the router cannot do what the step asks for.
    pub(crate) fn applies(&self, step: &Step) -> bool {
        let command = &step.command;
        (self.has_erase || !(command.contains("cs erase") && step.succeeded()))
            && !self.strategies.iter().any(|strategy| command.contains(strategy))
    }

    /// The step without what the router does not say.
    pub(crate) fn without(&self, step: &Step) -> Step {
        let mut step = step.clone();
        step.edit_output(|line| {
            if self.strategies.iter().any(|strategy| line.contains(&format!("/strategy/{strategy}/"))) {
                return String::new();
            }
            if self.has_link_properties {
                return line.to_owned();
            }
            self.congestion
                .iter()
                .fold(line.to_owned(), |line, (rule, text)| rule.replace_all(&line, *text).into_owned())
        });
        step
    }
}
