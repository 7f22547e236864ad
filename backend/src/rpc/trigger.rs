//! `TriggerService`.

use std::pin::Pin;

use bellwether_proto::v1::{self, trigger_service_server::TriggerService};
use futures_util::{Stream, stream};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, async_trait};

use super::{
    audit,
    convert::{
        list::{count, page_and_filter},
        trigger_test,
    },
};
use crate::{
    error::Error,
    ops::{
        notify_open::{NotifyOpen, Stores},
        test_trigger::TestRun,
        trigger::{TriggerDraft, Triggers},
    },
};

/// Serves triggers.
#[derive(Debug)]
pub struct TriggerApi {
    triggers: Triggers,
    opens: NotifyOpen,
    shutdown: CancellationToken,
}

impl TriggerApi {
    /// Serves these triggers, and notifies of what is open where that is asked for; streams end when
    /// `shutdown` is cancelled.
    pub fn new(triggers: Triggers, opens: NotifyOpen, shutdown: CancellationToken) -> Self {
        Self {
            triggers,
            opens,
            shutdown,
        }
    }
}

type TestProgress =
    Pin<Box<dyn Stream<Item = Result<v1::TestTriggerWithProgressResponse, Status>> + Send>>;

/// The next message of a test, and what is left of it after that.
async fn tell(
    (mut run, is_begun): (TestRun, bool),
) -> (
    Result<v1::TestTriggerWithProgressResponse, Status>,
    Option<(TestRun, bool)>,
) {
    if is_begun && let Err(error) = run.step().await {
        return (Err(error.into()), None);
    }
    let progress = trigger_test::progress(&run);
    let left = (!run.is_over()).then_some((run, true));
    (Ok(progress), left)
}

#[async_trait]
impl TriggerService for TriggerApi {
    async fn create_trigger(
        &self,
        request: Request<v1::CreateTriggerRequest>,
    ) -> Result<Response<v1::CreateTriggerResponse>, Status> {
        let request = request.into_inner();
        let draft = TriggerDraft::from(request.trigger.unwrap_or_default());
        let view = self.triggers.create(draft, request.validate_only).await?;
        let name = view.trigger.name.clone();
        let mut notify_count = None;
        if request.notify_open {
            let stores = Stores::Trigger(view.trigger.clone());
            let notified = self.opens.answer(stores, request.validate_only);
            notify_count = Some(count(notified.await?));
        }
        let answer = v1::CreateTriggerResponse {
            warnings: view.warnings.clone(),
            trigger: Some(view.into()),
            notify_count,
        };
        Ok(audit::unless(request.validate_only, name, answer))
    }

    async fn list_triggers(
        &self,
        request: Request<v1::ListTriggersRequest>,
    ) -> Result<Response<v1::ListTriggersResponse>, Status> {
        let wire = request.into_inner();
        let page = (wire.page_size, wire.page_token);
        let (page, filter) = page_and_filter(page, wire.names, wire.tags, wire.q);
        let page = self.triggers.list(&filter, &page).await?;
        Ok(Response::new(v1::ListTriggersResponse {
            triggers: page.items.into_iter().map(Into::into).collect(),
            next_page_token: page.next_page_token,
            total_size: Some(count(page.total)),
        }))
    }

    async fn get_trigger(
        &self,
        request: Request<v1::GetTriggerRequest>,
    ) -> Result<Response<v1::GetTriggerResponse>, Status> {
        let view = self.triggers.get(&request.into_inner().name).await?;
        Ok(Response::new(v1::GetTriggerResponse {
            trigger: Some(view.into()),
        }))
    }

    async fn update_trigger(
        &self,
        request: Request<v1::UpdateTriggerRequest>,
    ) -> Result<Response<v1::UpdateTriggerResponse>, Status> {
        let request = request.into_inner();
        let draft = TriggerDraft::from(request.trigger.unwrap_or_default());
        let view = self.triggers.update(draft, request.validate_only).await?;
        let name = view.trigger.name.clone();
        let mut notify_count = None;
        if request.notify_open {
            let stores = Stores::Trigger(view.trigger.clone());
            let notified = self.opens.answer(stores, request.validate_only);
            notify_count = Some(count(notified.await?));
        }
        let answer = v1::UpdateTriggerResponse {
            warnings: view.warnings.clone(),
            trigger: Some(view.into()),
            notify_count,
        };
        Ok(audit::unless(request.validate_only, name, answer))
    }

    async fn delete_trigger(
        &self,
        request: Request<v1::DeleteTriggerRequest>,
    ) -> Result<Response<v1::DeleteTriggerResponse>, Status> {
        let request = request.into_inner();
        self.triggers
            .delete(&request.name, &request.etag, request.force)
            .await?;
        Ok(audit::of(request.name, v1::DeleteTriggerResponse {}))
    }

    async fn test_trigger(
        &self,
        request: Request<v1::TestTriggerRequest>,
    ) -> Result<Response<v1::TestTriggerResponse>, Status> {
        let (draft, span) = trigger_test::draft(request.into_inner());
        let run = self.triggers.test(draft, span).await?;
        Ok(Response::new(trigger_test::result(&run)))
    }

    type TestTriggerWithProgressStream = TestProgress;

    async fn test_trigger_with_progress(
        &self,
        request: Request<v1::TestTriggerRequest>,
    ) -> Result<Response<TestProgress>, Status> {
        let (draft, span) = trigger_test::draft(request.into_inner());
        let run = self.triggers.begin_test(draft, span).await?;
        let shutdown = self.shutdown.clone();
        let told = stream::unfold(Some((run, false)), move |state| {
            let shutdown = shutdown.clone();
            async move {
                let state = state?;
                tokio::select! {
                    told = tell(state) => Some(told),
                    () = shutdown.cancelled() => {
                        let stops = Error::Unavailable("the service is stopping".into());
                        Some((Err(stops.into()), None))
                    }
                }
            }
        });
        Ok(Response::new(Box::pin(told)))
    }
}
