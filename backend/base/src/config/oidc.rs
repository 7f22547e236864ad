//! The identity provider, and the roles of its users.

use super::Authorities;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OidcConfig {
    /// Issuer URL, exactly as in the provider's tokens.
    pub issuer: String,
    pub client_id: String,
    /// Audience of a token; if empty, the client id. If another audience is set, access tokens are
    /// accepted instead of ID tokens.
    pub audience: String,
    /// Claim with the roles of a user; dots separate nested members.
    pub role_claim: String,
    pub admins: Vec<String>,
    pub editors: Vec<String>,
    pub operators: Vec<String>,
    pub viewers: Vec<String>,
    /// Claim with the user's name. If empty, the first of `email`, `preferred_username` and `sub`
    /// that a token contains.
    pub name_claim: String,
    /// Requested scopes, separated by spaces.
    pub scopes: String,
    /// URL of the gateway's pages for browser sign-in, without a path; empty if there is none.
    pub page: String,
    /// Authorities trusted in addition to those of the machine.
    pub authorities: Authorities,
}

impl OidcConfig {
    pub fn audience(&self) -> &str {
        if self.audience.is_empty() {
            &self.client_id
        } else {
            &self.audience
        }
    }

    /// Returns the redirect URI of browsers; `page` has to be set.
    pub fn redirect_uri(&self) -> String {
        format!("{}/signed-in", self.page)
    }

    pub fn accepts_access_token(&self) -> bool {
        self.audience() != self.client_id
    }
}
