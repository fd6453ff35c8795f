//! Matching: to which nodes of a schema does a name lead, and which values does it give to patterns?
//!
//! Source: python-ndn's `Checker._match`. The tree is walked in depth, one component for each level: first along the
//! edge of the component's value, then along pattern edges in their order. A pattern that has a value matches only
//! that value, and its constraints are not looked at again. Only patterns with a tag up to the model's number of named
//! patterns keep their value.
//!
//! Cost: every node is visited at most once. Limit: [`STEPS_MAX`] steps for one check.

use super::{
    Schema,
    model::{Call, Choice, PatternEdge},
};
use namewire_packet::{Component, Name};

/// Most steps for one check, a few milliseconds: looks at edges, and at options of constraints.
pub const STEPS_MAX: usize = 1 << 18;

/// Why matching stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    TooManySteps,
    /// This function needs a value that a pattern does not have yet.
    NoValue(&'static str),
}

/// The steps of one check so far.
#[derive(Default)]
pub(super) struct Steps(usize);

impl Steps {
    fn take(&mut self) -> Result<(), Stop> {
        self.0 += 1;
        if self.0 > STEPS_MAX { Err(Stop::TooManySteps) } else { Ok(()) }
    }
}

/// The value of a pattern.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound<'n> {
    pub(super) tag: u64,
    pub(super) component: Component<'n>,
}

/// One level of the walk.
struct Level {
    node: usize,
    /// What is tried next: the value edges (`None`), or this pattern edge.
    next: Option<usize>,
    /// True if the edge to this node gave a value to a pattern.
    has_bound: bool,
}

/// The nodes to which one name leads, one by one.
pub(super) struct Matcher<'s, 'n> {
    schema: &'s Schema,
    /// The components; empty levels if the name matches nothing.
    components: Vec<Component<'n>>,
    levels: Vec<Level>,
    values: Vec<Bound<'n>>,
}

impl<'s, 'n> Matcher<'s, 'n> {
    /// Starts to match a name, with patterns that have values already. As in python-ndn, an empty name matches nothing.
    pub(super) fn new(schema: &'s Schema, name: Name<'n>, values: Vec<Bound<'n>>) -> Self {
        let may_match = (1..=super::DEPTH_MAX).contains(&name.len());
        let components = if may_match { name.components().collect() } else { Vec::new() };
        let first = Level { node: schema.model.start, next: None, has_bound: false };
        Matcher { schema, components, levels: may_match.then_some(first).into_iter().collect(), values }
    }

    /// The values that patterns have at the node that was found last.
    pub(super) fn values(&self) -> &[Bound<'n>] {
        &self.values
    }

    /// The next node at which the name ends.
    pub(super) fn next_node(&mut self, steps: &mut Steps) -> Result<Option<usize>, Stop> {
        // The node that was found last is left here, so that its values are there until now.
        if self.levels.len() == self.components.len() + 1 {
            self.leave();
        }
        while let Some(node) = self.levels.last().map(|level| level.node) {
            if self.levels.len() == self.components.len() + 1 {
                return Ok(Some(node));
            }
            match self.enter_next(steps)? {
                Some(level) => self.levels.push(level),
                None => self.leave(),
            }
        }
        Ok(None)
    }

    /// Goes back one level.
    fn leave(&mut self) {
        if self.levels.pop().is_some_and(|level| level.has_bound) {
            self.values.pop();
        }
    }

    /// The node along the next edge of the last level that fits the component there.
    fn enter_next(&mut self, steps: &mut Steps) -> Result<Option<Level>, Stop> {
        let depth = self.levels.len() - 1;
        let (component, schema) = (self.components[depth], self.schema);
        let node = &schema.model.nodes[self.levels[depth].node];
        let first = match self.levels[depth].next {
            Some(next) => next,
            None => {
                self.levels[depth].next = Some(0);
                for edge in &node.values {
                    steps.take()?;
                    if edge.value.component() == component {
                        return Ok(Some(Level { node: edge.to, next: None, has_bound: false }));
                    }
                }
                0
            }
        };
        for (at, edge) in node.patterns.iter().enumerate().skip(first) {
            self.levels[depth].next = Some(at + 1);
            steps.take()?;
            if let Some(has_bound) = self.follow(edge, component, steps)? {
                return Ok(Some(Level { node: edge.to, next: None, has_bound }));
            }
        }
        Ok(None)
    }

    /// Does the component fit this pattern edge? Then it may give the pattern a value; the result says if it does.
    fn follow(
        &mut self,
        edge: &PatternEdge,
        component: Component<'n>,
        steps: &mut Steps,
    ) -> Result<Option<bool>, Stop> {
        if let Some(value) = self.value_of(edge.tag) {
            return Ok((value == component).then_some(false));
        }
        for constraint in &edge.constraints {
            if !self.is_met(constraint, component, steps)? {
                return Ok(None);
            }
        }
        let is_named = edge.tag <= self.schema.model.named_patterns;
        if is_named {
            self.values.push(Bound { tag: edge.tag, component });
        }
        Ok(Some(is_named))
    }

    fn is_met(&self, constraint: &[Choice], component: Component<'_>, steps: &mut Steps) -> Result<bool, Stop> {
        for choice in constraint {
            steps.take()?;
            let is_met = match choice {
                Choice::Value(value) => value.component() == component,
                Choice::Tag(tag) => self.value_of(*tag) == Some(component),
                Choice::Call(call) => self.call(call, component, steps)?,
            };
            if is_met {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn call(&self, call: &Call, component: Component<'_>, steps: &mut Steps) -> Result<bool, Stop> {
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            steps.take()?;
            let of_pattern = argument.tag.and_then(|tag| self.value_of(tag));
            arguments.push(of_pattern.or(argument.value.as_ref().map(|value| value.component())));
        }
        self.schema.functions[call.function].call(component, &arguments).map_err(Stop::NoValue)
    }

    fn value_of(&self, tag: u64) -> Option<Component<'n>> {
        self.values.iter().find(|bound| bound.tag == tag).map(|bound| bound.component)
    }
}
