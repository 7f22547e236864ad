//! What the command writes to standard output at once.

use std::io::{self, ErrorKind, Write};

use crate::failure::Failure;

/// Writes a text. A reader that has had enough of it, as `head`, is no failure.
///
/// # Errors
/// It cannot be written for another reason.
pub(crate) fn write(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::new(format!(
            "cannot write to standard output: {error}"
        ))),
        _ => Ok(()),
    }
}
