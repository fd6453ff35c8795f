//! Model sweep: which numbers of the fitted generator meet which facts of the paper.
//!
//! Each model differs from the fitted one in one number. Its population stands for 63M, and a sample of its descriptors
//! for 10M, both smaller here. Counts only: nothing is timed.

use super::Size;
use super::forms::Form;
use super::subject::Subject;
use crate::experiment::{Context, Outcome};
use crate::tag_sets::{FITTED, StoredSets, UserModel, Users};

/// Steps of the progress bar.
pub(super) const STEPS: usize = MODELS.len();

const MODELS: [(&str, UserModel); 17] = [
    ("fitted", FITTED),
    ("no shared tag", UserModel { shared: &[], ..FITTED }),
    ("1 shared tag", UserModel { shared: &["tagnet"], ..FITTED }),
    ("3 shared tags", UserModel { shared: &["tagnet", "public", "user"], ..FITTED }),
    ("2 other shared tags", UserModel { shared: &["tagnet", "application"], ..FITTED }),
    ("2 more shared tags", UserModel { shared: &["service", "user"], ..FITTED }),
    ("1 language", UserModel { languages: 1, ..FITTED }),
    ("4 languages", UserModel { languages: 4, ..FITTED }),
    ("20 languages", UserModel { languages: 20, ..FITTED }),
    ("exponent 0.8", UserModel { exponent: 0.8, ..FITTED }),
    ("exponent 1.0", UserModel { exponent: 1.0, ..FITTED }),
    ("exponent 1.1", UserModel { exponent: 1.1, ..FITTED }),
    ("exponent 1.3", UserModel { exponent: 1.3, ..FITTED }),
    ("1 topic", UserModel { topics_max: 1, ..FITTED }),
    ("1 or 2 topics", UserModel { topics_max: 2, ..FITTED }),
    ("1 to 4 topics", UserModel { topics_max: 4, ..FITTED }),
    ("1 to 5 topics", UserModel { topics_max: 5, ..FITTED }),
];

/// The facts of one table.
#[derive(Clone, Copy)]
struct Facts {
    saved_percent: f64,
    cells: f64,
    /// Of FAS and FLS.
    accesses: [f64; 2],
}

impl Facts {
    fn of(context: &Context, scans: usize, source: &Users, stored: StoredSets) -> anyhow::Result<Self> {
        let subject = Subject::of_stored(context, scans, source, stored, &[Form::Paper])?;
        let descriptors = subject.compression.descriptors.max(1) as f64;
        Ok(Facts {
            saved_percent: subject.compression.permutation_percent,
            cells: subject.table(Form::Paper)?.cells().unwrap_or(0) as f64 / descriptors,
            accesses: subject.accesses(Form::Paper)?,
        })
    }

    fn all_over_largest(&self) -> f64 {
        self.accesses[0] / self.accesses[1]
    }
}

/// Counts every model.
pub(super) fn run(context: &Context, size: &Size, outcome: &mut Outcome) -> anyhow::Result<()> {
    let (mut falling, mut ratios) = (0, Vec::new());
    for (title, model) in MODELS {
        context.begin_step(&format!("model: {title}"))?;
        let vocabulary = model.vocabulary.min(size.topic_vocabulary_max);
        let source = Users::with_model(title.to_owned(), context.seed, UserModel { vocabulary, ..model });
        let all = StoredSets::draw(&source, size.model_population)?;
        let sample = all.sample(size.model_sample.min(all.numbered.len()), context.seed);
        let [small, large] = [sample, all].map(|stored| Facts::of(context, size.scans, &source, stored));
        let (small, large) = (small?, large?);
        let case = format!("model, {title}");
        for (subject, facts) in [("sample", small), ("population", large)] {
            let mut add =
                |metric: &str, unit: &str, value: f64| outcome.add_value(&case, subject, (metric, unit), value);
            add("memory saved by bit permutation", "%", facts.saved_percent);
            add("cells", "for each descriptor", facts.cells);
            add("accesses, FAS", "for each packet", facts.accesses[0]);
            add("accesses, FAS over FLS", "times", facts.all_over_largest());
        }
        let slowdown = [0, 1].map(|goal| large.accesses[goal] / small.accesses[goal]);
        outcome.add_value(
            &case,
            "population",
            ("accesses over those of the sample, mean", "times"),
            (slowdown[0] + slowdown[1]) / 2.0,
        );
        ratios.push(small.all_over_largest());
        falling += u32::from(large.all_over_largest() < small.all_over_largest());
    }
    let (least, most) =
        ratios.iter().fold((f64::MAX, 0.0_f64), |(least, most), &ratio| (least.min(ratio), most.max(ratio)));
    outcome.notes.push(format!(
        "Models: in {falling} of {} the larger table has the lower ratio of FAS to FLS accesses, as the paper says of \
         its speeds (1.83 with 10M, 1.49 with 63M). The sample's ratio is between {least:.2} and {most:.2}: a sample \
         has fewer subsets of a packet than the whole, so that FLS has less to leave out.",
        MODELS.len()
    ));
    Ok(())
}
