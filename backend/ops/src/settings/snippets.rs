//! Checks whether a change of the templates in the settings breaks templates that include them.

use crate::{
    domain::{Destination, Name, Rule, Snippets},
    error::{Error, Violation},
    message::check_message,
    send::template_violations,
    store::{Store, engine::Range},
};

/// Maximum number of rules and destinations in an error.
const NAMED_MAX: usize = 10;

/// Returns the templates of rules and destinations that were valid with the previous snippets and
/// are invalid with the new ones, as violations of the settings.
pub async fn broken_templates(
    store: &Store,
    before: &Snippets,
    new: &Snippets,
) -> Result<Vec<Violation>, Error> {
    let mut found = Vec::new();
    let mut check = |what: &str, name: &Name, violations: &dyn Fn(&Snippets) -> Vec<Violation>| {
        let first = violations(new).into_iter().next();
        let broken = first.filter(|_| violations(before).is_empty());
        if let Some(Violation { field, description }) = broken {
            found.push(format!("{what} `{name}`: {field}: {description}"));
        }
    };
    let mut rules = store.pages::<Rule>(Range::with_prefix(&[]));
    while let Some(page) = rules.next().await? {
        for rule in page.into_iter().map(|it| it.value) {
            let (language, message) = (rule.template_language, &rule.message);
            check("rule", &rule.name, &|it| {
                check_message(language, message, it)
            });
        }
    }
    let mut destinations = store.pages::<Destination>(Range::with_prefix(&[]));
    while let Some(page) = destinations.next().await? {
        for destination in page.into_iter().map(|it| it.value) {
            let (kind, language) = (&destination.kind, destination.template_language);
            check("destination", &destination.name, &|it| {
                template_violations(kind, language, it)
            });
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
