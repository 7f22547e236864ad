//! `InsightService`: the noise report.

use bellwether_proto::v1::{self, insight_service_server::InsightService};
use tonic::{Request, Response, Status, async_trait};

use super::convert::{
    time::{duration_from_ms, timestamp, to_millis},
    to_i32,
};
use crate::{
    domain::{
        HoldKind,
        noise::{NoiseBy, NoiseTally},
    },
    error::Error,
    ops::noise::{NoiseLine, NoiseReports, NoiseRequest, NoiseRows},
};

#[derive(Debug)]
pub struct InsightApi {
    pub(crate) reports: NoiseReports,
}

#[async_trait]
impl InsightService for InsightApi {
    async fn get_noise(
        &self,
        request: Request<v1::GetNoiseRequest>,
    ) -> Result<Response<v1::GetNoiseResponse>, Status> {
        let request = request.into_inner();
        let by = v1::NoiseBy::try_from(request.by);
        let (rows, by) = match by {
            Ok(v1::NoiseBy::Unspecified | v1::NoiseBy::Rule) => {
                (NoiseRows::Counted(NoiseBy::Rule), v1::NoiseBy::Rule)
            }
            Ok(by @ v1::NoiseBy::Trigger) => (NoiseRows::Counted(NoiseBy::Trigger), by),
            Ok(by @ v1::NoiseBy::Destination) => (NoiseRows::Counted(NoiseBy::Destination), by),
            Ok(by @ v1::NoiseBy::Contact) => (NoiseRows::Counted(NoiseBy::Contact), by),
            Ok(by @ v1::NoiseBy::EventName) => (NoiseRows::EventName, by),
            Err(_unknown) => {
                let message = format!(
                    "is {}; expected RULE, TRIGGER, DESTINATION, EVENT_NAME or CONTACT",
                    request.by
                );
                return Err(Error::invalid("by", message).into());
            }
        };
        let noise_request = NoiseRequest {
            start_ms: request.start.as_ref().map(to_millis),
            end_ms: request.end.as_ref().map(to_millis),
            rows,
            time_zone: request.time_zone,
        };
        let report = self.reports.report(&noise_request).await?;
        let has_holds = matches!(by, v1::NoiseBy::Rule | v1::NoiseBy::EventName);
        let rows = report.rows.into_iter();
        Ok(Response::new(v1::GetNoiseResponse {
            rows: rows.map(|it| row_to_wire(it, has_holds)).collect(),
            by: by.into(),
            start_time: Some(timestamp(report.start_ms)),
            end_time: Some(timestamp(report.end_ms)),
            events_start_time: Some(timestamp(report.events_start_ms)),
            left_out_count: Some(to_i32(report.left_out)),
        }))
    }
}

fn row_to_wire(line: NoiseLine, has_holds: bool) -> v1::NoiseRow {
    let numbers = &line.numbers;
    let of = |tally| Some(to_i32(numbers.get(tally)));
    let occurrences = numbers.get(NoiseTally::Occurrence);
    let acknowledged = numbers.get(NoiseTally::Acknowledged).min(occurrences);
    let skipped: Vec<(HoldKind, i64)> = numbers.skipped_by_hold().collect();
    let all_skipped: i64 = skipped.iter().map(|(_, count)| count).sum();
    let share = |part: i64| f64::from(to_i32(part)) / f64::from(to_i32(occurrences));
    let median = numbers.median_acknowledge_seconds();
    let skipped = skipped.into_iter();
    v1::NoiseRow {
        name: line.name,
        notification_count: of(NoiseTally::Notification),
        delivery_count: of(NoiseTally::Delivery),
        digested_count: of(NoiseTally::Digested),
        dry_run_count: of(NoiseTally::DryRun),
        skipped_count: has_holds.then(|| to_i32(all_skipped)),
        skipped_by_hold: skipped
            .map(|(kind, count)| (kind.as_str().to_owned(), to_i32(count)))
            .collect(),
        occurrence_count: of(NoiseTally::Occurrence),
        acknowledged_count: Some(to_i32(acknowledged)),
        acknowledged_share: (occurrences > 0).then(|| share(acknowledged)),
        median_acknowledge_time: median
            .map(|seconds| duration_from_ms(seconds.saturating_mul(1_000))),
        closed_soon_count: of(NoiseTally::ClosedSoon),
        never_acted_on_count: of(NoiseTally::NeverActedOn),
        night_count: Some(to_i32(line.night)),
        events: line
            .events
            .into_iter()
            .map(|(name, count)| v1::NoiseEvent {
                name,
                notification_count: Some(to_i32(count)),
            })
            .collect(),
    }
}
