//! A small REST client that exposes the whole response.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;

use crate::alertmanager;

/// A client of one service, with an API key.
#[derive(Debug, Clone)]
pub struct Rest {
    http: Client<HttpConnector, Full<Bytes>>,
    address: String,
    key: Option<String>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Rest {
    /// Creates a client of the service at this address, with or without a key.
    pub fn new(address: &str, key: Option<&str>) -> Self {
        let http = Client::builder(TokioExecutor::new()).build_http();
        Self {
            http,
            address: address.to_owned(),
            key: key.map(str::to_owned),
        }
    }

    /// Returns a client of the same service with another key, or without one.
    #[must_use]
    pub fn with_key(&self, key: Option<&str>) -> Self {
        Self {
            key: key.map(str::to_owned),
            ..self.clone()
        }
    }

    /// Sends a request and reads the whole response.
    ///
    /// # Errors
    /// Returns an error if the connection cannot be established or breaks.
    ///
    /// # Panics
    /// Panics if the request is invalid HTTP, or the response is not one of Alertmanager's API
    /// although the path is.
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
        let mut request = Request::builder()
            .method(method.clone())
            .uri(format!("http://{}{path}", self.address));
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let (head, body) = self.http.request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        // Responses of other products lack this header.
        if method != Method::HEAD && head.headers.contains_key("x-request-id") {
            alertmanager::check_response(&method, path, head.status, &body);
        }
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body,
        })
    }

    /// Sends a request and reads the whole response.
    ///
    /// # Panics
    /// Panics if the connection cannot be established or breaks.
    pub async fn send(&self, method: Method, path: &str, body: impl Into<Bytes>) -> Answer {
        let json = [("content-type", "application/json")];
        self.try_send(method, path, &json, body).await.unwrap()
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, "").await
    }

    /// Sends a `POST` request with a JSON body.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, body.to_string()).await
    }

    /// Sends a `PUT` request with a JSON body.
    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::PUT, path, body.to_string()).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, "").await
    }
}

impl Answer {
    /// Parses the body as JSON.
    ///
    /// # Panics
    /// Panics if the body is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the JSON body of a successful response.
    ///
    /// # Panics
    /// Panics if the status is not 200.
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        self.json()
    }

    /// Returns the JSON body of a response to a batch whose items were all rejected.
    ///
    /// # Panics
    /// Panics if the status is not 400 or the body has no code.
    pub fn refused(&self) -> Value {
        assert_eq!(self.status, 400, "{}", self.text());
        assert_eq!(self.code(), 3);
        self.json()
    }

    /// Returns the gRPC code of an error response.
    ///
    /// # Panics
    /// Panics if the body has no code.
    pub fn code(&self) -> i64 {
        self.json()["code"]
            .as_i64()
            .unwrap_or_else(|| panic!("no code: {}", self.text()))
    }

    /// Returns a header's value, or an empty string if it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}
