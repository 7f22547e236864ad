//! The history of changes, from the audit log.

use super::{flows::assert_shows, *};
use crate::backend::Real;

#[tokio::test(flavor = "multi_thread")]
async fn history_shows_changes_of_one_object_or_of_all() {
    let real = Real::start().await;
    real.send(Severity::Error, std::iter::once("db-1".to_owned()))
        .await;
    let mut console = Headless::start(real.options(real.address), 100, 30);
    assert!(console.shows("error").await, "{}", console.screen_text());
    press(&mut console, "3ndisk<Tab>severity=error<C-s>").await;
    press(&mut console, "y").await;
    press(&mut console, "e<C-u>severity=critical<C-s>").await;
    press(&mut console, "y").await;
    let screen = press(&mut console, "H").await;
    assert_shows(&screen, "Who changed trigger disk");
    assert_shows(&screen, "updated trigger disk");
    assert_shows(&screen, "created trigger disk");
    assert_shows(&screen, "critical");
    press(&mut console, "2").await;
    press(&mut console, "a").await;
    assert!(
        console.shows("U undoes it").await,
        "{}",
        console.screen_text()
    );
    let screen = press(&mut console, "H").await;
    assert_shows(&screen, "Who changed occurrence ");
    assert_shows(&screen, "updated occurrence");
    assert!(!screen.contains("trigger"), "{screen}");
    let screen = press(&mut console, "1H").await;
    assert_shows(&screen, "Who changed what, newest first.");
    assert_shows(&screen, "updated occurrence");
    assert_shows(&screen, "created trigger disk");
}
