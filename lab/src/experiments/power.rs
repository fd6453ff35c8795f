//! What do fewer cycles per packet save of a router's power?
//!
//! Source: Takemasa19 ch. 6 (Eqs. 6.1-6.15, Tables 6.1-6.3, Figs. 6.1-6.4, 6.9, 6.10). Nothing is measured here: the
//! run computes the model ([`namewire_power`]) and
//!
//! - the curves of Figs. 6.1-6.4 from the parameters of the three servers, whether Eq. 6.8 gives the power that Tables
//!   6.1-6.3 print for each frequency, with the table's ν and with the text's, and the straight lines of §6.3.3;
//! - the case study of §6.5 under the assumptions of [`namewire_power::case_study`], and under each other reading;
//! - the same server under other routers: ours with cycles and bytes of the kept record of `packet-costs`, and NFD with
//!   the processor time per packet that `lab/papers/peers.json` has.
//!
//! Limits: cycles of another processor count as cycles of server 2. Ours are measured with Data of 250 bytes and NFD's
//! with Data of 100, so larger Data would cost both more. The bytes of memory that NFD moves are unknown, so its rows
//! lack their power.

use anyhow::Context as _;
use namewire_power::case_study::{Assumptions, PapersServer, PerPacket, Study, by_packet};
use namewire_power::cpu::watts_at_frequency;
use namewire_power::fit;
use namewire_power::flows::{Blocks, Router};

use crate::experiment::{Context, Outcome};
use crate::papers;
use crate::peers;
use crate::record::{Record, Row};

pub(super) const FILE: &str = include_str!("power.toml");

/// Loads of a core, in twentieths.
const STEPS: u32 = 20;
/// Data rates of Fig. 6.9, in Gb/s.
const GBPS: [f64; 13] = [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0, 58.0];
const WATTS: &str = "W";

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    context.plan_steps(1);
    context.begin_step("model")?;
    let study = Study::from_json(papers::TAKEMASA_19)?;
    let mut outcome = Outcome::default();
    for server in &study.chapter.servers {
        of_processors(server, &mut outcome)?;
    }
    case_study(&study, &mut outcome)?;
    readings(&study, &mut outcome)?;
    other_routers(&study, &mut outcome)?;
    Ok(outcome)
}

/// Figs. 6.1-6.4 and Tables 6.1-6.3.
fn of_processors(server: &PapersServer, outcome: &mut Outcome) -> anyhow::Result<()> {
    let PapersServer { model, chassis_other_reading_w, nu, nu_other_reading, least_w, line, .. } = server;
    let processors = &model.processors;
    let busy_w = processors.watts(processors.capacity_hz()).context("within the capacity")?;
    let chassis = [("the table's Φ_chassis", Some(model.chassis_w)), ("the other Φ_chassis", *chassis_other_reading_w)];
    for (which, chassis_w) in chassis {
        let Some(chassis_w) = chassis_w else { continue };
        outcome.add_value(&model.name, which, ("power of the idle computer", WATTS), chassis_w);
        outcome.add_value(&model.name, which, ("power with all cores busy", WATTS), chassis_w + busy_w);
    }
    let fastest = processors.first_core.last().context("a server without P-states")?;
    for (which, nu) in [(Some("the table's ν"), Some(*nu)), (Some("the text's ν"), *nu_other_reading)] {
        let (Some(which), Some(nu)) = (which, nu) else { continue };
        let mut worst: f64 = 0.0;
        for state in &processors.first_core {
            let watts = watts_at_frequency(*least_w, fastest.watts, nu, state.ghz / fastest.ghz);
            let case = format!("{}, one core at {} GHz", model.name, state.ghz);
            outcome.add_value(&case, &format!("Eq. 6.8, {which}"), ("greatest power", WATTS), watts);
            worst = worst.max((watts - state.watts).abs());
        }
        outcome.add_value(&model.name, &format!("Eq. 6.8, {which}"), ("largest difference to the table", WATTS), worst);
    }
    for state in &processors.first_core {
        let case = format!("{}, one core at {} GHz", model.name, state.ghz);
        outcome.add_value(&case, "Takemasa19", ("greatest power", WATTS), state.watts);
        for share in shares() {
            let watts = state.watts * share.powf(state.sigma);
            outcome.add_value(&case, &format!("load {share:.2}"), ("power of the core", WATTS), watts);
        }
    }
    let fitted = fit::frequencies(&processors.first_core)?;
    outcome.add_value(&model.name, "fitted to the table", ("ν", "exponent"), fitted.curve.nu);
    outcome.add_value(&model.name, "fitted to the table", ("Φ_amin", WATTS), fitted.curve.least_w);
    outcome.add_value(&model.name, "fitted to the table", ("R²", "share"), fitted.r_squared);

    let cores = processors.cores() as f64 * f64::from(processors.processors);
    let mut points = Vec::new();
    for step in 1..=(cores as u32) * STEPS {
        let working = f64::from(step) / f64::from(STEPS);
        let watts = processors.watts(working * processors.highest_hz()).context("within the capacity")?;
        outcome.add_value(&model.name, &format!("{working:.2} cores' work"), ("power of the processors", WATTS), watts);
        points.push((working, watts));
    }
    // "In the case that two or more cores are active", in one processor.
    let one_processor = processors.cores() as f64;
    points.retain(|(working, _)| (1.0..=one_processor).contains(working));
    let fitted = fit::line(&points)?;
    for (subject, slope, intercept, r_squared) in [
        ("computed", fitted.curve.slope, fitted.curve.intercept, fitted.r_squared),
        ("Takemasa19", line.slope, line.intercept, line.r_squared),
    ] {
        outcome.add_value(&model.name, subject, ("slope of the line", "W per core"), slope);
        outcome.add_value(&model.name, subject, ("intercept of the line", WATTS), intercept);
        outcome.add_value(&model.name, subject, ("R² of the line", "share"), r_squared);
    }
    Ok(())
}

