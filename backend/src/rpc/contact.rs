//! `ContactService`.

use std::sync::Arc;

use bellwether_proto::v1::{self, contact_service_server::ContactService};
use futures_util::future::join_all;
use tonic::{Request, Response, Status, async_trait};

use super::convert::delivery::test_response;
use crate::{
    domain::{Contact, ContactMethod, Name, PagedContact, RecordId, TemplateLanguage},
    ops::{
        contact::Contacts,
        destination::{Test, TestSubject, TestTarget, Tester},
        link::SignedLinks,
        serve::serve,
        subject,
    },
};

#[derive(Debug)]
pub struct ContactApi {
    contacts: Contacts,
    tester: Arc<Tester>,
    links: SignedLinks,
    base: String,
}

impl ContactApi {
    /// Creates the service for these contacts. Methods are tested with `tester`, and feed URLs
    /// below `base` are signed with `links`.
    pub fn new(contacts: Contacts, tester: Arc<Tester>, links: SignedLinks, base: &str) -> Self {
        Self {
            contacts,
            tester,
            links,
            base: base.trim_end_matches('/').to_owned(),
        }
    }

    fn feed_url(&self, contact: &Contact) -> String {
        format!("{}{}", self.base, self.links.contact_feed(contact))
    }

    async fn test_method(&self, contact: &Name, method: ContactMethod) -> v1::TestedMethod {
        let now_ms = self.tester.now_ms();
        let test = Test {
            target: TestTarget::Stored(method.destination.to_string()),
            message: String::new(),
            message_language: TemplateLanguage::default(),
            about: TestSubject::Sample,
            contact: Some(PagedContact {
                name: contact.clone(),
                variables: method.variables,
                // There is no response, so the link of a test leads to an error page.
                response: RecordId::from_parts(now_ms.unsigned_abs(), rand::random()),
                method: method.id.clone(),
            }),
        };
        let result = match self.tester.run_test(test).await {
            Ok(tested) => test_response(tested),
            Err(error) => v1::TestDestinationResponse {
                outcome: v1::Outcome::Unreachable.into(),
                explanation: Status::from(error).message().to_owned(),
                ..v1::TestDestinationResponse::default()
            },
        };
        v1::TestedMethod {
            destination_name: method.destination.to_string(),
            method_id: method.id,
            result: Some(result),
        }
    }
}

#[async_trait]
impl ContactService for ContactApi {
    serve! {
        contacts of contact;
        create_contact(CreateContactRequest) -> CreateContactResponse;
        list_contacts(ListContactsRequest) -> ListContactsResponse { contacts };
        get_contact(GetContactRequest) -> GetContactResponse;
        update_contact(UpdateContactRequest) -> UpdateContactResponse;
        delete_contact(DeleteContactRequest) -> DeleteContactResponse, |_| false;
        stored |_api, _request, stored| { warnings: stored.warnings.clone() }
    }

    async fn test_contact(
        &self,
        request: Request<v1::TestContactRequest>,
    ) -> Result<Response<v1::TestContactResponse>, Status> {
        let contact = self
            .contacts
            .find_in_scope(&request.into_inner().name)
            .await?;
        let name = contact.name;
        let methods = contact.methods.into_iter();
        let tests = methods.map(|method| self.test_method(&name, method));
        let methods = join_all(tests).await;
        Ok(Response::new(v1::TestContactResponse { methods }))
    }

    async fn get_contact_feed(
        &self,
        request: Request<v1::GetContactFeedRequest>,
    ) -> Result<Response<v1::GetContactFeedResponse>, Status> {
        let name = request.into_inner().name;
        let contact = self.contacts.issue_feed(&name).await?;
        let url = self.feed_url(&contact);
        Ok(subject::for_resource(
            name,
            v1::GetContactFeedResponse { url },
        ))
    }

    async fn rotate_contact_feed(
        &self,
        request: Request<v1::RotateContactFeedRequest>,
    ) -> Result<Response<v1::RotateContactFeedResponse>, Status> {
        let name = request.into_inner().name;
        let contact = self.contacts.rotate_feed(&name).await?;
        let url = self.feed_url(&contact);
        Ok(subject::for_resource(
            name,
            v1::RotateContactFeedResponse { url },
        ))
    }
}
