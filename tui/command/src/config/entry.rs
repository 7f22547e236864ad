//! A setting: its key, and a function that applies its value.

use toml::Value;

use super::{Settings, value};

/// Defines a setting that is stored in a field: its key, the field, and its parser with further
/// arguments, if any.
macro_rules! set {
    ($key:literal => Some($($field:ident).+): $parse:path $(, $argument:expr)*) => {
        Setting::new($key, |settings, value| {
            settings.$($field).+ = Some($parse(value $(, $argument)*)?);
            Ok(())
        })
    };
    ($key:literal => $($field:ident).+: $parse:path $(, $argument:expr)*) => {
        Setting::new($key, |settings, value| {
            settings.$($field).+ = $parse(value $(, $argument)*)?;
            Ok(())
        })
    };
}
pub(super) use set;

#[derive(Debug)]
pub(crate) struct Setting {
    /// The key in the file; `a.b` is `b` in section `[a]`.
    pub(crate) key: &'static str,
    /// Applies a value, or returns a description of the expected one.
    pub(crate) set: fn(&mut Settings, &Value) -> value::Read<()>,
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
    pub(super) const fn with_secrecy(self) -> Self {
        Self {
            is_secret: true,
            ..self
        }
    }
}