fn shares() -> impl Iterator<Item = f64> {
    (1..=STEPS).map(|step| f64::from(step) / f64::from(STEPS))
}

/// Figs. 6.7-6.10.
fn case_study(study: &Study, outcome: &mut Outcome) -> anyhow::Result<()> {
    let plain = Assumptions::default();
    for (name, router) in [("naive", study.naive(&plain)), ("optimized", study.optimized(&plain))] {
        for ((block, cycles), (_, bytes)) in router.cycles.named().into_iter().zip(router.memory_bytes.named()) {
            outcome.add_value(&format!("{name} router"), block, ("cycles", "per execution"), cycles);
            outcome.add_value(&format!("{name} router"), block, ("memory", "bytes per execution"), bytes);
        }
        let cycles = router.cycles.per_interest(router.hit, router.insertion);
        outcome.add_value(&format!("{name} router"), "an Interest and its Data", ("cycles", "per Interest"), cycles);
        for gbps in GBPS {
            let case = format!("{gbps} Gb/s of Data");
            let power = study.power(&router, gbps, &plain).with_context(|| format!("{name} at {gbps} Gb/s"))?;
            let load = router.load(study.interests_per_s(gbps));
            let cores = study.server(&plain).processors.cores_needed(load.cycles_per_s);
            outcome.add_value(&case, name, ("power", WATTS), power.total_w());
            outcome.add_value(&case, name, ("cores' work", "cores"), cores);
            for (device, watts) in [
                ("chassis", power.chassis_w),
                ("processor", power.cpu_w),
                ("memory", power.memory_w),
                ("network cards", power.nic_w),
            ] {
                outcome.add_value(&case, &format!("{name}, {device}"), ("power by device", WATTS), watts);
            }
        }
    }
    Ok(())
}

