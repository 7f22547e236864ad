//! Silences, from an event to their list.

#[cfg(feature = "embedded")]
mod against_the_service {
    use super::super::{flows::assert_shows, *};
    use crate::backend::Real;

    #[tokio::test(flavor = "multi_thread")]
    async fn an_event_is_silenced_in_two_keys_after_a_count_and_the_silence_is_ended_in_its_list() {
        let real = Real::start().await;
        let hosts = ["db-1", "db-2"].map(str::to_owned);
        real.send(Severity::Error, hosts.into_iter()).await;
        let mut console = Headless::start(real.options(real.address), 120, 30);
        assert!(console.shows("error").await, "{}", console.screen());
        press(&mut console, "2").await;
        press(&mut console, "/host=db-1<Enter>").await;
        console.press("z").unwrap();
        assert!(
            console.shows("Silence this for two hours?").await,
            "{}",
            console.screen()
        );
        let screen = console.screen();
        assert_shows(&screen, "name=disk dimensions.host=db-1");
        assert_shows(
            &screen,
            "covers 1 open event now, would have held 0 messages in 7 days",
        );
        // The answer is No until a user says Yes.
        press(&mut console, "<Enter>").await;
        let screen = press(&mut console, "0").await;
        assert_shows(&screen, "No silences yet.");
        press(&mut console, "2").await;
        console.press("z").unwrap();
        assert!(
            console.shows("Silence this for two hours?").await,
            "{}",
            console.screen()
        );
        console.press("y").unwrap();
        assert!(
            console.shows("silenced for two hours").await,
            "{}",
            console.screen()
        );
        console.press("0").unwrap();
        assert!(console.shows("active").await, "{}", console.screen());
        assert_shows(&console.screen(), "name=disk dimensions.host=");
        console.press("d").unwrap();
        assert!(
            console.shows("It ends, and held notifications").await,
            "{}",
            console.screen()
        );
        console.press("y").unwrap();
        assert!(
            console.shows("No silences yet.").await,
            "{}",
            console.screen()
        );
    }
}
