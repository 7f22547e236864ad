//! Logs one line per call: at DEBUG; slow and cancelled calls of clients at INFO; internal errors
//! at WARN.

use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

use bellwether_process::listen::REQUEST_ID;
use http::{HeaderMap, HeaderValue};
use tonic::Code;

use crate::{domain::Name, rpc::methods::Method};

const SLOW: Duration = Duration::from_secs(1);

macro_rules! log_call {
    ($line:ident, $level:ident, $code:expr, $what:literal) => {
        tracing::$level!(
            method = $line.method.map(|it| &*it.path),
            code = ?$code,
            ms = u64::try_from($line.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            client = $line.client.as_ref().map(Name::as_str),
            address = $line.address.map(tracing::field::display),
            request_id = $line.request_id.as_ref().and_then(|it| it.to_str().ok()),
            trace = $line.trace.as_ref().and_then(|it| it.to_str().ok()),
            $what
        )
    };
}

#[derive(Debug)]
pub(super) struct AccessLogLine {
    begun: Instant,
    method: Option<&'static Method>,
    address: Option<IpAddr>,
    client: Option<Name>,
    request_id: Option<HeaderValue>,
    trace: Option<HeaderValue>,
    is_written: bool,
}

impl AccessLogLine {
    pub(super) fn new(
        method: Option<&'static Method>,
        headers: &HeaderMap,
        address: Option<IpAddr>,
    ) -> Self {
        Self {
            begun: Instant::now(),
            method,
            address,
            client: None,
            request_id: headers.get(REQUEST_ID).cloned(),
            trace: headers.get("traceparent").cloned(),
            is_written: false,
        }
    }

    pub(super) fn set_client(&mut self, client: Option<&Name>) {
        self.client = client.cloned();
    }

    pub(super) fn write(mut self, code: Code) {
        self.is_written = true;
        let is_streaming = self.method.is_some_and(|it| it.class.is_streaming());
        // Unauthenticated clients must not be able to flood the log.
        let is_slow = !is_streaming && self.client.is_some() && self.begun.elapsed() >= SLOW;
        match code {
            Code::Internal | Code::DataLoss | Code::Unknown => {
                log_call!(self, warn, code, "a call failed");
            }
            _ if is_slow => log_call!(self, info, code, "a slow call"),
            _ => log_call!(self, debug, code, "a call"),
        }
    }
}

impl Drop for AccessLogLine {
    fn drop(&mut self) {
        if self.is_written {
            return;
        }
        if self.client.is_some() {
            log_call!(self, info, Code::Cancelled, "a caller disconnected");
        } else {
            log_call!(self, debug, Code::Cancelled, "a caller disconnected");
        }
    }
}
