//! Deliveries and obligations of the service that consoles are tried on.

use std::collections::BTreeMap;

use bellwether_proto::v1;
use tonic::{Request, Response, Status};

use super::{Answer, Shared};

#[tonic::async_trait]
impl v1::delivery_service_server::DeliveryService for Shared {
    async fn list_deliveries(
        &self,
        request: Request<v1::ListDeliveriesRequest>,
    ) -> Answer<v1::ListDeliveriesResponse> {
        let request = request.into_inner();
        let state = self.lock();
        let moment = |word| {
            let text = part(&request.filter, word)?;
            Some(text.parse::<jiff::Timestamp>().ok()?.as_second())
        };
        let (start, end) = (moment("since="), moment("until="));
        let fits = |row: &&v1::Delivery| {
            let made = row.create_time.map(|it| it.seconds);
            has_state(&request.filter, row)
                && start.is_none_or(|start| made >= Some(start))
                && end.is_none_or(|end| made < Some(end))
        };
        let deliveries = state.deliveries.iter().filter(fits).cloned().collect();
        Ok(Response::new(v1::ListDeliveriesResponse {
            warnings: Vec::new(),
            counts: None,
            deliveries,
            next_page_token: String::new(),
        }))
    }

    async fn get_delivery(
        &self,
        request: Request<v1::GetDeliveryRequest>,
    ) -> Answer<v1::GetDeliveryResponse> {
        let id = request.into_inner().id;
        let delivery = self
            .lock()
            .deliveries
            .iter()
            .find(|row| row.id == id)
            .cloned();
        let delivery = delivery.ok_or_else(|| Status::not_found("no such delivery"))?;
        Ok(Response::new(v1::GetDeliveryResponse {
            delivery: Some(delivery),
        }))
    }

    async fn retry_delivery(
        &self,
        _: Request<v1::RetryDeliveryRequest>,
    ) -> Answer<v1::RetryDeliveryResponse> {
        Ok(Response::new(v1::RetryDeliveryResponse::default()))
    }

    async fn cancel_delivery(
        &self,
        _: Request<v1::CancelDeliveryRequest>,
    ) -> Answer<v1::CancelDeliveryResponse> {
        Err(Status::failed_precondition("it has ended already"))
    }

    async fn retry_deliveries(
        &self,
        request: Request<v1::RetryDeliveriesRequest>,
    ) -> Answer<v1::RetryDeliveriesResponse> {
        let request = request.into_inner();
        let mut state = self.lock();
        let dead = i32::from(v1::delivery::State::Dead);
        let is_meant = |row: &v1::Delivery| match &request.filter {
            None => request.ids.contains(&row.id),
            Some(filter) if part(&filter.filter, "state=").is_none() => row.state == dead,
            Some(filter) => has_state(&filter.filter, row),
        };
        let meant = state.deliveries.iter_mut().filter(|row| is_meant(row));
        let fresh = meant.filter(|row| row.retried_as.is_empty());
        // A page of two, so that there are several.
        let pages = if request.dry_run { usize::MAX } else { 2 };
        let (mut done, mut destinations) = (0, BTreeMap::<String, i32>::new());
        let mut left = 0;
        for row in fresh {
            if done == pages {
                left += 1;
                continue;
            }
            done += 1;
            *destinations
                .entry(row.destination_name.clone())
                .or_default() += 1;
            if !request.dry_run {
                "01ARZ3NDEKTSV4RRFFQ69G5FAV".clone_into(&mut row.retried_as);
            }
        }
        let counted = |(destination_name, count)| v1::DestinationCount {
            destination_name,
            count: Some(count),
        };
        Ok(Response::new(v1::RetryDeliveriesResponse {
            count: Some(i32::try_from(done).unwrap()),
            destinations: destinations.into_iter().map(counted).collect(),
            next_page_token: if left > 0 {
                "more".to_owned()
            } else {
                String::new()
            },
            ..v1::RetryDeliveriesResponse::default()
        }))
    }

    async fn cancel_deliveries(
        &self,
        _: Request<v1::CancelDeliveriesRequest>,
    ) -> Answer<v1::CancelDeliveriesResponse> {
        let ended = v1::SkippedDeliveries {
            reason: v1::skipped_deliveries::Reason::Ended.into(),
            count: Some(2),
        };
        Ok(Response::new(v1::CancelDeliveriesResponse {
            count: Some(0),
            skipped: vec![ended],
            ..v1::CancelDeliveriesResponse::default()
        }))
    }

    async fn list_obligations(
        &self,
        request: Request<v1::ListObligationsRequest>,
    ) -> Answer<v1::ListObligationsResponse> {
        let request = request.into_inner();
        let owed = |destination: &str| v1::Obligation {
            rule_name: "night".to_owned(),
            destination_name: destination.to_owned(),
            occurrence_id: "event:1".to_owned(),
            summary: "disk 1 is full".to_owned(),
            ..v1::Obligation::default()
        };
        let is_meant = |row: &v1::Obligation| {
            request.rule_names.is_empty() || request.rule_names.contains(&row.rule_name)
        };
        let all = [owed("audit"), owed("pager")];
        Ok(Response::new(v1::ListObligationsResponse {
            obligations: all.into_iter().filter(is_meant).collect(),
            next_page_token: String::new(),
        }))
    }
}

/// What stands behind a word of a filter, as far as this service reads it.
fn part<'a>(filter: &'a str, word: &str) -> Option<&'a str> {
    filter.split(' ').find_map(|part| part.strip_prefix(word))
}

/// Whether a delivery is in the state that a filter asks for.
fn has_state(filter: &str, row: &v1::Delivery) -> bool {
    let ended = ["DELIVERED", "DEAD", "CANCELLED", "FOLDED", "SHADOWED"];
    let own = row.state().as_str_name();
    part(filter, "state=").is_none_or(|asked| match asked {
        "waiting" => !ended.contains(&own),
        asked => own.eq_ignore_ascii_case(asked),
    })
}
