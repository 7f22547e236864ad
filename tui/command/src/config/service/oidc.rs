//! The settings of sign-in with OpenID Connect.

use bellwether_backend::config::{Authorities, OidcConfig};
use bellwether_process::oidc::{check_address, check_issuer};
use toml::Value;

use super::unit;
use crate::config::{ConfigError, value::Read};

#[derive(Debug, Clone)]
pub(super) struct Oidc {
    pub(super) issuer: String,
    pub(super) client_id: String,
    pub(super) audience: String,
    pub(super) role_claim: String,
    pub(super) admins: Vec<String>,
    pub(super) editors: Vec<String>,
    pub(super) operators: Vec<String>,
    pub(super) viewers: Vec<String>,
    pub(super) name_claim: String,
    pub(super) scopes: String,
    pub(super) page: String,
}

impl Default for Oidc {
    fn default() -> Self {
        Self {
            issuer: String::new(),
            client_id: "bellwether".into(),
            audience: String::new(),
            role_claim: "groups".into(),
            admins: Vec::new(),
            editors: Vec::new(),
            operators: Vec::new(),
            viewers: Vec::new(),
            name_claim: String::new(),
            scopes: "openid email profile".into(),
            page: String::new(),
        }
    }
}

pub(super) fn parse_issuer(value: &Value) -> Read<String> {
    let issuer = unit::text_or_empty(value)?;
    if !issuer.is_empty() {
        check_issuer(&issuer)?;
    }
    Ok(issuer)
}

/// Validates the URL of the sign-in page and removes its trailing slash; empty if sign-in by
/// browser is disabled.
pub(super) fn parse_page_url(value: &Value) -> Read<String> {
    let page = unit::text_or_empty(value)?;
    if page.is_empty() {
        return Ok(page);
    }
    check_issuer(&page)?;
    let url = check_address(&page)?;
    if url.path() != "/" {
        return Err("expected an address without a path".into());
    }
    Ok(url.origin().ascii_serialization())
}

impl Oidc {
    pub(super) fn config(
        &self,
        authorities: &Authorities,
    ) -> Result<Option<OidcConfig>, ConfigError> {
        if self.issuer.is_empty() {
            return Ok(None);
        }
        let roles = [&self.admins, &self.editors, &self.operators, &self.viewers];
        if roles.iter().all(|values| values.is_empty()) {
            return Err(ConfigError(
                "oidc.admins, oidc.editors, oidc.operators, oidc.viewers: one is required because \
                 oidc.issuer is set: list the values of the claim that map to a role, such as \
                 [\"ops-leads\"]"
                    .into(),
            ));
        }
        let this = self.clone();
        Ok(Some(OidcConfig {
            issuer: this.issuer,
            client_id: this.client_id,
            audience: this.audience,
            role_claim: this.role_claim,
            admins: this.admins,
            editors: this.editors,
            operators: this.operators,
            viewers: this.viewers,
            name_claim: this.name_claim,
            scopes: this.scopes,
            page: this.page,
            authorities: authorities.clone(),
        }))
    }
}
