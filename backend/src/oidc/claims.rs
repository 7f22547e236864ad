//! The claims of a correctly signed token: their validity, the user, and the role.

use serde_json::Value;

use super::{Person, invalid_token_error};
use crate::{
    config::OidcConfig,
    domain::{Name, Role},
    error::Error,
    limits::TOKEN_CLOCK_LEEWAY,
};

const NAMES: [&str; 3] = ["email", "preferred_username", "sub"];

/// Returns the user that the claims authorize.
///
/// # Errors
///
/// Returns [`Error::Unauthenticated`] if the claims are not valid now for this service, and
/// [`Error::PermissionDenied`] if they grant no role.
pub(super) fn authorize(claims: &Value, config: &OidcConfig, now_ms: i64) -> Result<Person, Error> {
    if claims["iss"] != config.issuer.as_str() {
        return Err(invalid_token_error("issued by another provider"));
    }
    check_audience(claims, config)?;
    let ends_ms = check_time(claims, now_ms)?;
    let subject = claims["sub"].as_str().filter(|it| !it.is_empty());
    let subject = subject.ok_or_else(|| invalid_token_error("no subject (`sub`)"))?;
    let name = user_name(claims, config)?;
    Ok(Person {
        role: claimed_role(claims, config, &name)?,
        name,
        subject: subject.to_owned(),
        ends_ms,
    })
}

fn check_audience(claims: &Value, config: &OidcConfig) -> Result<(), Error> {
    let audience = &claims["aud"];
    let several = audience.as_array();
    let is_meant = match several {
        Some(several) => several.iter().any(|it| it == config.audience()),
        None => audience == config.audience(),
    };
    if !is_meant {
        return Err(invalid_token_error("issued for another service"));
    }
    let is_shared = several.is_some_and(|several| several.len() > 1);
    if is_shared && claims["azp"] != config.client_id.as_str() {
        return Err(invalid_token_error("issued to another client (`azp`)"));
    }
    Ok(())
}

/// Returns the expiry in milliseconds since 1970.
fn check_time(claims: &Value, now_ms: i64) -> Result<i64, Error> {
    let leeway_ms = i64::try_from(TOKEN_CLOCK_LEEWAY.as_millis()).unwrap_or(i64::MAX);
    let moment = |claim: &str| match &claims[claim] {
        Value::Null => Ok(None),
        // Fractions of a second are truncated.
        Value::Number(seconds) => {
            #[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
            let whole = seconds.as_i64().or(seconds.as_f64().map(|it| it as i64));
            Ok(whole.map(|it| it.saturating_mul(1000)))
        }
        _ => Err(invalid_token_error(&format!(
            "`{claim}` is not a valid time"
        ))),
    };
    let ends_ms = moment("exp")?.ok_or_else(|| invalid_token_error("no expiry (`exp`)"))?;
    let ends_ms = ends_ms.saturating_add(leeway_ms);
    if ends_ms <= now_ms {
        return Err(Error::Unauthenticated(
            "the token has expired; sign in again, for example with `bellwether login`".into(),
        ));
    }
    for claim in ["nbf", "iat"] {
        let since_ms = moment(claim)?.unwrap_or(i64::MIN);
        if since_ms.saturating_sub(leeway_ms) > now_ms {
            return Err(invalid_token_error(&format!("not valid yet (`{claim}`)")));
        }
    }
    Ok(ends_ms)
}

fn user_name(claims: &Value, config: &OidcConfig) -> Result<Name, Error> {
    let (own, names) = ([&*config.name_claim], NAMES);
    let names = if config.name_claim.is_empty() {
        &names[..]
    } else {
        &own[..]
    };
    let named = names.iter().find_map(|claim| {
        // An unverified address may belong to anyone.
        if *claim == "email" && claims["email_verified"] == false {
            return None;
        }
        Name::for_user(claim_value(claims, claim)?.as_str()?)
    });
    named.ok_or_else(|| {
        let names = names.join("`, `");
        invalid_token_error(&format!("no displayable name (`{names}`)"))
    })
}

fn claimed_role(claims: &Value, config: &OidcConfig, name: &Name) -> Result<Role, Error> {
    let claim = &config.role_claim;
    let found = claim_value(claims, claim).unwrap_or(&Value::Null);
    let has = |wanted: &[String]| match found {
        Value::Array(several) => several
            .iter()
            .any(|it| wanted.iter().any(|wanted| it == wanted.as_str())),
        one => wanted.iter().any(|wanted| one == wanted.as_str()),
    };
    let roles = [
        (Role::Admin, &config.admins),
        (Role::Editor, &config.editors),
        (Role::Operator, &config.operators),
        (Role::Viewer, &config.viewers),
    ];
    let role = roles.into_iter().find(|(_, wanted)| has(wanted));
    role.map(|(role, _)| role).ok_or_else(|| {
        Error::PermissionDenied(format!(
            "`{name}` has no role: no value of the claim `{claim}` maps to one; ask the operator \
             of the service"
        ))
    })
}

/// Returns the value of a claim. Unless a claim has the dotted name, the name is a path into
/// objects.
fn claim_value<'a>(claims: &'a Value, path: &str) -> Option<&'a Value> {
    claims.get(path).or_else(|| {
        let mut parts = path.split('.');
        parts.try_fold(claims, |value, part| value.get(part))
    })
}
