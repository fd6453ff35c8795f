//! `prefetch`
mod forwarder;
mod traffic;

use crate::experiment::{Context, Experiment, Outcome, Scale};
use crate::synthetic_names::{PAPER_PREFIXES, SyntheticNames};
use forwarder::{Cycles, Forwarder, Setup};
use namewire_tables::{Fib, HashKey, NextHop};

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "prefetch",
    source: "Takemasa17/19 Fig. 4.5-4.7",
    question: "how fast is the engine when every packet misses every cache?",
    needs: "quick: 2 minutes, 6 GiB",
    takes_names: false,
    takes_trace: false,
    run,
};

fn run(context: &Context) -> anyhow::Result<Outcome> {
    let (prefixes, outstanding, store) = match context.scale {
        Scale::Smoke => (20_000, 8192, 8 << 20),
        _ => (PAPER_PREFIXES, 1 << 20, 512 << 20),
    };
    let names = SyntheticNames::new(1, prefixes);
    let key = HashKey::from_seed(1);
    let t = std::time::Instant::now();
    let mut fib = Fib::new(prefixes as usize + 1, key);
    let mut name = Vec::new();
    for n in 0..prefixes {
        names.write_prefix(n, &mut name);
        fib.insert(&name, &[NextHop { face: 301, cost: n % 4 }], 0, false)?;
    }
    eprintln!("fib {:?}", t.elapsed());
    let setup = Setup { names, outstanding, store_bytes: store, store_packets: 4 << 20, tokens: false, key, first_name: 0 };
    let mut f = Forwarder::new(setup, 0)?;
    f.fill(&fib, &mut || Ok(()))?;
    eprintln!("filled {:?} {} stored {:?}", t.elapsed(), f.stored(), f.packet_octets());
    for _ in 0..(if prefixes < 100_000 { 2 } else { 5 }) {
        let mut total = Cycles::default();
        for _ in 0..100 {
            total.add(f.exchange(&fib, 16)?);
        }
        eprintln!("I {} D {}", total.interests / total.packets, total.data / total.packets);
    }
    f.check()?;
    Ok(Outcome::default())
}
