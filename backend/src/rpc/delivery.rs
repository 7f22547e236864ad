//! `DeliveryService`: reading and steering deliveries.

use bellwether_proto::v1::{
    CancelDeliveryRequest, CancelDeliveryResponse, GetDeliveryRequest, GetDeliveryResponse,
    ListDeliveriesRequest, ListDeliveriesResponse, RetryDeliveryRequest, RetryDeliveryResponse,
    delivery_service_server::DeliveryService,
};
use tonic::{Request, Response, Status, async_trait};

use super::convert::delivery as convert;
use crate::ops::delivery::Deliveries;

/// Serves deliveries.
#[derive(Debug, Clone)]
pub struct DeliveryCalls {
    deliveries: Deliveries,
}

impl DeliveryCalls {
    /// Serves what those operations give.
    pub fn new(deliveries: Deliveries) -> Self {
        Self { deliveries }
    }
}

#[async_trait]
impl DeliveryService for DeliveryCalls {
    async fn list_deliveries(
        &self,
        request: Request<ListDeliveriesRequest>,
    ) -> Result<Response<ListDeliveriesResponse>, Status> {
        let (filter, page) = convert::list(request.into_inner())?;
        let (deliveries, next_page_token) = self.deliveries.list(&filter, &page).await?;
        let without_attempts = |delivery| convert::delivery(delivery, Vec::new());
        Ok(Response::new(ListDeliveriesResponse {
            deliveries: deliveries.into_iter().map(without_attempts).collect(),
            next_page_token,
        }))
    }

    async fn get_delivery(
        &self,
        request: Request<GetDeliveryRequest>,
    ) -> Result<Response<GetDeliveryResponse>, Status> {
        let id = convert::id(&request.into_inner().id)?;
        let (delivery, attempts) = self.deliveries.get(id).await?;
        let delivery = Some(convert::delivery(delivery, attempts));
        Ok(Response::new(GetDeliveryResponse { delivery }))
    }

    async fn retry_delivery(
        &self,
        request: Request<RetryDeliveryRequest>,
    ) -> Result<Response<RetryDeliveryResponse>, Status> {
        let id = convert::id(&request.into_inner().id)?;
        let delivery = self.deliveries.retry(id).await?;
        let delivery = Some(convert::delivery(delivery, Vec::new()));
        Ok(Response::new(RetryDeliveryResponse { delivery }))
    }

    async fn cancel_delivery(
        &self,
        request: Request<CancelDeliveryRequest>,
    ) -> Result<Response<CancelDeliveryResponse>, Status> {
        let id = convert::id(&request.into_inner().id)?;
        let delivery = self.deliveries.cancel(id).await?;
        let delivery = Some(convert::delivery(delivery, Vec::new()));
        Ok(Response::new(CancelDeliveryResponse { delivery }))
    }
}