/// The saving under every reading, and what each assumption is worth.
fn readings(study: &Study, outcome: &mut Outcome) -> anyhow::Result<()> {
    let gbps = study.chapter.case_study.gbps;
    let saving = |assumptions: &Assumptions| {
        study.saving(gbps, assumptions).with_context(|| format!("no power at {gbps} Gb/s under {assumptions:?}"))
    };
    let plain = Assumptions::default();
    let as_assumed = saving(&plain)?;
    let case = format!("{gbps} Gb/s of Data, saving");
    let metric = ("saved of the naive router's power", "share");
    outcome.add_value(&case, "as assumed", metric, as_assumed);
    outcome.add_value(&case, "Takemasa19", metric, study.chapter.case_study.saving);
    let (mut least, mut most) = (as_assumed, as_assumed);
    for (name, reading) in Assumptions::readings() {
        let saved = saving(&reading)?;
        outcome.add_value(&case, name, metric, saved);
        if !reading.chassis_is_other {
            (least, most) = (least.min(saved), most.max(saved));
        }
    }
    let other = saving(&Assumptions { chassis_is_other: true, ..plain })?;
    let table_3_1 = study.naive_by_table_3_1(&plain).load(study.interests_per_s(gbps));
    let cores = study.server(&plain).processors.cores_needed(table_3_1.cycles_per_s);
    outcome.headline.extend(
        [
            ("power_saving", as_assumed),
            ("power_saving_other_reading", other),
            ("power_saving_least", least),
            ("power_saving_most", most),
            ("power_saving_paper", study.chapter.case_study.saving),
            ("cores_by_table_3_1", cores),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    );
    let power = |router: &Router| study.power(router, gbps, &plain).context("within the capacity");
    let (naive, optimized) = (power(&study.naive(&plain))?, power(&study.optimized(&plain))?);
    outcome.notes = vec![
        format!(
            "The saving is {:.1} % where the thesis has {:.1} %. With one other reading of one assumption it is {:.1} to \
             {:.1} %; with a chassis of 68.90 W, {:.1} %.",
            as_assumed * 100.0,
            study.chapter.case_study.saving * 100.0,
            least * 100.0,
            most * 100.0,
            other * 100.0
        ),
        format!(
            "Of it, the processor saves {:.1} W, the memory {:.1} W, the network cards {:.1} W. The thesis finds that the memory \
             matters little; by the bytes of its Table 3.1 it matters.",
            naive.cpu_w - optimized.cpu_w,
            naive.memory_w - optimized.memory_w,
            naive.nic_w - optimized.nic_w
        ),
        "Φ at each frequency determines ν only if ν is small: from some 20 on, Eq. 6.8 is as good as a geometric mean, and \
         any greater ν fits the tables of servers 1 and 2 as well. The text's ν of 4.22 for server 3 contradicts its Table \
         6.3, which has 2.58 and powers that follow from it."
            .to_owned(),
        format!(
            "With Table 3.1 the naive router needs {cores:.2} cores at {gbps} Gb/s, and server 2 has four: the model has no \
             power for it."
        ),
        "The assumptions are in the header of `lab/src/power/case_study.rs`, where they were written before the first result."
            .to_owned(),
    ];
    Ok(())
}

/// Our router and NFD on the case study's server.
fn other_routers(study: &Study, outcome: &mut Outcome) -> anyhow::Result<()> {
    let plain = Assumptions::default();
    let server = study.server(&plain);
    let record: Record = serde_json::from_str(PACKET_COSTS)?;
    // Rows, because a headline that spreads is refused.
    let row = |case: &str, metric: &str| {
        let is_it = |row: &&Row| (&*row.case, &*row.metric) == (case, metric) && OURS.contains(&&*row.subject);
        let found = record.rows.iter().find(is_it).and_then(|row| Some(row.value.as_ref()?.median));
        found.with_context(|| format!("packet-costs has no {case}, {metric}"))
    };
    let naive = study.naive(&plain);
    let router = |cycles: &PerPacket, memory_bytes: Blocks| Router {
        cycles: by_packet(cycles),
        memory_bytes,
        hit: naive.hit,
        insertion: naive.insertion,
    };
    let of_packets = |metrics: &[&str]| {
        let sum = |case: &str| metrics.iter().map(|metric| row(case, metric)).sum::<anyhow::Result<f64>>();
        anyhow::Ok(PerPacket {
            interest_miss: sum("Interest, miss")?,
            interest_hit: sum("Interest, hit")?,
            data: sum("Data by name")?,
        })
    };
    let memory_bytes = of_packets(&["bytes fetched, by stage", "bytes written, by stage"])?;
    let ours = router(&of_packets(&["whole"])?, by_packet(&memory_bytes));
    let nfd_cycles = nfd_cycles_per_packet()?;
    let nfd_costs = PerPacket { interest_miss: nfd_cycles, interest_hit: nfd_cycles, data: nfd_cycles };
    // No figure says how many bytes of memory NFD moves.
    let nfd = router(&nfd_costs, Blocks::default());
    for (name, router) in [("naive, Takemasa19", naive), ("ours", ours), ("NFD, without the power of its memory", nfd)]
    {
        let cycles = router.cycles.per_interest(router.hit, router.insertion);
        // The rate that the server's cores sustain.
        let most_gbps = server.processors.capacity_hz() / cycles * study.chapter.case_study.data_bytes * 8.0 / 1e9;
        let case = "server 2 under other routers";
        outcome.add_value(case, name, ("cycles", "per Interest"), cycles);
        outcome.add_value(case, name, ("greatest Data rate", "Gb/s"), most_gbps);
        for gbps in [0.5, 10.0, 58.0] {
            let Some(power) = server.power(router.load(study.interests_per_s(gbps))) else { continue };
            outcome.add_value(&format!("{case}, {gbps} Gb/s"), name, ("power", WATTS), power.total_w());
            outcome.add_value(&format!("{case}, {gbps} Gb/s"), name, ("processor", WATTS), power.cpu_w);
            outcome.add_value(&format!("{case}, {gbps} Gb/s"), name, ("energy", "nJ per bit"), power.total_w() / gbps);
        }
    }
    Ok(())
}

/// The subjects of the rows of `packet-costs` that are our router's whole packet, as it runs.
const OURS: [&str; 2] = ["vector", "all stages"];

/// The kept record of `packet-costs`.
const PACKET_COSTS: &str = include_str!("../../record/packet-costs.json");

/// Processor time of a packet of 100 bytes over Unix sockets, in cycles of that machine.
fn nfd_cycles_per_packet() -> anyhow::Result<f64> {
    const TSC_HZ: f64 = 2.6e9;
    let all = peers::for_experiment("router-sockets")?;
    let figures = all.iter().flat_map(|source| &source.figures);
    let microseconds = figures
        .filter(|figure| figure.case == "unix-100" && figure.metric == "cpu")
        .find_map(|figure| figure.values.get("NFD"))
        .context("peers.json has no processor time of NFD")?;
    Ok(microseconds * 1e-6 * TSC_HZ)
}
