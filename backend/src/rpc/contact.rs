//! `ContactService`.

use bellwether_proto::v1::{self, contact_service_server::ContactService};
use tonic::async_trait;

use super::serve::serve;
use crate::ops::contact::Contacts;

/// Serves contacts.
#[derive(Debug)]
pub struct ContactApi {
    contacts: Contacts,
}

impl ContactApi {
    /// Serves these contacts.
    pub fn new(contacts: Contacts) -> Self {
        Self { contacts }
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
    }
}
