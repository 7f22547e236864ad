//! `ResponseService`.

use bellwether_proto::v1::{self, response_service_server::ResponseService};
use tonic::{Request, Response, Status, async_trait};

use crate::{
    domain::{EventId, ResponseState},
    error::Error,
    ops::{
        page::PageRequest,
        response::{ResponseFilter, Responses},
        subject,
    },
};

#[derive(Debug)]
pub struct ResponseApi {
    pub(crate) responses: Responses,
}

fn parse_filter(request: v1::ListResponsesRequest) -> Result<ResponseFilter, Error> {
    let state = |number: i32| {
        // Stopped responses are listed with the ended responses.
        let all = ResponseState::ALL.into_iter();
        let mut all = all.filter(|it| *it != ResponseState::Stopped);
        let known = all.find(|it| i32::from(*it as u8) == number);
        known.ok_or_else(|| {
            let message = "contains an unknown value; expected ACTIVE, HELD, ACKNOWLEDGED, ENDED";
            Error::invalid("states", message)
        })
    };
    let states = request.states.into_iter().map(state);
    let event = match request.event_id.as_str() {
        "" => None,
        text => Some(
            EventId::parse(text).ok_or_else(|| Error::invalid("eventId", "is not an event id"))?,
        ),
    };
    Ok(ResponseFilter {
        states: states.collect::<Result<_, _>>()?,
        rule_names: request.rule_names,
        event,
    })
}

#[async_trait]
impl ResponseService for ResponseApi {
    async fn list_responses(
        &self,
        request: Request<v1::ListResponsesRequest>,
    ) -> Result<Response<v1::ListResponsesResponse>, Status> {
        let mut request = request.into_inner();
        let page = PageRequest {
            size: request.page_size,
            token: std::mem::take(&mut request.page_token),
        };
        let (responses, next_page_token) =
            self.responses.list(&parse_filter(request)?, &page).await?;
        Ok(Response::new(v1::ListResponsesResponse {
            responses,
            next_page_token,
        }))
    }

    async fn get_response(
        &self,
        request: Request<v1::GetResponseRequest>,
    ) -> Result<Response<v1::GetResponseResponse>, Status> {
        let response = Some(self.responses.get(&request.into_inner().id).await?);
        Ok(Response::new(v1::GetResponseResponse { response }))
    }

    async fn escalate_response(
        &self,
        request: Request<v1::EscalateResponseRequest>,
    ) -> Result<Response<v1::EscalateResponseResponse>, Status> {
        let v1::EscalateResponseRequest {
            id,
            seen_round,
            seen_step,
        } = request.into_inner();
        let seen = match (seen_round, seen_step) {
            (Some(round), Some(step)) => Some((round, step)),
            (None, None) => None,
            (None, Some(_)) => {
                return Err(Error::invalid("seenRound", "is required with `seenStep`").into());
            }
            (Some(_), None) => {
                return Err(Error::invalid("seenStep", "is required with `seenRound`").into());
            }
        };
        let response = Some(self.responses.escalate(&id, seen).await?);
        Ok(subject::for_resource(
            id,
            v1::EscalateResponseResponse { response },
        ))
    }
}
