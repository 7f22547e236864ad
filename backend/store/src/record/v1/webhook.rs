//! Webhook settings in addition to address, body and headers.

use std::collections::BTreeMap;

use crate::{
    domain::{
        Secret,
        destination::{
            Auth, Expect, FollowUp, Keep, KeptValue, KeptValues, ValueMap, WebhookMethod,
        },
    },
    record::table::{Secrets, numbers, record},
};

/// All further settings; omitted if there are none.
#[derive(Debug)]
pub(super) struct WebhookExtras {
    pub(super) auth: Option<Box<Auth>>,
    pub(super) on_clear: Option<Box<FollowUp>>,
    pub(super) values: BTreeMap<String, ValueMap>,
    pub(super) expect: Option<Box<Expect>>,
    pub(super) compress: bool,
    pub(super) test_effect: String,
    pub(super) on_update: Option<Box<FollowUp>>,
    pub(super) keep: BTreeMap<String, Keep>,
}

record! { WebhookExtras {
    1 auth, 2 on_clear, 3 values, 4 expect, 5 compress, 6 test_effect, 7 on_update, 8 keep,
} }

record! { Keep { 1 from, 2 is_secret } }

// Fields of a delivery, which are encoded separately because its other secrets are not stored.
record! { KeptValues { 27 origin, 28 values } }

record! {
    KeptValue as it, secrets {
        1 name,
        2 plain = if it.is_secret { "" } else { it.text.reveal() },
        3 sealed = it.is_secret.then(|| secrets.seal("kept", &it.text)).flatten(),
    } => decode_kept(secrets, name, plain, sealed)
}

fn decode_kept(
    secrets: Secrets<'_>,
    name: String,
    plain: String,
    sealed: Option<Vec<u8>>,
) -> Option<KeptValue> {
    let is_secret = sealed.is_some();
    let text = if is_secret {
        secrets.open("kept", sealed)?
    } else {
        Secret::new(plain)
    };
    Some(KeptValue {
        name,
        text,
        is_secret,
    })
}

record! { FollowUp { 1 url, 2 method, 3 payload, 4 gone } }

record! { ValueMap { 1 from, 2 map, 3 default } }

record! {
    Expect as it {
        1 statuses as PackedForm = it.statuses.iter().copied().map(u32::from).collect::<Vec<_>>(),
        2 body, 3 destination,
    } with { statuses: decode_statuses(statuses)? }
}

fn decode_statuses(statuses: Vec<u32>) -> Option<Vec<u16>> {
    let statuses = statuses.into_iter();
    statuses.map(|it| u16::try_from(it).ok()).collect()
}

/// The authentication method. Its secret is stored with those of the destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AuthCode {
    Basic,
    Bearer,
    OAuth2,
    Mtls,
    Aws,
}

numbers! { AuthCode { 1 Basic, 2 Bearer, 3 OAuth2, 4 Mtls, 5 Aws } }

macro_rules! of_auth {
    ($auth:expr, $($pattern:pat_param)|+ => $text:expr) => {
        match $auth {
            $($pattern)|+ => $text.as_str(),
            _ => "",
        }
    };
}

record! {
    Auth as it {
        1 word = match it {
            Auth::Basic { .. } => AuthCode::Basic,
            Auth::Bearer { .. } => AuthCode::Bearer,
            Auth::OAuth2 { .. } => AuthCode::OAuth2,
            Auth::Mtls { .. } => AuthCode::Mtls,
            Auth::Aws { .. } => AuthCode::Aws,
        },
        2 name = of_auth!(
            it,
            Auth::Basic { username: name, .. }
                | Auth::OAuth2 { client_id: name, .. }
                | Auth::Aws { access_key_id: name, .. } => name
        ),
        3 token_url = of_auth!(it, Auth::OAuth2 { token_url, .. } => token_url),
        4 scope = of_auth!(it, Auth::OAuth2 { scope, .. } => scope),
        5 certificate = of_auth!(it, Auth::Mtls { certificate, .. } => certificate),
        6 audience = of_auth!(it, Auth::OAuth2 { audience, .. } => audience),
        7 params = if let Auth::OAuth2 { params, .. } = it { Some(params) } else { None },
        8 region = of_auth!(it, Auth::Aws { region, .. } => region),
        9 service = of_auth!(it, Auth::Aws { service, .. } => service),
    } => Some(match word {
        AuthCode::Basic => Auth::Basic { username: name, password: Secret::default() },
        AuthCode::Bearer => Auth::Bearer { token: Secret::default() },
        AuthCode::OAuth2 => Auth::OAuth2 {
            token_url,
            client_id: name,
            client_secret: Secret::default(),
            scope,
            audience,
            params,
        },
        AuthCode::Mtls => Auth::Mtls { certificate, private_key: Secret::default() },
        AuthCode::Aws => Auth::Aws {
            access_key_id: name,
            secret_access_key: Secret::default(),
            region,
            service,
        },
    })
}

numbers! { WebhookMethod { 0 Post, 1 Put, 2 Patch, 3 Delete } }
