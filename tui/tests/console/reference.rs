//! The built-in reference: topics, search, and the link from a form field.

use bellwether_proto::reference::{Block, TOPICS};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn every_topic_opens_and_scrolls_to_its_end() {
    let service = Service::start().await;
    for (columns, rows) in [(60, 15), (100, 30)] {
        let mut console = console(&service, columns, rows).await;
        // Every topic and every heading in the list is a link.
        let mut links = 1;
        for topic in TOPICS {
            let keys = format!("9gg{}<Enter>", "<Tab>".repeat(links));
            let screen = press(&mut console, &keys).await;
            assert!(screen.contains(topic.title()), "{screen}");
            let screen = press(&mut console, "G").await;
            assert!(!screen.contains('↓'), "{screen}");
            press(&mut console, "<Esc>").await;
            let headings = topic.blocks().into_iter();
            links += 1 + headings
                .filter(|it| matches!(it, Block::Heading(_)))
                .count();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn search_over_all_topics_opens_the_matching_line() {
    let service = Service::start().await;
    let mut console = console(&service, 80, 24).await;
    let screen = press(&mut console, "9/rate<C-u>not_in_channel<Enter>").await;
    assert!(screen.contains("Setting up chat"), "{screen}");
    assert!(screen.contains("invite the app"), "{screen}");
    assert!(!screen.contains("Trigger queries"), "{screen}");
    let screen = press(&mut console, "<Tab><Tab><Enter>").await;
    assert!(screen.contains("› chat"), "{screen}");
    let line = screen.lines().find(|line| line.contains("not_in_channel"));
    assert!(line.is_some_and(|line| line.starts_with('▏')), "{screen}");
    // Back to the search results, then to all topics.
    assert!(
        press(&mut console, "<Esc>")
            .await
            .contains("invite the app")
    );
    assert!(
        press(&mut console, "<Esc>")
            .await
            .contains("Trigger queries")
    );
    let screen = press(&mut console, "/no such words<Enter>").await;
    assert!(
        screen.contains("nothing in the reference contains"),
        "{screen}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn search_in_a_topic_moves_between_matches() {
    let service = Service::start().await;
    let mut console = console(&service, 80, 24).await;
    let first = press(&mut console, "9<Tab><Enter>/event.name<Enter>").await;
    let line = first.lines().find(|line| line.starts_with('▏'));
    assert!(
        line.is_some_and(|line| line.contains("event.name")),
        "{first}"
    );
    let other = press(&mut console, "/<C-u>event.count<Enter>").await;
    let second = press(&mut console, "/<Enter>").await;
    assert_ne!(other, second);
    let screen = press(&mut console, "/<C-u>nowhere at all<Enter>").await;
    assert!(screen.contains("nothing here contains"), "{screen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn field_help_opens_its_topic_and_returns_to_the_form() {
    let service = Service::start().await;
    let mut console = console(&service, 80, 24).await;
    let screen = press(&mut console, "3nunsaved name<Tab><C-o>").await;
    assert!(screen.contains("› queries"), "{screen}");
    let screen = press(&mut console, "<Esc>").await;
    assert!(screen.contains("unsaved name"), "{screen}");
}
