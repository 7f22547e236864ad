//! One setting: its key, and how its value is taken over.

use toml::Value;

use super::{Settings, value};

/// One setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Its key in the file; `a.b` is `b` in section `[a]`.
    pub(crate) key: &'static str,
    /// Takes a value over, or shows what was expected.
    pub(crate) set: fn(&mut Settings, &Value) -> value::Read<()>,
    /// Whether its value is shown to no one.
    pub(crate) is_secret: bool,
}

impl Setting {
    pub(super) const fn new(
        key: &'static str,
        set: fn(&mut Settings, &Value) -> value::Read<()>,
    ) -> Self {
        Self {
            key,
            set,
            is_secret: false,
        }
    }
    /// The same, with a value that is shown to no one.
    #[cfg(feature = "embedded")]
    pub(super) const fn secret(self) -> Self {
        Self {
            is_secret: true,
            ..self
        }
    }
}
