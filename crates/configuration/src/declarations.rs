//! Declarations: the faces, routes and strategies that a node should have. A configuration declares some, a state file
//! others.

use crate::{
    Settings,
    settings::{FaceEntry, RouteEntry, StrategyEntry},
    text::Prefix,
};

/// Declared faces, routes and strategies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Declarations {
    /// Faces.
    pub faces: Vec<FaceEntry>,
    /// Routes.
    pub routes: Vec<RouteEntry>,
    /// Strategies.
    pub strategies: Vec<StrategyEntry>,
    /// Prefixes that should not have their default strategy.
    pub unset: Vec<Prefix>,
}

impl Declarations {
    /// The declarations of a configuration.
    pub fn of(settings: &Settings) -> Self {
        Declarations {
            faces: settings.face.clone(),
            routes: settings.route.clone(),
            strategies: settings.strategy.clone(),
            unset: Vec::new(),
        }
    }

    /// True if nothing is declared.
    pub fn is_empty(&self) -> bool {
        self.faces.is_empty() && self.routes.is_empty() && self.strategies.is_empty() && self.unset.is_empty()
    }
}
