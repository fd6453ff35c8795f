//! How ways look in a terminal.
//!
//! ```text
//!  1  /r1          0.21 ms  /site, best-route to face 262 (udp4://192.0.2.2:6363)
//!  2  *                     no answer: not Namewire, or it refuses
//!  3  /r3          1.40 ms  /site/film, an application
//! an application at /r3 serves /site/film
//! ```

use crate::{
    ending::{Ending, warnings},
    hop::{Answer, Hop, Route},
};
use namewire_client::ReplyCode;
use namewire_packet::nfd::ProbeNextHop;
use std::fmt::Write as _;

/// Next hops that a line shows.
const SHOWN: usize = 4;

/// The hops of all ways, then what ends the first, and what looks wrong.
pub fn text(routes: &[Route], ending: &Ending) -> String {
    let width = routes.iter().flat_map(|route| &route.hops).map(|hop| router(hop).len()).max().unwrap_or(1);
    let mut text = String::new();
    for route in routes {
        if let Some(branch) = &route.branch {
            let _ = writeln!(text, "by face {} of hop {} ({}):", branch.face_id, branch.distance, branch.router);
        }
        route.hops.iter().for_each(|hop| {
            let _ = writeln!(text, "{}", line(hop, width));
        });
        if route.branch.is_some() && route.hops.is_empty() {
            text += "    nothing answers\n";
        }
    }
    let _ = writeln!(text, "{}", ending.reason);
    routes.first().map(warnings).unwrap_or_default().iter().for_each(|warning| {
        let _ = writeln!(text, "warning: {warning}");
    });
    text
}

/// One hop.
pub fn line(hop: &Hop, width: usize) -> String {
    let (distance, router) = (hop.distance, router(hop));
    let rtt = hop.answer.as_ref().map_or(String::new(), |answer| format!("{:.2} ms", answer.rtt_ms));
    format!("{distance:>2}  {router:<width$}  {rtt:>9}  {}", says(hop)).trim_end().to_owned()
}

fn router(hop: &Hop) -> &str {
    hop.answer.as_ref().map_or("*", |answer| answer.router.as_str())
}

fn says(hop: &Hop) -> String {
    match (&hop.answer, hop.nack) {
        (Some(answer), _) => whereto(answer),
        (None, Some(reason)) => format!("Nack {reason}"),
        (None, None) => "no answer: not Namewire, or it refuses".to_owned(),
    }
}

fn whereto(answer: &Answer) -> String {
    let prefix = answer.prefix.as_deref().unwrap_or("no route");
    let strategy = answer.strategy.as_deref().unwrap_or("its strategy");
    match answer.code {
        ReplyCode::Forwarder => "the target".to_owned(),
        ReplyCode::Object => "in its Content Store".to_owned(),
        ReplyCode::Application => format!("{prefix}, an application"),
        ReplyCode::HopLimit if answer.prefix.is_none() => prefix.to_owned(),
        ReplyCode::HopLimit => {
            let usable: Vec<&ProbeNextHop> = answer.usable().collect();
            let shown: Vec<String> = usable.iter().take(SHOWN).map(|hop| next_hop(hop, usable.len() > 1)).collect();
            let more = usable.len().saturating_sub(SHOWN);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            match usable.is_empty() {
                true => format!("{prefix}, no next hop"),
                false => format!("{prefix}, {strategy} to {}{more}", shown.join(", ")),
            }
        }
    }
}

fn next_hop(hop: &ProbeNextHop, has_others: bool) -> String {
    let chosen = (hop.is_chosen && has_others).then_some("chosen");
    let about: Vec<&str> =
        [hop.remote_uri.as_deref(), chosen, hop.is_silent.then_some("silent")].into_iter().flatten().collect();
    let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
    format!("face {}{about}", hop.face_id)
}
