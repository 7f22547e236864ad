//! The manifest of a backup, which is written last and so marks it as finished.

use std::path::Path;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{BackupError, NEWEST, PROVEN, piece, step::BackupEnd};
use crate::engine::LogPosition;

pub(super) const NAME: &str = "manifest.json";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub(super) layout: u32,
    /// Time of completion, as RFC 3339 in UTC. The backup contains the state at that time.
    pub end_time: String,
    pub version: String,
    pub end: BackupEnd,
    pub has_keys: bool,
    pub(super) pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) checksum: u32,
}

impl Manifest {
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes).sum()
    }

    pub(super) fn write(&self) -> String {
        let pieces = self.pieces.iter().map(
            |piece| json!({"name": piece.name, "bytes": piece.bytes, "crc32c": piece.checksum}),
        );
        let body = json!({
            "layout": self.layout,
            "version": self.version,
            "endTime": self.end_time,
            "store": STANDARD.encode(&self.end.identity),
            "place": self.end.place.to_number(),
            "hasKeys": self.has_keys,
            "pieces": pieces.collect::<Vec<_>>(),
        });
        let checksum = crc32c::crc32c(body.to_string().as_bytes());
        let manifest = json!({"backup": body, "crc32c": checksum});
        format!("{manifest:#}\n")
    }

    pub(super) fn read(text: &str, folder: &Path) -> Result<Self, BackupError> {
        let damaged = || BackupError::Damaged {
            folder: folder.into(),
            why: format!("its `{NAME}` cannot be read"),
        };
        let manifest: Value = serde_json::from_str(text).map_err(|_error| damaged())?;
        let body = &manifest["backup"];
        let found = body["layout"]
            .as_u64()
            .and_then(|found| found.try_into().ok());
        let found: u32 = found.ok_or_else(damaged)?;
        if found > NEWEST {
            return Err(BackupError::Newer {
                folder: folder.into(),
                found,
                known: NEWEST,
            });
        }
        let checksum = crc32c::crc32c(body.to_string().as_bytes());
        if manifest["crc32c"] != checksum {
            return Err(damaged());
        }
        Self::parse(found, body).ok_or_else(damaged)
    }

    /// Whether the steps contain proofs that the service wrote them.
    pub fn has_proofs(&self) -> bool {
        self.layout >= PROVEN
    }

    fn parse(layout: u32, body: &Value) -> Option<Self> {
        let read = |piece: &Value| {
            Some(Piece {
                // Any other name could refer to a file outside the folder.
                name: piece["name"]
                    .as_str()
                    .filter(|name| piece::is_piece_name(name))?
                    .into(),
                bytes: piece["bytes"].as_u64()?,
                checksum: piece["crc32c"].as_u64()?.try_into().ok()?,
            })
        };
        let pieces = body["pieces"].as_array()?.iter().map(read);
        let end_time = body["endTime"].as_str()?;
        Some(Self {
            layout,
            end_time: end_time.into(),
            version: body["version"].as_str()?.into(),
            end: BackupEnd {
                identity: STANDARD.decode(body["store"].as_str()?).ok()?,
                place: LogPosition::from_number(body["place"].as_u64()?),
                time: if layout >= PROVEN {
                    end_time.into()
                } else {
                    String::new()
                },
            },
            has_keys: body["hasKeys"].as_bool()?,
            pieces: pieces.collect::<Option<_>>()?,
        })
    }
}
