//! The repetitions of many quantities, and the rows of a record that they become.

use crate::experiment::Samples;
use crate::record::Row;

/// Repetitions by case, subject and metric, in the order in which these first come.
#[derive(Default)]
pub struct SampleTable {
    quantities: Vec<Quantity>,
}

struct Quantity {
    case: String,
    subject: String,
    metric: &'static str,
    unit: &'static str,
    samples: Samples,
}

impl SampleTable {
    /// The repetitions of a quantity; none if it is new.
    pub fn samples(&mut self, case: &str, subject: &str, metric: &'static str, unit: &'static str) -> &mut Samples {
        let is_it = |known: &Quantity| (&*known.case, &*known.subject, known.metric) == (case, subject, metric);
        let place = self.quantities.iter().position(is_it).unwrap_or_else(|| {
            let (case, subject) = (case.to_owned(), subject.to_owned());
            self.quantities.push(Quantity { case, subject, metric, unit, samples: Samples::default() });
            self.quantities.len() - 1
        });
        &mut self.quantities[place].samples
    }

    /// Adds one repetition.
    pub fn add(&mut self, case: &str, subject: &str, metric: &'static str, unit: &'static str, value: f64) {
        self.samples(case, subject, metric, unit).add(value);
    }

    /// Adds the median of each of these quantities as one repetition.
    pub fn add_medians(&mut self, of: Self) {
        for Quantity { case, subject, metric, unit, samples } in of.quantities {
            if let Some(median) = samples.median() {
                self.add(&case, &subject, metric, unit, median);
            }
        }
    }

    /// The repetitions of a quantity, if there are any.
    pub fn find(&self, case: &str, subject: &str, metric: &str) -> Option<&Samples> {
        let is_it = |known: &&Quantity| (&*known.case, &*known.subject, known.metric) == (case, subject, metric);
        self.quantities.iter().find(is_it).map(|quantity| &quantity.samples)
    }

    /// Forgets all repetitions of a subject in a case, to measure it again.
    pub fn forget(&mut self, case: &str, subject: &str) {
        let of_it = |known: &&mut Quantity| (&*known.case, &*known.subject) == (case, subject);
        self.quantities.iter_mut().filter(of_it).for_each(|quantity| quantity.samples = Samples::default());
    }

    /// A row for each quantity.
    pub fn rows(&self) -> Vec<Row> {
        self.quantities
            .iter()
            .map(|quantity| {
                quantity.samples.row(&quantity.case, &quantity.subject, quantity.metric, quantity.unit, None)
            })
            .collect()
    }
}
