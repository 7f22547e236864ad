//! The main scenarios on a store in a database; their own modules run them on a store in a folder.
//! With `BELLWETHER_TEST_STORE=database` (`just postgres`), all scenarios use a database.

use bellwether_tests::engine::Engine;

macro_rules! in_a_database {
    ($($room:ident :: $journey:ident),+ $(,)?) => {$(
        #[test]
        fn $journey() {
            Engine::Database.within(crate::$room::$journey);
        }
    )+};
}

in_a_database![
    journey::who_is_to_know_is_told_exactly_once_an_occurrence,
    journey::a_destination_is_tested_before_it_is_stored,
    journey::a_delivery_is_tried_again_until_it_arrives,
    journey::a_dead_delivery_is_sent_again_by_hand,
    journey::a_disabled_rule_and_a_suppressed_occurrence_tell_nobody,
    insight::the_noise_report_counts_what_was_sent_and_what_came_of_it,
];
