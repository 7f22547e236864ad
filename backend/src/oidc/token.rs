//! Signed tokens (JWT): parsing, and verification of the signature.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;

use super::invalid_token_error;
use crate::{error::Error, limits::TOKEN_BYTES_MAX};

/// A signature algorithm. All supported ones are asymmetric: providers only publish public keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rs256,
    Ps256,
    Es256,
    EdDsa,
}

impl Algorithm {
    fn find(word: &str) -> Option<Self> {
        Some(match word {
            "RS256" => Self::Rs256,
            "PS256" => Self::Ps256,
            "ES256" => Self::Es256,
            "EdDSA" => Self::EdDsa,
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PublicKey {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) id: String,
    pub(super) public: PublicKey,
    /// The only algorithm that the key may be used with, if specified.
    pub(super) algorithm: Option<Algorithm>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    #[serde(default)]
    kid: String,
    #[serde(rename = "use", default)]
    used_for: String,
    alg: Option<String>,
    #[serde(default)]
    crv: String,
    #[serde(default)]
    n: String,
    #[serde(default)]
    e: String,
    #[serde(default)]
    x: String,
    #[serde(default)]
    y: String,
}

impl Key {
    /// Parses a key; returns `None` if its type is not supported, or it is not for signatures.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let jwk = Jwk::deserialize(value).ok()?;
        if !matches!(&*jwk.used_for, "" | "sig") {
            return None;
        }
        let bytes = |text: &str| {
            URL_SAFE_NO_PAD
                .decode(text)
                .ok()
                .filter(|it| !it.is_empty())
        };
        let key = match (&*jwk.kty, &*jwk.crv) {
            ("RSA", _) => PublicKey::Rsa {
                n: bytes(&jwk.n)?,
                e: bytes(&jwk.e)?,
            },
            ("EC", "P-256") => {
                let (x, y) = (bytes(&jwk.x)?, bytes(&jwk.y)?);
                if x.len() != 32 || y.len() != 32 {
                    return None;
                }
                PublicKey::P256([&[4][..], &x, &y].concat())
            }
            ("OKP", "Ed25519") => PublicKey::Ed25519(bytes(&jwk.x)?),
            _ => return None,
        };
        let algorithm = match jwk.alg {
            None => None,
            Some(word) => Some(Algorithm::find(&word)?),
        };
        Some(Self {
            id: jwk.kid,
            public: key,
            algorithm,
        })
    }

    pub(super) fn supports(&self, algorithm: Algorithm) -> bool {
        let is_kind = match self.public {
            PublicKey::Rsa { .. } => matches!(algorithm, Algorithm::Rs256 | Algorithm::Ps256),
            PublicKey::P256(_) => algorithm == Algorithm::Es256,
            PublicKey::Ed25519(_) => algorithm == Algorithm::EdDsa,
        };
        is_kind && self.algorithm.is_none_or(|only| only == algorithm)
    }
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: String,
    /// Extensions that a reader must understand; none are supported.
    crit: Option<Value>,
}

/// An unverified token. Its content cannot be trusted before [`Token::verify`].
#[derive(Debug)]
pub(super) struct Token<'a> {
    signed: &'a str,
    signature: Vec<u8>,
    key_id: String,
    algorithm: Algorithm,
    claims: Value,
}

impl<'a> Token<'a> {
    pub(super) fn read(shown: &'a str) -> Result<Self, Error> {
        if shown.len() > TOKEN_BYTES_MAX {
            let size = shown.len();
            let why = format!("{size} bytes; the limit is {TOKEN_BYTES_MAX}");
            return Err(invalid_token_error(&why));
        }
        let unreadable = || invalid_token_error("it is malformed");
        let (signed, signature) = shown.rsplit_once('.').ok_or_else(unreadable)?;
        let (header, claims) = signed.split_once('.').ok_or_else(unreadable)?;
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
        let header = decode(header).ok_or_else(unreadable)?;
        let header: Header = serde_json::from_slice(&header)
            .ok()
            .ok_or_else(unreadable)?;
        if header.crit.is_some() {
            return Err(invalid_token_error(
                "unsupported critical extension (`crit`)",
            ));
        }
        let algorithm = Algorithm::find(&header.alg)
            .ok_or_else(|| invalid_token_error("signature must be RS256, PS256, ES256 or EdDSA"))?;
        let claims = decode(claims).and_then(|claims| serde_json::from_slice(&claims).ok());
        Ok(Self {
            signed,
            signature: decode(signature).ok_or_else(unreadable)?,
            key_id: header.kid,
            algorithm,
            claims: claims.filter(Value::is_object).ok_or_else(unreadable)?,
        })
    }

    /// Returns the id of the key that the token claims to be signed with; may be empty.
    pub(super) fn key_id(&self) -> &str {
        &self.key_id
    }

    pub(super) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    pub(super) fn claims(&self) -> &Value {
        &self.claims
    }

    pub(super) fn verify(&self, key: &Key) -> Result<(), Error> {
        let (message, signature) = (self.signed.as_bytes(), &*self.signature);
        let is_good = match (&key.public, self.algorithm) {
            _ if !key.supports(self.algorithm) => false,
            (PublicKey::Rsa { n, e }, algorithm) => {
                let way = match algorithm {
                    Algorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
                    _ => &RSA_PKCS1_2048_8192_SHA256,
                };
                let key = RsaPublicKeyComponents { n, e };
                key.verify(way, message, signature).is_ok()
            }
            (PublicKey::P256(point), _) => {
                let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
                key.verify(message, signature).is_ok()
            }
            (PublicKey::Ed25519(point), _) => {
                let key = UnparsedPublicKey::new(&ED25519, point);
                key.verify(message, signature).is_ok()
            }
        };
        if is_good {
            return Ok(());
        }
        Err(invalid_token_error("not signed with a key of the provider"))
    }
}
