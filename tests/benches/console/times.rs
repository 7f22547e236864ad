//! Repeated measurements, reported as two percentiles.

use std::time::Duration;

use crate::report::{Figure, Goal, Report};

/// Repeated measurements of one operation.
#[derive(Debug, Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// Returns a percentile in milliseconds.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let mut times = self.0.clone();
        times.sort_unstable();
        let at = (times.len() * percent / 100).min(times.len() - 1);
        times[at].as_secs_f64() * 1e3
    }

    /// Adds the median and the 95th percentile to the report, each with its goal in milliseconds
    /// and the value of the reference.
    pub(crate) fn add_to_report(
        &self,
        report: &mut Report,
        name: &str,
        goals: Option<[f64; 2]>,
        reference: Option<&Self>,
    ) {
        for (percent, at) in [(50, 0), (95, 1)] {
            let value = self.percentile(percent);
            let figure = Figure::new(format!("{name}, p{percent}"), value, "ms");
            let goal = goals.map_or(Goal::Nothing, |goals| Goal::Most(goals[at]));
            let beside = reference.map(|times| times.percentile(percent));
            report.add(figure.goal(goal).beside("empty program", beside));
        }
    }
}

impl FromIterator<Duration> for Times {
    fn from_iter<I: IntoIterator<Item = Duration>>(times: I) -> Self {
        Self(times.into_iter().collect())
    }
}
