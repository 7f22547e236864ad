//! Where people sign in, and what they may do then.

use super::Authorities;

/// A provider of identities that people sign in at, by `OpenID Connect`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OidcConfig {
    /// Its address, as its tokens name it.
    pub issuer: String,
    /// The client that terminals are there.
    pub client_id: String,
    /// The audience of a token; empty means the client. With another one, access tokens are taken
    /// in place of ID tokens.
    pub audience: String,
    /// The claim with the roles of a user; dots lead into objects.
    pub role_claim: String,
    /// Its values that make a user an admin.
    pub admins: Vec<String>,
    /// Its values that make a user an editor.
    pub editors: Vec<String>,
    /// Its values that make a user an operator.
    pub operators: Vec<String>,
    /// Its values that make a user a viewer.
    pub viewers: Vec<String>,
    /// The claim with the name that a user is known by; empty takes the first there is of `email`,
    /// `preferred_username` and `sub`.
    pub name_claim: String,
    /// What is asked of the provider, separated by spaces.
    pub scopes: String,
    /// The address of the page that people sign in at by a browser, without a path; empty when they do
    /// not.
    pub page: String,
    /// Authorities whose certificates are trusted beside those that the machine trusts.
    pub authorities: Authorities,
}

impl OidcConfig {
    /// The audience of a token.
    pub fn audience(&self) -> &str {
        if self.audience.is_empty() {
            &self.client_id
        } else {
            &self.audience
        }
    }

    /// Where a browser comes back to; the page's address has to be given.
    pub fn redirect_uri(&self) -> String {
        format!("{}/signed-in", self.page)
    }

    /// Whether access tokens are accepted in place of ID tokens.
    pub fn takes_access_token(&self) -> bool {
        self.audience() != self.client_id
    }
}
