//! Checks whether a change of the templates in the settings breaks templates that include them.

use crate::{
    destination::template_violations,
    domain::{Destination, Rule, Snippets},
    error::{Error, Violation},
    limits::PAGE_SIZE_MAX,
    message::check_message,
    store::{Direction, Record, Store, engine::Range},
};

/// Maximum number of rules and destinations in an error.
const NAMED_MAX: usize = 10;

/// Returns the templates of rules and destinations that were valid with the snippets before and are
/// not with the new ones, as violations of the settings.
///
/// # Errors
/// Returns an error if the store fails.
pub async fn broken(
    store: &Store,
    before: &Snippets,
    new: &Snippets,
) -> Result<Vec<Violation>, Error> {
    let mut found = Vec::new();
    for rule in all::<Rule>(store).await? {
        let violation = |snippets| {
            let violations = check_message(rule.template_language, &rule.message, snippets);
            violations.into_iter().next()
        };
        if let Some(violation) = violation(new).filter(|_| violation(before).is_none()) {
            let why = violation.description;
            found.push(format!("rule `{}`: {}: {why}", rule.name, violation.field));
        }
    }
    for destination in all::<Destination>(store).await? {
        let (kind, language) = (&destination.kind, destination.template_language);
        let violation = |snippets| {
            let violations = template_violations(kind, language, snippets);
            violations.into_iter().next()
        };
        if let Some(violation) = violation(new).filter(|_| violation(before).is_none()) {
            let why = violation.description;
            found.push(format!(
                "destination `{}`: {}: {why}",
                destination.name, violation.field
            ));
        }
    }
    let more = found.len().saturating_sub(NAMED_MAX);
    found.truncate(NAMED_MAX);
    if more > 0 {
        found.push(format!("and {more} more rules or destinations"));
    }
    let found = found.into_iter();
    let found = found.map(|it| Violation::new("templates", format!("breaks {it}")));
    Ok(found.collect())
}

async fn all<T: Record>(store: &Store) -> Result<Vec<T>, Error> {
    let (mut found, mut range) = (Vec::new(), Range::with_prefix(&[]));
    loop {
        let page = store.page::<T>(range.clone(), Direction::Ascending, PAGE_SIZE_MAX);
        let page = page.await?;
        let is_last = page.len() < PAGE_SIZE_MAX;
        found.extend(page.into_iter().map(|it| it.value));
        match found.last() {
            Some(last) if !is_last => range.exclude_through(&last.key()),
            _ => return Ok(found),
        }
    }
}
