//! `SignInService`: sign-in of users without a key.

use std::sync::Arc;

use bellwether_proto::v1::{
    FinishSignInRequest, FinishSignInResponse, GetSignInRequest, GetSignInResponse,
    StartSignInRequest, StartSignInResponse, sign_in_service_server::SignInService,
};
use tonic::{Request, Response, Status, async_trait};

use super::access::address;
use crate::{error::Error, oidc::SignIns, ops::sign_in::SignInStates};

const CODE_BYTES_MAX: usize = 4096;
const VERIFIER_BYTES_MAX: usize = 128;
const STATE_BYTES_MAX: usize = 256;

#[derive(Debug)]
pub struct SignInApi(Option<Arc<SignIns>>, SignInStates);

impl SignInApi {
    /// Creates the service. `sign_ins` is `None` if there is no identity provider.
    pub fn new(sign_ins: Option<Arc<SignIns>>, states: SignInStates) -> Self {
        Self(sign_ins, states)
    }

    fn require_sign_ins(&self) -> Result<&SignIns, Error> {
        let why = "sign-in is off (`oidc.issuer`)";
        self.0
            .as_deref()
            .ok_or_else(|| Error::FailedPrecondition(why.into()))
    }
}

#[async_trait]
impl SignInService for SignInApi {
    async fn get_sign_in(
        &self,
        _request: Request<GetSignInRequest>,
    ) -> Result<Response<GetSignInResponse>, Status> {
        let response = self.0.as_ref().map(|sign_ins| {
            let config = sign_ins.config();
            GetSignInResponse {
                issuer: config.issuer.clone(),
                client_id: config.client_id.clone(),
                scopes: config.scopes.clone(),
                takes_access_token: config.accepts_access_token(),
                page: config.page.clone(),
            }
        });
        Ok(Response::new(response.unwrap_or_default()))
    }

    async fn start_sign_in(
        &self,
        request: Request<StartSignInRequest>,
    ) -> Result<Response<StartSignInResponse>, Status> {
        let state = |verifier: &str| self.1.create(verifier);
        let start = self
            .require_sign_ins()?
            .start(address(&request), state)
            .await?;
        Ok(Response::new(StartSignInResponse {
            address: start.address,
            state: start.state,
            verifier: start.verifier,
        }))
    }

    async fn finish_sign_in(
        &self,
        request: Request<FinishSignInRequest>,
    ) -> Result<Response<FinishSignInResponse>, Status> {
        let address = address(&request);
        let FinishSignInRequest {
            code,
            verifier,
            state,
        } = request.into_inner();
        let fields = [
            ("code", &code, CODE_BYTES_MAX),
            ("verifier", &verifier, VERIFIER_BYTES_MAX),
            ("state", &state, STATE_BYTES_MAX),
        ];
        for (field, text, most) in fields {
            if text.is_empty() || text.len() > most {
                let why = format!("{field}: expected 1 to {most} bytes");
                return Err(Error::invalid(field, why).into());
            }
        }
        let sign_ins = self.require_sign_ins()?;
        // Checked first, so that a sign-in that was not started here causes no request to the
        // provider.
        self.1.check(&state, &verifier)?;
        let (token, person) = sign_ins.finish(address, &code, &verifier).await?;
        let end_time = person.ends_ms;
        Ok(Response::new(FinishSignInResponse { token, end_time }))
    }
}
