//! Turns repetitions into rows, headline and notes.

use namewire_repo::store::index::Index;

use super::clients::WINDOW;
use super::store_alone::WRITE_BATCH;
use super::stores::Subject;
use super::{ALONE, BENCHMARK, BULK_STACK, HOSTED, PYTHON, READS, Run, STACK, STACK_TWO, Step, WRITES};
use crate::experiment::{Outcome, Samples};
use crate::record::Row;

/// Headlines that are rates: case, subject, metric.
const RATES: [(&str, &str, &str, &str); 7] = [
    ("embedded_reads", STACK, Subject::Embedded.label(), READS),
    ("embedded_writes", STACK, Subject::Embedded.label(), WRITES),
    ("embedded_2_clients_reads", STACK_TWO, Subject::Embedded.label(), READS),
    ("embedded_2_clients_writes", STACK_TWO, Subject::Embedded.label(), WRITES),
    ("embedded_bulk_writes", BULK_STACK, Subject::Embedded.label(), WRITES),
    ("hosted_reads", STACK, HOSTED, READS),
    ("hosted_writes", STACK, HOSTED, WRITES),
];

/// Headlines by the first words of their keys, and the steps that they depend on. The repetitions of these follow each
/// other when they are measured again.
const GROUPS: [(&[&str], &[Step]); 5] = [
    (
        &["redis_share", "redis_indexed_share"],
        &[Step::Alone(Subject::Redis(Index::None)), Step::Alone(Subject::Redis(Index::Stored)), Step::Benchmark],
    ),
    (&["embedded_reads", "embedded_writes", "reads_over"], &[Step::Stack(Subject::Embedded, 1), Step::Python]),
    (&["embedded_2_clients"], &[Step::Stack(Subject::Embedded, 2)]),
    (&["embedded_bulk"], &[Step::Bulk(Subject::Embedded)]),
    (&["hosted"], &[Step::Hosted]),
];

/// The steps behind headlines that are refused because they spread.
pub(super) fn unsteady_steps(run: &Run<'_>) -> Vec<&'static [Step]> {
    let notes = outcome(run).notes;
    let is_refused =
        |word: &&str| notes.iter().any(|note| note.starts_with(&format!("`{word}")) && note.contains("spread"));
    GROUPS.iter().filter(|(words, _)| words.iter().any(is_refused)).map(|(_, steps)| *steps).collect()
}

/// The results of the run.
pub(super) fn outcome(run: &Run<'_>) -> Outcome {
    let data = run.data;
    let rows = run.table.rows();
    let mut outcome = Outcome::default();
    for (key, case, subject, metric) in RATES {
        outcome.add_steady(key, &samples(&rows, case, subject, metric));
    }
    add_shares(&rows, &mut outcome);
    add_python(&rows, &mut outcome);
    outcome.notes.extend([
        format!(
            "{data} Data of 100 bytes of content unless the case says otherwise. A reader has {WINDOW} Interests in \
             flight; a store alone is asked for {WINDOW} names or given {WRITE_BATCH} changes at once, and \
             redis-benchmark has as many requests in flight."
        ),
        format!(
            "Clients are threads of the lab; router, repository and Redis are processes of their own. All share {} \
             processors.",
            std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
        ),
        "The embedded store and SQLite wait for the disk at each commit; Redis has nothing on the disk.".to_owned(),
    ]);
    outcome.rows = rows;
    outcome
}

/// Our Redis store against `redis-benchmark`, repetition by repetition.
fn add_shares(rows: &[Row], outcome: &mut Outcome) {
    let (plain, indexed) = (Subject::Redis(Index::None).label(), Subject::Redis(Index::Stored).label());
    let mut smallest: Option<f64> = None;
    for (key, subject, metric) in [
        ("redis_share_reads", plain, READS),
        ("redis_share_writes", plain, WRITES),
        ("redis_indexed_share_writes", indexed, WRITES),
    ] {
        let share = samples(rows, ALONE, subject, metric).over(&samples(rows, ALONE, BENCHMARK, metric));
        if share.median().is_none() {
            continue;
        }
        outcome.add_steady(key, &share);
        if subject == plain {
            let share = outcome.headline.get(key).copied();
            smallest = share.map(|share| smallest.map_or(share, |smallest| smallest.min(share)));
        }
    }
    let has_both = outcome.headline.contains_key("redis_share_reads");
    if let (Some(smallest), true) = (smallest, has_both) {
        outcome.headline.insert("redis_share".to_owned(), smallest);
        outcome.notes.push(
            "`redis_share` is the smaller of the shares of reads and writes, of the store without an index. Our values \
             are whole Data under their names, some 200 bytes; those of redis-benchmark have 100."
                .to_owned(),
        );
    }
}

fn add_python(rows: &[Row], outcome: &mut Outcome) {
    let python = samples(rows, STACK, PYTHON, READS);
    let ratio = samples(rows, STACK, Subject::Embedded.label(), READS).over(&python);
    if let (Some(python), Some(_)) = (python.median(), ratio.median()) {
        outcome.add_steady("reads_over_python_repo", &ratio);
        outcome
            .notes
            .push(format!("ndn-python-repo, over SQLite and with fewer Data, answers {python:.0} reads a second."));
    }
}

/// The repetitions behind a row; none if it was refused.
fn samples(rows: &[Row], case: &str, subject: &str, metric: &str) -> Samples {
    let row = rows.iter().find(|row| (&*row.case, &*row.subject, &*row.metric) == (case, subject, metric));
    row.and_then(|row| row.value.as_ref()).map_or(&[][..], |value| &value.samples).iter().copied().collect()
}
