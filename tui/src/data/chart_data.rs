//! Statistics of the service for the overview.

use bellwether_proto::{
    cloud::Severity,
    v1::{GetStatisticsResponse, GroupEventsResponse, NamedStatistics},
};

use super::span_ms;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ChartPeriod {
    #[default]
    Hour,
    Day,
    Month,
}

impl ChartPeriod {
    pub(crate) const ALL: [Self; 3] = [Self::Hour, Self::Day, Self::Month];

    /// Returns the next longer period; the shortest after the longest.
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Hour => Self::Day,
            Self::Day => Self::Month,
            Self::Month => Self::Hour,
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Hour => "1 h",
            Self::Day => "24 h",
            Self::Month => "30 d",
        }
    }

    pub(crate) fn seconds(self) -> i64 {
        match self {
            Self::Hour => 3_600,
            Self::Day => 24 * 3_600,
            Self::Month => 30 * 24 * 3_600,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChartData {
    pub(crate) back: ChartPeriod,
    pub(crate) statistics: GetStatisticsResponse,
    /// Open events by name and by host; `None` if the service does not report them.
    pub(crate) names: Option<GroupEventsResponse>,
    pub(crate) hosts: Option<GroupEventsResponse>,
}

impl ChartData {
    pub(crate) fn step_minutes(&self) -> f64 {
        let step_ms = self.statistics.step.as_ref().map_or(60_000, span_ms);
        #[expect(clippy::cast_precision_loss, reason = "a few hours at most")]
        let minutes = step_ms.max(1) as f64 / 60_000.0;
        minutes
    }

    pub(crate) fn events(&self) -> Vec<(Severity, &[i32])> {
        let mut all: Vec<_> = self.statistics.events.iter().collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.severity));
        let columns = all.into_iter().map(|one| (one.severity(), &one.counts[..]));
        columns.collect()
    }

    pub(crate) fn destination(&self, name: &str) -> Option<&NamedStatistics> {
        let mut all = self.statistics.destinations.iter();
        all.find(|one| one.name == name)
    }
}
