//! Conditions on events as one line of text.

use bellwether_language::filter;
use bellwether_proto::{clause, v1::Clause};

pub(crate) fn describe(clause: &Clause) -> String {
    let read = clause::from_wire(clause);
    read.map_or_else(
        || "(nothing)".to_owned(),
        |read| filter::print_clause(&read),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_is_described_in_one_line() {
        let clause = serde_json::json!({"and":{"clauses":[
            {"greaterAndEquals":{"field":"severity","value":"SEVERITY_ERROR"}},
            {"or":{"clauses":[
                {"contains":{"field":"summary","value":"disk full"}},
                {"in":{"field":"env","values":["lab", 3]}}]}},
            {"not":{"clause":{"equals":{"field":"dimensions.env","stringVal":"lab"}}}}]}});
        let clause = bellwether_proto::json::from_json::<Clause>(clause.to_string().as_bytes());
        assert_eq!(
            describe(&clause.unwrap()),
            "severity>=SEVERITY_ERROR (summary=*\"disk full\"* or env in (lab, 3)) \
             dimensions.env!=lab"
        );
    }
}
