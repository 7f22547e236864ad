//! `LinkService`: the targets of links in messages, which require no key.

use std::{net::IpAddr, sync::Arc};

use bellwether_proto::v1::{
    AcknowledgeRequest, AcknowledgeResponse, ExplainEventRequest, GetEventRequest, GetGroupRequest,
    OpenFeedRequest, OpenFeedResponse, OpenLinkRequest, OpenLinkResponse,
    event_query_service_server::EventQueryService as _, group_service_server::GroupService as _,
    link_service_server::LinkService,
};
use tonic::{Request, Response, Status, async_trait};

use super::{access, convert::time::timestamp, event_query::EventQueryApi, group::GroupApi};
use crate::{
    domain::{GroupId, Name, OccurrenceId},
    error::Error,
    ops::{
        audit::AuditLog,
        contact::Contacts,
        link::{ACKNOWLEDGE, LinkGrant, SignedLinks},
        response::{Responses, acknowledging_user},
        schedule::Schedules,
    },
    store::audit::{self, Actor},
};

const MEMBERS: i32 = 100;

const OPEN_LINK: &str = "/bellwether.v1.LinkService/OpenLink";
const OPEN_FEED: &str = "/bellwether.v1.LinkService/OpenFeed";

#[derive(Debug)]
pub struct LinkApi {
    pub(crate) audit: Arc<AuditLog>,
    pub(crate) links: SignedLinks,
    pub(crate) events: EventQueryApi,
    pub(crate) groups: GroupApi,
    pub(crate) responses: Responses,
    pub(crate) schedules: Schedules,
    pub(crate) contacts: Contacts,
}

impl LinkApi {
    fn actor(
        &self,
        address: Option<IpAddr>,
        method: &'static str,
        contact: Option<&Name>,
    ) -> Actor {
        Actor {
            client: contact
                .map(|it| Name::for_contact(it).to_string())
                .unwrap_or_default(),
            address,
            agent: String::new(),
            method,
            time_ms: self.links.now_ms(),
            scope: Arc::default(),
        }
    }

    async fn group(&self, id: String) -> Result<OpenLinkResponse, Status> {
        let request = GetGroupRequest {
            id,
            page_size: MEMBERS,
            ..GetGroupRequest::default()
        };
        let found = self.groups.get_group(Request::new(request)).await?;
        let found = found.into_inner();
        Ok(OpenLinkResponse {
            group: found.group,
            members: found.members,
            ..OpenLinkResponse::default()
        })
    }

    async fn occurrence(&self, id: OccurrenceId) -> Result<OpenLinkResponse, Status> {
        let (event, occurrence) = (id.event.to_string(), id.to_string());
        let request = GetEventRequest {
            id: event.clone(),
            occurrence_ids: vec![occurrence.clone()],
        };
        let found = self.events.get_event(Request::new(request)).await?;
        let request = ExplainEventRequest {
            id: event,
            occurrence_id: occurrence,
        };
        let explained = self.events.explain_event(Request::new(request)).await?;
        Ok(OpenLinkResponse {
            event: found.into_inner().result,
            timeline: explained.into_inner().timeline,
            ..OpenLinkResponse::default()
        })
    }
}

/// Returns the value, or `None` if it was not found or its name is invalid.
fn found_or_none<T>(found: Result<T, Error>) -> Result<Option<T>, Error> {
    match found {
        Err(Error::NotFound(_) | Error::Invalid(_)) => Ok(None),
        found => found.map(Some),
    }
}

#[async_trait]
impl LinkService for LinkApi {
    async fn open_link(
        &self,
        request: Request<OpenLinkRequest>,
    ) -> Result<Response<OpenLinkResponse>, Status> {
        let by = self.actor(access::address(&request), OPEN_LINK, None);
        let OpenLinkRequest { id, until, sign } = request.into_inner();
        self.links.check(&id, until, &sign)?;
        let kind = if GroupId::parse(&id).is_some() {
            "group"
        } else {
            "occurrence"
        };
        self.audit
            .record_granted_read(by, kind, &id, "via a link in a message");
        let found = if GroupId::parse(&id).is_some() {
            self.group(id).await?
        } else {
            let id = OccurrenceId::parse(&id).ok_or_else(|| {
                Error::invalid("id", "is neither an occurrence id nor a group id")
            })?;
            self.occurrence(id).await?
        };
        Ok(Response::new(found))
    }

    async fn open_feed(
        &self,
        request: Request<OpenFeedRequest>,
    ) -> Result<Response<OpenFeedResponse>, Status> {
        let by = self.actor(access::address(&request), OPEN_FEED, None);
        let OpenFeedRequest {
            name,
            sign,
            contact_name,
        } = request.into_inner();
        let reason = "via its feed URL";
        if contact_name.is_empty() {
            let found = found_or_none(self.schedules.find(&name).await)?;
            let schedule = self
                .links
                .check_feed(found, |it| LinkGrant::Feed(it), &sign)?;
            self.audit
                .record_granted_read(by, "schedule", &name, reason);
            return Ok(Response::new(
                self.schedules.open_schedule_feed(schedule).await?,
            ));
        }
        let found = found_or_none(self.contacts.find(&contact_name).await)?;
        let contact = self
            .links
            .check_feed(found, |it| LinkGrant::ContactFeed(it), &sign)?;
        self.audit
            .record_granted_read(by, "contact", &contact_name, reason);
        Ok(Response::new(
            self.schedules.open_contact_feed(&contact).await?,
        ))
    }

    async fn acknowledge(
        &self,
        request: Request<AcknowledgeRequest>,
    ) -> Result<Response<AcknowledgeResponse>, Status> {
        let address = access::address(&request);
        let request = request.into_inner();
        let link = (&*request.id, &*request.response, &*request.contact);
        self.links.check_acknowledge(link, &request.sign)?;
        let contact = Name::parse(link.2).map_err(|message| Error::invalid("contact", message))?;
        let by = self.actor(address, ACKNOWLEDGE, Some(&contact));
        if !request.confirm {
            let reason = "via an acknowledge link";
            self.audit
                .record_granted_read(by.clone(), "occurrence", link.0, reason);
        }
        let acknowledging = self.responses.acknowledge(link, request.confirm);
        let (found, others) = audit::run_as(by, acknowledging).await?;
        let by = acknowledging_user(&found).map(ToString::to_string);
        let is_acknowledged = found.acknowledged;
        Ok(Response::new(AcknowledgeResponse {
            acknowledged_by: by
                .or(is_acknowledged.then(|| "its sender".to_owned()))
                .unwrap_or_default(),
            event_name: found.name,
            summary: found.summary,
            severity: found.severity as i32,
            start_time: Some(timestamp(found.start_ms)),
            contact: request.contact,
            other_count: i32::try_from(others).unwrap_or(i32::MAX),
        }))
    }
}
