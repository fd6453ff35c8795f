//! A simulator that knows one more strategy (docs/simulator.md).
//!
//! `cargo run --release -p namewire-scenario --example own_simulator -- run FILE --vary strategy=two-copies,asf`

use namewire_engine::{DropReason, FaceId, Strategy, StrategyContext};
use namewire_scenario::{OwnStrategies, command_line};
use std::process::ExitCode;

/// Every new Interest goes to the two cheapest next hops, so that one loss goes unnoticed.
#[derive(Debug)]
struct TwoCopies;

impl Strategy for TwoCopies {
    fn after_receive_interest(&self, context: &mut StrategyContext<'_, '_, '_>) {
        if context.is_any_upstream_pending() {
            return context.count_drop(DropReason::Suppressed);
        }
        let [first, second]: [Option<FaceId>; 2] = {
            let mut cheapest = context.eligible();
            [cheapest.next(), cheapest.next()]
        };
        let Some(first) = first else { return context.count_drop(DropReason::NoRoute) };
        context.send_interest(first);
        if let Some(second) = second {
            // With the same nonce, the copy would be dropped as a loop where the paths meet.
            let nonce = context.new_nonce();
            context.send_copy(second, nonce);
        }
    }
}

fn main() -> ExitCode {
    command_line::main(OwnStrategies::default().with("two-copies", TwoCopies))
}
