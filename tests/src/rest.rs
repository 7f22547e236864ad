//! A small REST client that shows everything of an answer.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;

/// A client of one service, with a key.
#[derive(Debug, Clone)]
pub struct Rest {
    http: Client<HttpConnector, Full<Bytes>>,
    address: String,
    key: Option<String>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Its HTTP status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

impl Rest {
    /// A client of the service at that address, with a key or without.
    pub fn new(address: &str, key: Option<&str>) -> Self {
        let http = Client::builder(TokioExecutor::new()).build_http();
        Self {
            http,
            address: address.to_owned(),
            key: key.map(str::to_owned),
        }
    }

    /// The same service with another key, or with none.
    #[must_use]
    pub fn with_key(&self, key: Option<&str>) -> Self {
        Self {
            key: key.map(str::to_owned),
            ..self.clone()
        }
    }

    /// Sends a request and reads the whole answer; an error is one of the connection.
    ///
    /// # Errors
    /// When the connection cannot be made or breaks.
    ///
    /// # Panics
    /// When the request cannot be written as HTTP.
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
        let mut request = Request::builder()
            .method(method)
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
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body,
        })
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Panics
    /// When the connection cannot be made or breaks.
    pub async fn send(&self, method: Method, path: &str, body: impl Into<Bytes>) -> Answer {
        let json = [("content-type", "application/json")];
        self.try_send(method, path, &json, body).await.unwrap()
    }

    /// `GET`.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, "").await
    }

    /// `POST` of a JSON document.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, body.to_string()).await
    }

    /// `PUT` of a JSON document.
    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::PUT, path, body.to_string()).await
    }

    /// `DELETE`.
    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, "").await
    }
}

impl Answer {
    /// The body as JSON.
    ///
    /// # Panics
    /// When it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body of a successful answer, as JSON.
    ///
    /// # Panics
    /// When the status is not 200.
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        self.json()
    }

    /// The body of an answer to a list of which every item was refused, as JSON.
    ///
    /// # Panics
    /// When the status is not 400, or the body has no code.
    pub fn refused(&self) -> Value {
        assert_eq!(self.status, 400, "{}", self.text());
        assert_eq!(self.code(), 3);
        self.json()
    }

    /// The gRPC code of a refusal.
    ///
    /// # Panics
    /// When there is none in the body.
    pub fn code(&self) -> i64 {
        self.json()["code"]
            .as_i64()
            .unwrap_or_else(|| panic!("no code: {}", self.text()))
    }

    /// A header as text; empty when it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}
