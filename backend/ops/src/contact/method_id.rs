//! The identities of contact methods: set by authors, taken from stored methods, or new.

use bellwether_proto::v1;

use crate::{
    domain::{ContactMethod, contact::new_method_id},
    validate::Violations,
};

pub(super) fn check_ids(drafts: &[v1::ContactMethod], violations: &mut Violations) {
    for (at, draft) in drafts.iter().enumerate() {
        let path = format!("methods[{at}].id");
        violations.optional_name(&path, &draft.id);
        let is_duplicate = drafts[..at].iter().any(|it| it.id == draft.id);
        if is_duplicate && !draft.id.is_empty() {
            let id = &draft.id;
            violations.add(
                path,
                format!("`{id}` is the id of another method; use a unique id"),
            );
        }
    }
}

/// Assigns an identity to each method without one: that of the most similar stored method, or a new
/// one.
pub(super) fn assign_ids(methods: &mut [ContactMethod], before: &[ContactMethod]) {
    let resembles: [fn(&ContactMethod, &ContactMethod) -> bool; 3] = [
        |it, other| {
            let identified = ContactMethod {
                id: other.id.clone(),
                ..it.clone()
            };
            identified == *other
        },
        |it, other| it.destination == other.destination && it.variables == other.variables,
        |it, other| it.destination == other.destination,
    ];
    for is_like in resembles {
        for at in 0..methods.len() {
            let is_free = |id: &str| methods.iter().all(|it| it.id != id);
            let mut like = before.iter();
            let like = like.find(|it| is_like(&methods[at], it) && is_free(&it.id));
            if let (true, Some(like)) = (methods[at].id.is_empty(), like) {
                methods[at].id.clone_from(&like.id);
            }
        }
    }
    for at in 0..methods.len() {
        if methods[at].id.is_empty() {
            let is_used = |id: &str| methods.iter().chain(before).any(|it| it.id == id);
            methods[at].id = new_method_id(&methods[at].destination, is_used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::samples::{contact, name};

    /// Parses methods such as `push` or `second=call:+49`: identity, destination and variable.
    fn methods(text: &str) -> Vec<ContactMethod> {
        let method = |it: &str| {
            let (id, rest) = it.split_once('=').unwrap_or(("", it));
            let (destination, phone) = rest.split_once(':').unwrap_or((rest, ""));
            ContactMethod {
                id: id.into(),
                destination: name(destination),
                variables: [("phone".to_owned(), phone.to_owned())].into(),
                ..contact("ana").methods.remove(0)
            }
        };
        text.split_whitespace().map(method).collect()
    }

    #[test]
    fn edited_methods_keep_their_identities() {
        for (before, draft, expected) in [
            ("", "push call", "push call"),
            ("", "call:1 call:2 call:3", "call call-2 call-3"),
            ("", "phone=call:1 call:2", "phone call"),
            ("", "call=push call", "call call-2"),
            ("a=push b=call", "call push", "b a"),
            ("a=push b=call", "push call", "a b"),
            ("a=push b=call", "call", "b"),
            ("a=push b=call", "mail push call", "mail a b"),
            ("a=call:1 b=call:2", "call:2 call:1", "b a"),
            ("a=call:1 b=call:2", "call:2", "b"),
            ("a=call:1 b=call:2", "call:3 call:2", "a b"),
            ("a=call:1 b=call:2", "call:2 call:3", "b a"),
            ("a=call:1", "call:1 call:1", "a call"),
            ("a=push b=call", "b=push a=call", "b a"),
            ("a=push b=call", "a=mail call", "a b"),
            // The identity of a removed method is not reused for another one.
            ("mail=push", "mail", "mail-2"),
        ] {
            let mut found = methods(draft);
            assign_ids(&mut found, &methods(before));
            let ids: Vec<_> = found.iter().map(|it| &*it.id).collect();
            assert_eq!(ids.join(" "), expected, "{draft} after {before}");
        }
    }

    #[test]
    fn long_destination_name_leaves_room_for_a_number() {
        let long = "d".repeat(100);
        let mut found = methods(&format!("{long}:1 {long}:2"));
        assign_ids(&mut found, &[]);
        let ids: Vec<_> = found.iter().map(|it| &*it.id).collect();
        assert_eq!(ids, ["d".repeat(96), "d".repeat(96) + "-2"]);
        assert!(ids.iter().all(|it| crate::domain::Name::parse(it).is_ok()));
    }
}
