//! Errors of operators and filters.

use std::borrow::Cow;

use minijinja::{Error, ErrorKind};

pub(super) fn invalid_operation(detail: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail)
}
