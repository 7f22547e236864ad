//! `SettingsService`.

use bellwether_proto::v1::{self, settings_service_server::SettingsService};
use tonic::{Request, Response, Status, async_trait};

use crate::{
    domain::Settings,
    error::Error,
    limits::STORE_NODES_FOLLOW_TIME_MAX,
    ops::{settings::InstallationSettings, subject},
    store::Store,
};

#[derive(Debug)]
pub struct SettingsApi {
    pub(crate) settings: InstallationSettings,
    pub(crate) store: Store,
}

impl SettingsApi {
    async fn wait_until_followed(&self) -> Result<(), Error> {
        let engine = self.store.engine();
        let position = *engine.log_signal().borrow();
        engine
            .cluster()
            .wait_until_followed(position, STORE_NODES_FOLLOW_TIME_MAX)
            .await?;
        Ok(())
    }
}

#[async_trait]
impl SettingsService for SettingsApi {
    async fn get_settings(
        &self,
        _request: Request<v1::GetSettingsRequest>,
    ) -> Result<Response<v1::GetSettingsResponse>, Status> {
        let settings = Some(self.settings.get(Settings::NAME).await?);
        Ok(Response::new(v1::GetSettingsResponse { settings }))
    }

    async fn update_settings(
        &self,
        request: Request<v1::UpdateSettingsRequest>,
    ) -> Result<Response<v1::UpdateSettingsResponse>, Status> {
        let request = request.into_inner();
        let (draft, tried) = (request.settings.unwrap_or_default(), request.validate_only);
        let stored = self.settings.update(&draft, tried).await?;
        if !tried {
            self.wait_until_followed().await?;
        }
        let settings = Some(stored.view);
        let answer = v1::UpdateSettingsResponse { settings };
        Ok(subject::mutation_response(tried, Settings::NAME, answer))
    }

    async fn set_quiet(
        &self,
        request: Request<v1::SetQuietRequest>,
    ) -> Result<Response<v1::SetQuietResponse>, Status> {
        let settings = self.settings.set_quiet(request.into_inner().quiet).await?;
        self.wait_until_followed().await?;
        let settings = Some(settings);
        let answer = v1::SetQuietResponse { settings };
        Ok(subject::mutation_response(false, Settings::NAME, answer))
    }
}
