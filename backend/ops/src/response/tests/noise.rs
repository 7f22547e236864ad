//! Tests of the noise report by contact: who was paged, and whether the page was acknowledged.

use super::*;
use crate::{
    domain::noise::{NoiseBy, NoiseTally},
    noise::{NoiseReports, NoiseRequest, NoiseRows},
};

#[tokio::test]
async fn only_paged_contacts_have_a_row() {
    let steps: [&[Target]; 3] = [&[contact("ana")], &[contact("ben")], &[contact("cleo")]];
    let world = world(&steps, |_| {}).await;
    world
        .store
        .begin_counting(world.clock.now_ms())
        .await
        .unwrap();
    world.event("db-1", |_| {}).await;
    world.wait(5 * MINUTE).await;
    world.wait(MINUTE).await;
    world.acknowledge(None).await;
    world.wait(60 * MINUTE).await;
    let request = NoiseRequest {
        start_ms: None,
        end_ms: None,
        rows: NoiseRows::Counted(NoiseBy::Contact),
        time_zone: String::new(),
    };
    let reports = NoiseReports::new(world.store.clone(), world.clock());
    let report = reports.report(&request).await.unwrap();
    let rows = report.rows.iter().map(|row| {
        let of = |tally| row.numbers.get(tally);
        let reached = [NoiseTally::Occurrence, NoiseTally::Acknowledged].map(of);
        let within = row.numbers.median_acknowledge_seconds();
        (
            &*row.name,
            of(NoiseTally::Notification) > 0,
            reached,
            within,
        )
    });
    let rows: Vec<_> = rows.collect();
    let ten_minutes = Some(600);
    assert_eq!(
        rows,
        [
            ("ana", true, [1, 1], ten_minutes),
            ("ben", true, [1, 1], ten_minutes)
        ]
    );
}
