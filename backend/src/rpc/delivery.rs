//! `DeliveryService`: reads and controls deliveries.

use bellwether_proto::v1::{self, delivery_service_server::DeliveryService};
use tonic::{Request, Response, Status, async_trait};

use super::convert::{bulk, delivery as convert, json, obligation};
use crate::{
    domain::{Attempt, Delivery},
    error::Error,
    ops::{
        delivery::{BulkAction, Deliveries, Selection, render_shadow_message},
        rule::Installation,
        subject,
    },
};

#[derive(Debug, Clone)]
pub struct DeliveryApi {
    pub(crate) deliveries: Deliveries,
    /// Recorded deliveries are rendered for it.
    pub(crate) installation: Installation,
}

impl DeliveryApi {
    async fn selection(
        &self,
        ids: &[String],
        mut wire: Option<v1::DeliveryFilter>,
        page: (i32, String),
    ) -> Result<(Selection, Vec<String>), Error> {
        let text = wire.as_mut().map(|it| std::mem::take(&mut it.filter));
        let text = text.unwrap_or_default();
        let selection = bulk::parse_selection(ids, wire, page)?;
        Ok(match selection {
            Selection::Matching {
                filter,
                limit,
                token,
            } => {
                let read = self.deliveries.condition("filter.filter", &text).await?;
                let (condition, warnings) = read;
                let matching = Selection::Matching {
                    filter: filter.with_condition(condition),
                    limit,
                    token,
                };
                (matching, warnings)
            }
            ids @ Selection::Ids(_) => (ids, Vec::new()),
        })
    }

    async fn delivery_view(
        &self,
        delivery: Delivery,
        attempts: Vec<Attempt>,
    ) -> Result<v1::Delivery, Error> {
        let waiting = self.deliveries.wait_reason(&delivery).await?;
        Ok(convert::delivery(delivery, attempts, waiting))
    }
}

#[async_trait]
impl DeliveryService for DeliveryApi {
    async fn list_deliveries(
        &self,
        request: Request<v1::ListDeliveriesRequest>,
    ) -> Result<Response<v1::ListDeliveriesResponse>, Status> {
        let mut request = request.into_inner();
        let text = std::mem::take(&mut request.filter);
        let with_counts = request.with_counts;
        let (filter, page) = convert::list(request)?;
        let (condition, warnings) = self.deliveries.condition("filter", &text).await?;
        let filter = filter.with_condition(condition);
        let counts = if with_counts {
            Some(self.deliveries.counts(&filter).await?)
        } else {
            None
        };
        let (deliveries, next_page_token) = self.deliveries.list(&filter, &page).await?;
        let mut shown = Vec::with_capacity(deliveries.len());
        let mut reasons = self.deliveries.wait_reasons();
        for delivery in deliveries {
            let waiting = reasons.wait_reason(&delivery).await?;
            shown.push(convert::delivery(delivery, Vec::new(), waiting));
        }
        Ok(Response::new(v1::ListDeliveriesResponse {
            deliveries: shown,
            next_page_token,
            warnings,
            counts: counts.map(convert::counts),
        }))
    }

    async fn get_delivery(
        &self,
        request: Request<v1::GetDeliveryRequest>,
    ) -> Result<Response<v1::GetDeliveryResponse>, Status> {
        let id = convert::id(&request.into_inner().id)?;
        let (delivery, attempts) = self.deliveries.get(id).await?;
        let rendered = render_shadow_message(&delivery, &self.installation).await?;
        let delivery = Some(v1::Delivery {
            rendered: rendered.map(json::object),
            ..self.delivery_view(delivery, attempts).await?
        });
        Ok(Response::new(v1::GetDeliveryResponse { delivery }))
    }

    async fn retry_delivery(
        &self,
        request: Request<v1::RetryDeliveryRequest>,
    ) -> Result<Response<v1::RetryDeliveryResponse>, Status> {
        let id = convert::id(&request.into_inner().id)?;
        let delivery = self.deliveries.retry(id).await?;
        let delivery = Some(self.delivery_view(delivery, Vec::new()).await?);
        Ok(subject::for_resource(
            id,
            v1::RetryDeliveryResponse { delivery },
        ))
    }

    async fn cancel_delivery(
        &self,
        request: Request<v1::CancelDeliveryRequest>,
    ) -> Result<Response<v1::CancelDeliveryResponse>, Status> {
        let id = convert::id(&request.into_inner().id)?;
        let delivery = self.deliveries.cancel(id).await?;
        let delivery = Some(self.delivery_view(delivery, Vec::new()).await?);
        Ok(subject::for_resource(
            id,
            v1::CancelDeliveryResponse { delivery },
        ))
    }

    async fn retry_deliveries(
        &self,
        request: Request<v1::RetryDeliveriesRequest>,
    ) -> Result<Response<v1::RetryDeliveriesResponse>, Status> {
        let request = request.into_inner();
        let page = (request.limit, request.page_token);
        let (selection, warnings) = self.selection(&request.ids, request.filter, page).await?;
        let retried = self
            .deliveries
            .bulk(BulkAction::Retry, selection, request.dry_run);
        let tally = retried.await?;
        let count = tally.count;
        let answer = bulk::retry_response(tally, warnings);
        Ok(subject::mutation_response(request.dry_run, count, answer))
    }

    async fn cancel_deliveries(
        &self,
        request: Request<v1::CancelDeliveriesRequest>,
    ) -> Result<Response<v1::CancelDeliveriesResponse>, Status> {
        let request = request.into_inner();
        let page = (request.limit, request.page_token);
        let (selection, warnings) = self.selection(&request.ids, request.filter, page).await?;
        let cancelled = self
            .deliveries
            .bulk(BulkAction::Cancel, selection, request.dry_run);
        let tally = cancelled.await?;
        let count = tally.count;
        Ok(subject::mutation_response(
            request.dry_run,
            count,
            bulk::cancel_response(tally, warnings),
        ))
    }

    async fn list_obligations(
        &self,
        request: Request<v1::ListObligationsRequest>,
    ) -> Result<Response<v1::ListObligationsResponse>, Status> {
        let (filter, page) = obligation::list(request.into_inner())?;
        let (obligations, next_page_token) = self.deliveries.obligations(&filter, &page).await?;
        let obligations = obligations.into_iter().map(obligation::obligation);
        Ok(Response::new(v1::ListObligationsResponse {
            obligations: obligations.collect(),
            next_page_token,
        }))
    }
}
