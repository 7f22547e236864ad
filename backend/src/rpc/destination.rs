//! `DestinationService`.

use bellwether_proto::v1::{self, destination_service_server::DestinationService};
use tonic::{Request, Response, Status, async_trait};

use super::{access, audit, convert::delivery as convert, serve::serve};
use crate::{
    domain::TemplateLanguage,
    error::Error,
    message::check_message,
    ops::destination::{Destinations, Test, TestTarget, Tester},
};

/// Serves destinations.
#[derive(Debug)]
pub struct DestinationApi {
    destinations: Destinations,
    tester: Tester,
}

impl DestinationApi {
    /// Serves these destinations, and tests them.
    pub fn new(destinations: Destinations, tester: Tester) -> Self {
        Self {
            destinations,
            tester,
        }
    }

    /// What a request asks to test: without a type, the stored destination of that name.
    async fn target(&self, request: v1::TestDestinationRequest) -> Result<TestTarget, Error> {
        if request.r#type.is_none() {
            if request.name.is_empty() {
                let fault = "is required: a destination to test, or the `name` of a stored one";
                return Err(Error::invalid("type", fault));
            }
            return Ok(TestTarget::Stored(request.name));
        }
        let draft = v1::Destination {
            name: request.name,
            r#type: request.r#type,
            delivery: request.delivery,
            template_language: request.template_language,
            ..v1::Destination::default()
        };
        let name = draft.name.clone();
        let (kind, language, settings) = self.destinations.try_draft(draft).await?;
        Ok(TestTarget::Draft {
            name,
            kind: Box::new(kind),
            language,
            settings,
        })
    }
}

#[async_trait]
impl DestinationService for DestinationApi {
    serve! {
        destinations of destination;
        create_destination(CreateDestinationRequest) -> CreateDestinationResponse;
        list_destinations(ListDestinationsRequest) -> ListDestinationsResponse { destinations };
        get_destination(GetDestinationRequest) -> GetDestinationResponse;
        update_destination(UpdateDestinationRequest) -> UpdateDestinationResponse;
        delete_destination(DeleteDestinationRequest) -> DeleteDestinationResponse, |it| it.force;
    }

    async fn pause_destination(
        &self,
        request: Request<v1::PauseDestinationRequest>,
    ) -> Result<Response<v1::PauseDestinationResponse>, Status> {
        let author = access::caller(&request)?.name;
        let name = request.into_inner().name;
        let view = self.destinations.pause(&name, &author).await?;
        let answer = v1::PauseDestinationResponse {
            destination: Some(view),
        };
        Ok(audit::of(name, answer))
    }

    async fn resume_destination(
        &self,
        request: Request<v1::ResumeDestinationRequest>,
    ) -> Result<Response<v1::ResumeDestinationResponse>, Status> {
        let name = request.into_inner().name;
        let view = self.destinations.resume(&name).await?;
        let answer = v1::ResumeDestinationResponse {
            destination: Some(view),
        };
        Ok(audit::of(name, answer))
    }

    async fn test_destination(
        &self,
        request: Request<v1::TestDestinationRequest>,
    ) -> Result<Response<v1::TestDestinationResponse>, Status> {
        let mut request = request.into_inner();
        let event = request.event.take();
        let about = convert::about(&request.event_id, event, self.tester.now_ms())?;
        let message = request.message.clone();
        let language = TemplateLanguage::of_number(request.template_language).ok_or_else(|| {
            let fault = "is an unknown value; expected one of MUSTACHE, JINJA";
            Error::invalid("templateLanguage", fault)
        })?;
        let faults = check_message(language, &message);
        if !faults.is_empty() {
            return Err(Error::Invalid(faults).into());
        }
        let target = self.target(request).await?;
        let test = Test {
            target,
            message,
            message_language: language,
            about,
        };
        let (delivery, attempt) = self.tester.test(test).await?;
        Ok(Response::new(convert::tested(&delivery, attempt)))
    }
}
