//! Budgets, and the content of digests.

use crate::{
    domain::{BudgetWindow, DigestContent, DigestItem, DigestRow},
    record::table::record,
};

record! { BudgetWindow { 1 destination, 2 until_ms, 3 sent, 4 held, 5 digest, 6 dead } }

record! { DigestContent {
    1 id, 2 start_ms, 3 end_ms, 4 count, 5 clear_count, 6 rows, 7 items,
} }

record! { DigestRow { 1 rule_name, 2 severity, 3 count, 4 clear_count } }

record! { DigestItem { 1 rule_name, 2 clear, 3 at_ms, 4 occurrence } }
