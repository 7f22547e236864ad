//! `TriggerService`.

use std::pin::Pin;

use bellwether_proto::v1::{self, trigger_service_server::TriggerService};
use futures_util::{Stream, stream};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, async_trait};

use super::{
    convert::{list::to_i32, trigger_test},
    serve::serve,
};
use crate::{
    error::Error,
    ops::{
        notify_open::{OpenNotifier, StoredDefinition},
        test_trigger::TestRun,
        trigger::Triggers,
    },
};

#[derive(Debug)]
pub struct TriggerApi {
    pub(crate) triggers: Triggers,
    pub(crate) opens: OpenNotifier,
    /// Ends the streams when it is cancelled.
    pub(crate) shutdown: CancellationToken,
}

type TestProgress =
    Pin<Box<dyn Stream<Item = Result<v1::TestTriggerWithProgressResponse, Status>> + Send>>;

async fn next_progress(
    (mut run, is_begun): (TestRun, bool),
) -> (
    Result<v1::TestTriggerWithProgressResponse, Status>,
    Option<(TestRun, bool)>,
) {
    if is_begun && let Err(error) = run.advance().await {
        return (Err(error.into()), None);
    }
    let progress = trigger_test::progress_to_wire(&run);
    let left = (!run.is_finished()).then_some((run, true));
    (Ok(progress), left)
}

#[async_trait]
impl TriggerService for TriggerApi {
    serve! {
        triggers of trigger;
        create_trigger(CreateTriggerRequest) -> CreateTriggerResponse;
        list_triggers(ListTriggersRequest) -> ListTriggersResponse { triggers };
        get_trigger(GetTriggerRequest) -> GetTriggerResponse;
        update_trigger(UpdateTriggerRequest) -> UpdateTriggerResponse;
        delete_trigger(DeleteTriggerRequest) -> DeleteTriggerResponse, |it| it.force;
        stored |api, request, stored| {
            warnings: stored.warnings.clone(),
            notify_count: {
                let stores = StoredDefinition::Trigger(stored.resource.clone());
                let answer = api.opens.notify_or_count(request.notify_open, request.validate_only, stores);
                answer.await?.map(to_i32)
            },
        }
    }

    async fn test_trigger(
        &self,
        request: Request<v1::TestTriggerRequest>,
    ) -> Result<Response<v1::TestTriggerResponse>, Status> {
        let (draft, span) = trigger_test::draft_from_wire(request.into_inner());
        let run = self.triggers.test(&draft, span).await?;
        Ok(Response::new(trigger_test::result_to_wire(&run)))
    }

    async fn test_trigger_with_progress(
        &self,
        request: Request<v1::TestTriggerRequest>,
    ) -> Result<Response<TestProgress>, Status> {
        let (draft, span) = trigger_test::draft_from_wire(request.into_inner());
        let run = self.triggers.begin_test(&draft, span).await?;
        let shutdown = self.shutdown.clone();
        let reported = stream::unfold(Some((run, false)), move |state| {
            let shutdown = shutdown.clone();
            async move {
                let state = state?;
                tokio::select! {
                    reported = next_progress(state) => Some(reported),
                    () = shutdown.cancelled() => {
                        let stops = Error::Unavailable("the service is stopping".into());
                        Some((Err(stops.into()), None))
                    }
                }
            }
        });
        Ok(Response::new(Box::pin(reported)))
    }
}
