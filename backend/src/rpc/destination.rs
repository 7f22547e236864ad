//! `DestinationService`.

use std::{ops::Deref, sync::Arc};

use bellwether_proto::v1::{self, destination_service_server::DestinationService};
use tonic::{Request, Response, Status, async_trait};

use super::{access, convert::delivery as convert};
use crate::{
    domain::{Destination, TemplateLanguage},
    error::Error,
    ops::{
        destination::{Destinations, Test, TestTarget, Tester},
        resource::SavedResource,
        route,
        ruleset::Ruleset,
        serve::serve,
        subject,
    },
};

/// Destinations. A destination is stored with the result of the test of its draft.
#[derive(Debug)]
struct TestedDestinations {
    all: Destinations,
    tester: Arc<Tester>,
}

impl TestedDestinations {
    async fn create(
        &self,
        draft: &v1::Destination,
        validate_only: bool,
    ) -> Result<SavedResource<Destination>, Error> {
        let saved = self.all.create(draft, validate_only).await?;
        self.with_test_result(saved, validate_only).await
    }

    async fn update(
        &self,
        draft: &v1::Destination,
        validate_only: bool,
    ) -> Result<SavedResource<Destination>, Error> {
        let saved = self.all.update(draft, validate_only).await?;
        self.with_test_result(saved, validate_only).await
    }

    async fn with_test_result(
        &self,
        saved: SavedResource<Destination>,
        validate_only: bool,
    ) -> Result<SavedResource<Destination>, Error> {
        let name = saved.view.name.as_str();
        if validate_only || !self.tester.apply_draft_result(name).await? {
            return Ok(saved);
        }
        let view = self.all.get(name).await?;
        Ok(SavedResource { view, ..saved })
    }
}

impl Deref for TestedDestinations {
    type Target = Destinations;

    fn deref(&self) -> &Destinations {
        &self.all
    }
}

#[derive(Debug)]
pub struct DestinationApi {
    destinations: TestedDestinations,
    tester: Arc<Tester>,
    ruleset: Arc<Ruleset>,
}

impl DestinationApi {
    pub fn new(destinations: Destinations, tester: Arc<Tester>, ruleset: Arc<Ruleset>) -> Self {
        let destinations = TestedDestinations {
            all: destinations,
            tester: Arc::clone(&tester),
        };
        Self {
            destinations,
            tester,
            ruleset,
        }
    }

    async fn requested_test(&self, mut request: v1::TestDestinationRequest) -> Result<Test, Error> {
        let event = request.event.take();
        let about = convert::test_subject(&request.event_id, event, self.tester.now_ms())?;
        let message = request.message.clone();
        let language =
            TemplateLanguage::from_number(request.template_language).ok_or_else(|| {
                let description = "is an unknown value; expected one of MUSTACHE, JINJA";
                Error::invalid("templateLanguage", description)
            })?;
        self.destinations.check_message(language, &message).await?;
        // The sender renders with the settings as of the last refresh.
        self.ruleset.refresh().await?;
        let target = self.target(request).await?;
        Ok(Test {
            target,
            message,
            message_language: language,
            about,
            contact: None,
        })
    }

    /// Returns the target of a test: the stored destination with the requested name if the request
    /// has no type.
    async fn target(&self, request: v1::TestDestinationRequest) -> Result<TestTarget, Error> {
        if request.r#type.is_none() {
            if request.name.is_empty() {
                let message = "is required unless `name` is the name of a stored destination";
                return Err(Error::invalid("type", message));
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
        let (kind, language, settings) = self.destinations.prepare_draft_test(draft).await?;
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
        Ok(subject::for_resource(name, answer))
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
        Ok(subject::for_resource(name, answer))
    }

    async fn test_destination(
        &self,
        request: Request<v1::TestDestinationRequest>,
    ) -> Result<Response<v1::TestDestinationResponse>, Status> {
        let test = self.requested_test(request.into_inner()).await?;
        let tested = self.tester.run_test(test).await?;
        Ok(Response::new(convert::test_response(tested)))
    }

    async fn render_destination(
        &self,
        request: Request<v1::RenderDestinationRequest>,
    ) -> Result<Response<v1::RenderDestinationResponse>, Status> {
        let request = request.into_inner();
        let test_request = v1::TestDestinationRequest {
            name: request.name,
            r#type: request.r#type,
            template_language: request.template_language,
            message: request.message,
            event_id: request.event_id,
            event: request.event,
            ..v1::TestDestinationRequest::default()
        };
        let test = self.requested_test(test_request).await?;
        let rendered = self.tester.render_test(test).await?;
        let route = match &rendered.event {
            Some(event) => {
                let snapshot = self.ruleset.refresh().await.map_err(Error::from)?;
                let route = route::route_event(&snapshot, event, self.tester.now_ms());
                // There is no occurrence yet.
                Some(v1::EventRoute {
                    occurrence_id: String::new(),
                    ..route
                })
            }
            None => None,
        };
        Ok(Response::new(convert::render_response(rendered, route)))
    }
}
