//! `SignInService`: how people come to be let in without a key.

use std::sync::Arc;

use bellwether_proto::v1::{
    GetSignInRequest, GetSignInResponse, sign_in_service_server::SignInService,
};
use tonic::{Request, Response, Status, async_trait};

use crate::oidc::SignIns;

/// Tells how people sign in.
#[derive(Debug)]
pub struct SignInApi(Option<Arc<SignIns>>);

impl SignInApi {
    /// Tells of these; of nothing where nobody signs in.
    pub fn new(sign_ins: Option<Arc<SignIns>>) -> Self {
        Self(sign_ins)
    }
}

#[async_trait]
impl SignInService for SignInApi {
    async fn get_sign_in(
        &self,
        _request: Request<GetSignInRequest>,
    ) -> Result<Response<GetSignInResponse>, Status> {
        let told = self.0.as_ref().map(|sign_ins| {
            let config = sign_ins.config();
            GetSignInResponse {
                issuer: config.issuer.clone(),
                client_id: config.client_id.clone(),
                scopes: config.scopes.clone(),
                takes_access_token: config.takes_access_token(),
            }
        });
        Ok(Response::new(told.unwrap_or_default()))
    }
}
