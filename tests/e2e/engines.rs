//! The main scenarios with a store in a database; their own modules run them with a store in a
//! folder. With `BELLWETHER_TEST_STORE=database` (`just postgres`), all scenarios use a database.

use bellwether_tests::engine::Engine;

macro_rules! in_a_database {
    ($($room:ident :: $journey:ident),+ $(,)?) => {$(
        #[test]
        fn $journey() {
            Engine::Database.run_on(crate::$room::$journey);
        }
    )+};
}

in_a_database![
    journey::every_receiver_is_notified_once_per_occurrence,
    journey::destination_can_be_tested_before_it_is_stored,
    journey::delivery_is_retried_until_it_succeeds,
    journey::dead_delivery_is_resent_manually,
    journey::disabled_rules_and_suppressed_occurrences_notify_nobody,
    insight::noise_report_counts_notifications_and_their_outcome,
];
