//! Browser sign-in with an authorization code (RFC 6749) and PKCE (RFC 7636).

use url::Url;

use super::{Provider, ProviderError, Tokens, check_address, parse_response};

#[derive(Debug, Clone, Copy)]
pub struct CodeRequest<'a> {
    pub client_id: &'a str,
    /// The requested scopes, separated by spaces.
    pub scopes: &'a str,
    pub redirect_uri: &'a str,
    /// The value that identifies the sign-in when the browser returns.
    pub state: &'a str,
    /// SHA-256 of the verifier, in base64url. Also the nonce of the ID token.
    pub challenge: &'a str,
}

impl CodeRequest<'_> {
    /// Returns the address to open in the browser.
    ///
    /// # Errors
    /// Returns an error if the endpoint is not an acceptable address.
    pub fn address(&self, endpoint: &str) -> Result<Url, ProviderError> {
        let mut url = check_address(endpoint)
            .map_err(|why| ProviderError::Unusable(format!("the sign-in address: {why}")))?;
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", self.client_id)
            .append_pair("scope", self.scopes)
            .append_pair("redirect_uri", self.redirect_uri)
            .append_pair("state", self.state)
            .append_pair("nonce", self.challenge)
            .append_pair("code_challenge", self.challenge)
            .append_pair("code_challenge_method", "S256");
        Ok(url)
    }
}

impl Provider {
    /// Exchanges an authorization code for tokens.
    ///
    /// # Errors
    ///
    /// Returns an error if the provider issues no tokens.
    pub async fn exchange_code(
        &self,
        endpoint: &str,
        client_id: &str,
        redirect_uri: &str,
        code: &str,
        verifier: &str,
    ) -> Result<Tokens, ProviderError> {
        let fields = [
            ("grant_type", "authorization_code"),
            ("client_id", client_id),
            ("redirect_uri", redirect_uri),
            ("code", code),
            ("code_verifier", verifier),
        ];
        parse_response(&self.http.post(endpoint, &fields).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorization_url_must_be_secure() {
        let request = CodeRequest {
            client_id: "a&b",
            scopes: "openid email",
            redirect_uri: "https://bw.example.net/signed-in",
            state: "s",
            challenge: "c",
        };
        let url = request
            .address("https://login.example.net/auth?realm=x")
            .unwrap();
        let query = url.query().unwrap();
        assert!(
            query.starts_with("realm=x&response_type=code&client_id=a%26b&"),
            "{query}"
        );
        assert!(
            query.ends_with("&nonce=c&code_challenge=c&code_challenge_method=S256"),
            "{query}"
        );
        for wrong in ["http://login.example.net/auth", "javascript:alert(1)", ""] {
            assert!(request.address(wrong).is_err(), "{wrong}");
        }
    }
}
