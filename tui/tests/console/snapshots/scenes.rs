//! The scenes: every screen, every dialog, and the possible states of a console.

use super::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    Stocked,
    Empty,
    ReadOnly,
    /// The stocked service, after another client has changed the edited resource.
    Changed,
    Refused,
    /// A service that becomes unreachable after loading.
    Lost,
}

pub(super) struct Scene {
    pub(super) name: String,
    pub(super) keys: String,
    /// Text that shows that the scene is ready, if idleness does not suffice.
    pub(super) shows: Option<&'static str>,
}

/// Scenes on a stocked service, in addition to the screens themselves.
const STOCKED: [(&str, &str); 50] = [
    ("event", "2<Enter>"),
    ("event_notes", "2<Enter><Tab>"),
    ("event_explain", "2x"),
    ("trigger", "3<Enter>"),
    ("destination", "4jj<Enter>"),
    ("rule", "5<Enter>"),
    ("delivery", "6|<Enter>"),
    ("silence", "0|<Enter>"),
    ("calendar", "<A-0>|<Enter>"),
    ("inhibition", "<A-9>|<Enter>"),
    ("mapping", "<A-8>|<Enter>"),
    ("group", "<A-7>|<Enter>"),
    ("waiting", "<A-6>|<Enter>"),
    ("view", "<A-5>|<Enter>"),
    ("heartbeat", "<A-h>|<Enter>"),
    ("report_test", "4jjt"),
    ("report_try", "3t"),
    ("report_preview", "5p"),
    ("report_event", "5pv"),
    ("obligations", "O"),
    ("handover", "8h"),
    ("keys_begun", "2g"),
    ("bulk", "6A"),
    ("confirm_cancel", "6|jc"),
    ("events_held", "2p"),
    ("events_filtered", "2/severity>=error host=db1<Enter>"),
    (
        "form_secret",
        "4nx<Tab><Tab>https://x<Tab><Tab><Tab><Tab><Tab><Tab><Tab><Tab><Space><Tab>whsec_c2VjcmV0",
    ),
    (
        "form_reveal",
        "4nx<Tab><Tab>https://x<Tab><Tab><Tab><Tab><Tab><Tab><Tab><Tab><Space><Tab>whsec_c2VjcmV0<C-r>",
    ),
    ("form_trigger", "3e<Tab><Tab>"),
    ("form_destination", "4e"),
    ("form_rule", "5e"),
    ("form_pick", "5e<Tab><Tab><Enter>"),
    ("form_client", "7n"),
    ("form_leave", "4nx<Esc>"),
    ("form_quit", "4nx<C-c>"),
    ("client_key", "7|nnew<C-s>|y"),
    ("confirm_delete", "4jjd"),
    ("confirm_events", "2<Space><Space>c"),
    ("confirm_save", "5e<Tab><Tab><Tab>at night<C-s>"),
    ("prompt_note", "2w"),
    ("palette", ":"),
    ("palette_found", ":dest pag"),
    ("palette_argument", ":theme "),
    ("help_list", "2?"),
    ("help_form", "5e<F1>"),
    ("filter_typed", "4/pag"),
    ("filter_nothing", "4/zzz<Enter>"),
    ("marked", "2<Space>j<Space>"),
    ("sorted", "4SSSS"),
    ("notice", "2y"),
];

impl Setting {
    pub(super) const ALL: [Self; 6] = [
        Self::Stocked,
        Self::Empty,
        Self::ReadOnly,
        Self::Changed,
        Self::Refused,
        Self::Lost,
    ];

    pub(super) async fn world(self) -> World {
        match self {
            Self::Empty => World::empty().await,
            _ => World::stocked().await,
        }
    }
}

/// Returns the scenes of a setting. Those of a stocked and of an empty service include every
/// screen.
pub(super) fn all(setting: Setting) -> Vec<Scene> {
    let scene = |name: String, keys: String| Scene {
        name,
        keys,
        shows: None,
    };
    let screens = |prefix: &'static str| {
        let screens = bellwether_tui::screen_names().into_iter();
        screens.map(move |screen| {
            scene(
                format!("{prefix}{screen}"),
                format!(":go to {screen}<Enter>"),
            )
        })
    };
    match setting {
        Setting::Stocked => {
            let more = STOCKED.map(|(name, keys)| scene(name.to_owned(), keys.to_owned()));
            let refused = Scene {
                shows: Some("✗ does not start with"),
                ..scene("form_refused".into(), "4nhook<Tab><Tab>ftp://x".into())
            };
            screens("").chain(more).chain([refused]).collect()
        }
        Setting::Empty => screens("empty_").collect(),
        Setting::ReadOnly => vec![
            scene("read_only_rules".into(), "5".into()),
            scene("read_only_palette".into(), "5:delete rule night".into()),
        ],
        Setting::Changed => vec![Scene {
            shows: Some("changed concurrently"),
            ..scene("clash".into(), "5e<Tab><Tab><Tab>at night".into())
        }],
        Setting::Refused => vec![scene("refused_overview".into(), "1".into())],
        Setting::Lost => vec![
            scene("lost_events".into(), "2".into()),
            scene("lost_form".into(), "5e".into()),
        ],
    }
}
