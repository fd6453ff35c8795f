//! `nfdc cs`: config and erase (`cs info` is a section of the status).

use crate::{
    arguments::Arguments,
    context::{Context, FAILED, Stop, required},
    text::Attributes,
};
use namewire_packet::nfd::{ControlParameters, cs_flags};
use namewire_printing::output::on_off;

pub(crate) async fn config(context: &mut Context, arguments: &Arguments) -> Result<(), Stop> {
    let switches = [("admit", cs_flags::ADMIT), ("serve", cs_flags::SERVE)];
    let (mut flags, mut mask) = (0, 0);
    for (name, bit) in switches {
        if let Some(is_on) = arguments.boolean(name) {
            mask |= bit;
            flags |= if *is_on { bit } else { 0 };
        }
    }
    let parameters = ControlParameters {
        capacity: arguments.unsigned("capacity").copied(),
        flags: (mask != 0).then_some(flags),
        mask: (mask != 0).then_some(mask),
        ..ControlParameters::default()
    };
    let doing = "updating CS config";
    let done = context.control("cs", "config", &parameters).await.map_err(|error| error.when(doing))?;
    let flags = required(done.flags, "Flags", doing)?;
    let mut attributes = Attributes::in_one_line();
    attributes
        .add("capacity", required(done.capacity, "Capacity", doing)?)
        .add("admit", on_off(flags & cs_flags::ADMIT != 0))
        .add("serve", on_off(flags & cs_flags::SERVE != 0));
    context.out += &format!("cs-config-updated {}\n", attributes.take());
    Ok(())
}

/// Erases in steps, because a forwarder may limit what one command erases: then its answer
/// holds that limit, and there may be more to erase.
pub(crate) async fn erase(context: &mut Context, arguments: &Arguments) -> Result<(), Stop> {
    let prefix = arguments.required_name("prefix");
    let wanted = arguments.unsigned("count").copied();
    if wanted == Some(0) {
        return Err(Stop::new(FAILED, "Count must be positive"));
    }
    let doing = "erasing cached Data";
    let mut erased: u64 = 0;
    loop {
        let parameters = ControlParameters {
            name: Some(prefix.clone()),
            count: wanted.map(|wanted| wanted - erased),
            ..ControlParameters::default()
        };
        let step = context.control("cs", "erase", &parameters).await.map_err(|error| error.when(doing))?;
        let count = required(step.count, "Count", doing)?;
        erased = erased.saturating_add(count);
        let is_enough = wanted.is_some_and(|wanted| erased >= wanted);
        // A forwarder that erases nothing and yet says there is more would keep us for ever.
        if step.capacity.is_none() || is_enough || count == 0 {
            break;
        }
    }
    let mut attributes = Attributes::in_one_line();
    attributes.add("prefix", &prefix).add("count", erased);
    context.out += &format!("cs-erased {}\n", attributes.take());
    Ok(())
}
