//! `ClientService`.

use std::sync::Arc;

use bellwether_proto::v1::{self, client_service_server::ClientService};
use tonic::{Request, Response, Status, async_trait};

use super::{access, convert::time::timestamp};
use crate::ops::{
    client::{ClientDraft, Clients, Keys, wire::edit},
    from_domain::FromDomain,
    page::PageRequest,
    subject,
};

#[derive(Debug)]
pub struct ClientApi {
    pub(crate) clients: Clients,
    /// The keys used for admission.
    pub(crate) keys: Arc<Keys>,
}

#[async_trait]
impl ClientService for ClientApi {
    async fn create_client(
        &self,
        request: Request<v1::CreateClientRequest>,
    ) -> Result<Response<v1::CreateClientResponse>, Status> {
        let draft = ClientDraft::from(request.into_inner());
        let (client, key) = self.clients.create(&draft).await?;
        // Respond once all nodes accept the key.
        self.keys.catch_up_on_all_nodes().await?;
        let answer = v1::CreateClientResponse {
            client: Some(v1::Client::from_domain(client)),
            key: key.reveal().to_owned(),
        };
        Ok(subject::for_resource(draft.name, answer))
    }

    async fn list_clients(
        &self,
        request: Request<v1::ListClientsRequest>,
    ) -> Result<Response<v1::ListClientsResponse>, Status> {
        let wire = request.into_inner();
        let page = PageRequest::new(wire.page_size, wire.page_token);
        let page = self.clients.list(&page).await?;
        Ok(Response::new(v1::ListClientsResponse {
            clients: page
                .items
                .into_iter()
                .map(FromDomain::from_domain)
                .collect(),
            next_page_token: page.next_page_token,
        }))
    }

    async fn update_client(
        &self,
        request: Request<v1::UpdateClientRequest>,
    ) -> Result<Response<v1::UpdateClientResponse>, Status> {
        let (name, edit) = edit(request.into_inner());
        let client = self.clients.update(&name, &edit).await?;
        self.keys.catch_up_on_all_nodes().await?;
        let client = Some(v1::Client::from_domain(client));
        Ok(subject::for_resource(
            name,
            v1::UpdateClientResponse { client },
        ))
    }

    async fn rotate_client_key(
        &self,
        request: Request<v1::RotateClientKeyRequest>,
    ) -> Result<Response<v1::RotateClientKeyResponse>, Status> {
        let request = request.into_inner();
        let rotated = self.clients.rotate(&request.name, request.overlap_seconds);
        let (client, key) = rotated.await?;
        self.keys.catch_up_on_all_nodes().await?;
        let answer = v1::RotateClientKeyResponse {
            client: Some(v1::Client::from_domain(client)),
            key: key.reveal().to_owned(),
        };
        Ok(subject::for_resource(request.name, answer))
    }

    async fn revoke_client(
        &self,
        request: Request<v1::RevokeClientRequest>,
    ) -> Result<Response<v1::RevokeClientResponse>, Status> {
        let name = request.into_inner().name;
        self.clients.revoke(&name).await?;
        self.keys.catch_up_on_all_nodes().await?;
        Ok(subject::for_resource(name, v1::RevokeClientResponse {}))
    }

    async fn get_caller(
        &self,
        request: Request<v1::GetCallerRequest>,
    ) -> Result<Response<v1::GetCallerResponse>, Status> {
        let caller = access::caller(&request)?;
        if let Some(until_ms) = caller.signed_in_until_ms {
            let person = v1::Client {
                name: caller.name.to_string(),
                role: caller.role as i32,
                expire_time: Some(timestamp(until_ms)),
                ..v1::Client::default()
            };
            return Ok(Response::new(v1::GetCallerResponse {
                client: Some(person),
            }));
        }
        let client = self.clients.get(&caller.name, caller.id).await?;
        Ok(Response::new(v1::GetCallerResponse {
            client: Some(v1::Client::from_domain(client)),
        }))
    }
}
