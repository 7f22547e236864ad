//! `AuditService`: the audit log.

use std::sync::Arc;

use bellwether_proto::v1::{self, audit_service_server::AuditService};
use tonic::{Request, Response, Status, async_trait};

use super::access;
use crate::{
    domain::Role,
    ops::{
        audit::{AuditLog, wire as convert},
        from_domain::FromDomain,
    },
};

#[derive(Debug)]
pub struct AuditApi {
    pub(crate) log: Arc<AuditLog>,
}

#[async_trait]
impl AuditService for AuditApi {
    async fn list_audit_entries(
        &self,
        request: Request<v1::ListAuditEntriesRequest>,
    ) -> Result<Response<v1::ListAuditEntriesResponse>, Status> {
        let is_admin = access::caller(&request)?.role == Role::Admin;
        let (filter, page) = convert::list(request.into_inner(), is_admin)?;
        let (entries, next_page_token) = self.log.list(&filter, &page).await?;
        Ok(Response::new(v1::ListAuditEntriesResponse {
            entries: entries.into_iter().map(FromDomain::from_domain).collect(),
            next_page_token,
        }))
    }
}
