//! `GroupService`: groups of occurrences reported by one rule in one message.

use bellwether_proto::v1::{self, group_service_server::GroupService};
use tonic::{Request, Response, Status, async_trait};

use super::{access, convert::group as convert};
use crate::ops::{
    decision_context::DecisionContext,
    group::list::{get_group, list_groups, set_group_status},
    intake::Intake,
    subject,
};

#[derive(Debug)]
pub struct GroupApi {
    pub(crate) deciding: DecisionContext,
    pub(crate) intake: Intake,
}

#[async_trait]
impl GroupService for GroupApi {
    async fn list_groups(
        &self,
        request: Request<v1::ListGroupsRequest>,
    ) -> Result<Response<v1::ListGroupsResponse>, Status> {
        let (filter, page) = convert::list(request.into_inner())?;
        let (groups, next_page_token) = list_groups(&self.deciding, &filter, &page).await?;
        Ok(Response::new(v1::ListGroupsResponse {
            groups: groups.into_iter().map(convert::group).collect(),
            next_page_token,
        }))
    }

    async fn get_group(
        &self,
        request: Request<v1::GetGroupRequest>,
    ) -> Result<Response<v1::GetGroupResponse>, Status> {
        let (id, page) = convert::group_request(request.into_inner())?;
        let (group, members, next_page_token) = get_group(&self.deciding.store, id, &page).await?;
        Ok(Response::new(v1::GetGroupResponse {
            group: Some(convert::group(group)),
            members: members.into_iter().map(convert::member).collect(),
            next_page_token,
        }))
    }

    async fn set_group_status(
        &self,
        request: Request<v1::SetGroupStatusRequest>,
    ) -> Result<Response<v1::SetGroupStatusResponse>, Status> {
        let author = access::caller(&request)?.name;
        let request = request.into_inner();
        let (id, change) = convert::group_change(&request)?;
        let changed =
            set_group_status((&self.deciding, &self.intake), id, &change, &author).await?;
        let answer = v1::SetGroupStatusResponse {
            changed_count: Some(super::convert::to_i32(changed)),
        };
        Ok(subject::for_resource(request.id, answer))
    }
}
