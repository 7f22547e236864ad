//! Tests of the precedence of settings, and of errors in them.

use std::fs;

use super::*;

fn load(flags: &Flags, variables: &[(&str, &str)], file: &str) -> Result<Settings, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("bellwether.toml");
    fs::write(&config, file).unwrap();
    let mut variables: Variables = variables
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect();
    variables.insert("BELLWETHER_CONFIG".into(), config.to_str().unwrap().into());
    Settings::load(flags, &variables, |_| Part::Service)
}

fn problem(variables: &[(&str, &str)], file: &str) -> String {
    load(&Flags::default(), variables, file)
        .unwrap_err()
        .to_string()
}

fn uncommented() -> String {
    let is_setting = |line: &str| {
        line.strip_prefix("# ").is_some_and(|rest| {
            rest.split_once(" = ").is_some_and(|(key, _)| {
                key.chars()
                    .all(|character| character.is_ascii_lowercase() || character == '_')
            })
        })
    };
    DEFAULT_FILE
        .lines()
        .map(|line| if is_setting(line) { &line[2..] } else { line })
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn flags_override_variables_and_variables_override_the_file() {
    let file = "data_dir = \"/file\"\ntenant = \"file\"\nrest_listen = \"127.0.0.1:1\"\n";
    let variables = [
        ("BELLWETHER_DATA_DIR", "/variable"),
        ("BELLWETHER_REST_LISTEN", "127.0.0.1:2"),
    ];
    let flags = Flags {
        data_dir: Some("/flag".into()),
        ..Flags::default()
    };

    let settings = load(&flags, &variables, file).unwrap();

    assert_eq!(settings.data_dir, PathBuf::from("/flag"));
    assert_eq!(settings.rest_listen, Some(loopback(2)));
    assert_eq!(settings.backend_config().unwrap().shared.tenant, "file");
}

#[test]
fn default_file_documents_every_setting() {
    let values = file::read_values(&uncommented(), Path::new("default")).unwrap();
    let documented: Vec<_> = values
        .settings
        .iter()
        .map(|(key, _)| key.as_str())
        .collect();
    for setting in setting::all_settings() {
        assert!(
            documented.contains(&setting.key),
            "{} is not documented",
            setting.key
        );
    }
}

#[test]
fn default_file_shows_the_actual_defaults() {
    let message = load(&Flags::default(), &[], &uncommented()).unwrap();
    let parsed_gateway = message.gateway_config();
    let parsed_metrics = message.service.metrics.listen;
    let mut message = message.backend_config().unwrap();
    // Ignore the address of the metrics, which has no default.
    message
        .egress
        .own
        .retain(|own| Some(*own) != parsed_metrics);
    let settings = load(
        &Flags::default(),
        &[("BELLWETHER_DATA_DIR", "/x")],
        DEFAULT_FILE,
    )
    .unwrap();
    let truth = settings.backend_config().unwrap();

    assert_eq!(message.grpc_listen, truth.grpc_listen);
    assert_eq!(message.shared, truth.shared);
    assert_eq!(message.link_base, truth.link_base);
    assert_eq!(message.link_template, truth.link_template);
    assert_eq!(message.link_lifetime, truth.link_lifetime);
    assert_eq!(message.store, truth.store);
    assert_eq!(message.delivery, truth.delivery);
    assert_eq!(message.egress, truth.egress);
    assert_eq!(message.providers, truth.providers);
    assert_eq!((message.oidc, truth.oidc), (None, None));
    assert_eq!(settings.traces(), None);
    let collector = [("BELLWETHER_TRACES_ENDPOINT", "http://127.0.0.1:4317")];
    let traces = |file: &str| load(&Flags::default(), &collector, file).unwrap().traces();
    assert_eq!(traces(&uncommented()), traces(DEFAULT_FILE));
    assert!(traces(DEFAULT_FILE).is_some());
    assert_eq!(parsed_gateway, bellwether_gateway::Config::default());
    assert_eq!(truth.smtp, None);
    assert_eq!(settings.rest_listen, None);
}

#[test]
fn every_setting_has_a_unique_variable() {
    let mut names: Vec<_> = setting::all_settings()
        .map(|setting| variables::variable_name(setting.key))
        .collect();
    names.push("BELLWETHER_KEY".into());
    names.push("BELLWETHER_CONFIG".into());
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn durations_sizes_and_lists_are_parsed() {
    let variables = [
        ("BELLWETHER_DATA_DIR", "/x"),
        ("BELLWETHER_STORE_CACHE_SIZE", "3MiB"),
        ("BELLWETHER_EGRESS_ALLOW", "10.0.0.0/8, 127.0.0.0/8"),
    ];
    let file = "[delivery]\nschedule = [\"0s\", \"250ms\", \"2h\"]\njitter = 0.5\n";

    let config = load(&Flags::default(), &variables, file)
        .unwrap()
        .backend_config()
        .unwrap();

    assert_eq!(config.store.cache_bytes, 3 << 20);
    assert_eq!(config.egress.allow.len(), 2);
    let milliseconds = [0, 250, 7_200_000].map(Duration::from_millis);
    assert_eq!(config.delivery.schedule, milliseconds);
}

/// Test case, file, start of the error, and another part of it.
const REFUSED: [(&str, &str, &str, &str); 22] = [
    (
        "link",
        "link_template = \"https://{{event.name}}/x\"",
        "link_template (in ",
        "before its path",
    ),
    (
        "proxy",
        "[egress]\nproxy = \"socks5://proxy:1080\"",
        "egress.proxy (in ",
        "\"http://proxy.example.net:3128\"",
    ),
    (
        "timeout in seconds",
        "[delivery]\ntimeout = 30",
        "delivery.timeout (in ",
        "such as \"30s\"",
    ),
    (
        "unit",
        "[delivery]\ntimeout = \"30 seconds\"",
        "delivery.timeout (in ",
        "(ms, s, m, h, d)",
    ),
    (
        "zero",
        "[delivery]\ntimeout = \"0s\"",
        "delivery.timeout (in ",
        "above zero",
    ),
    (
        "too many",
        "[delivery]\nmax_in_flight = 0",
        "delivery.max_in_flight",
        "from 1 to 10000",
    ),
    (
        "word",
        "log_format = \"xml\"",
        "log_format (in ",
        "\"text\" or \"json\"",
    ),
    (
        "network",
        "[egress]\nallow = [\"10.0.0\"]",
        "egress.allow (in ",
        "\"10.0.0.0/8\"",
    ),
    (
        "authorities that are not there",
        "[egress]\nca_file = \"/nowhere/ca.pem\"",
        "egress.ca_file (in ",
        "cannot read /nowhere/ca.pem",
    ),
    (
        "authorities that are none",
        "[egress]\nca_file = \"Cargo.toml\"",
        "egress.ca_file (in ",
        "contains no PEM certificate",
    ),
    (
        "address",
        "rest_listen = \"localhost\"",
        "rest_listen (in ",
        "127.0.0.1:8480",
    ),
    (
        "section",
        "delivery = 3",
        "delivery (in ",
        "unknown setting",
    ),
    ("TOML", "data_dir = \n", "bellwether.toml:1:", ""),
    (
        "mail",
        "[smtp]\nhost = \"a\"",
        "smtp.from: required",
        "smtp.host is set",
    ),
    (
        "mail user",
        "[smtp]\nhost = \"a\"\nfrom = \"b@example.net\"\nuser = \"c\"",
        "smtp.password: required",
        "",
    ),
    (
        "mail sender",
        "[smtp]\nhost = \"a\"\nfrom = \"Alerts\"",
        "smtp.from: `Alerts` is not an email address",
        "Ops <ops@example.com>",
    ),
    (
        "the name in EHLO",
        "[smtp]\nhello = \"my host\"",
        "smtp.hello (in ",
        "mail.example.net",
    ),
    (
        "an address in EHLO",
        "[smtp]\nhello = \"[my.host]\"",
        "smtp.hello (in ",
        "[192.0.2.1]",
    ),
    (
        "a wait for mail",
        "[delivery]\nmail_answer_timeout = \"11m\"",
        "delivery.mail_answer_timeout (in ",
        "at most 600s",
    ),
    (
        "a mail token without a user",
        "[smtp]\nhost = \"a\"\nfrom = \"b@example.net\"\noauth_scope = \"c\"",
        "smtp.user: required",
        "smtp.oauth_scope is set",
    ),
    (
        "a mail token without a client",
        "[smtp]\nhost = \"a\"\nfrom = \"b@example.net\"\nuser = \"c\"\n\
         oauth_token_url = \"https://example.net/token\"",
        "smtp.oauth_client_id: required",
        "smtp.oauth_token_url is set",
    ),
    (
        "a mail token beside a password",
        "[smtp]\nhost = \"a\"\nfrom = \"b@example.net\"\nuser = \"c\"\npassword = \"d\"\n\
         oauth_client_id = \"e\"",
        "smtp.password: conflicts with smtp.oauth_client_id",
        "",
    ),
];

#[test]
fn invalid_value_is_reported_under_its_setting_name() {
    for (case, file, names, says) in REFUSED {
        let problem = problem(&[("BELLWETHER_DATA_DIR", "/x")], file);
        assert!(problem.contains(names), "{case}: {problem}");
        assert!(problem.contains(says), "{case}: {problem}");
    }
    let variable = problem(&[("BELLWETHER_DELIVERY_JITTER", "2")], "");
    assert!(
        variable.starts_with("BELLWETHER_DELIVERY_JITTER: expected a fraction"),
        "{variable}"
    );
    let flags = Flags {
        grpc_listen: Some("here".into()),
        ..Flags::default()
    };
    let flag = load(&flags, &[], "").unwrap_err().to_string();
    assert!(
        flag.starts_with("--grpc-listen: expected an address"),
        "{flag}"
    );
}

#[test]
fn unknown_key_is_rejected_with_a_suggestion() {
    let cases = [
        ("data_dri = \"/x\"", "data_dri", "nearest is data_dir"),
        (
            "[delivery]\ntimeuot = \"3s\"",
            "delivery.timeuot",
            "nearest is delivery.timeout",
        ),
        ("[egres]\nallow = []", "[egres] (in", "nearest is [egress]"),
        (
            "[context.prod]\nconnect = \"x\"",
            "[context] (in",
            "nearest is [contexts]",
        ),
        (
            "data_dir = 123",
            "data_dir (in",
            "expected a string, found 123; quote it",
        ),
    ];
    for (file, names, says) in cases {
        let problem = problem(&[], file);
        assert!(problem.starts_with(names), "{problem}");
        assert!(problem.contains(says), "{problem}");
    }
}

#[test]
fn removed_setting_is_rejected_with_the_reason() {
    let why = "setting removed: every commit needs two syncs";
    let file = problem(&[], "[store]\ntwo_phase_commit = true");
    assert!(file.starts_with("store.two_phase_commit (in "), "{file}");
    assert!(file.contains(why), "{file}");
    for name in [
        "BELLWETHER_STORE_TWO_PHASE_COMMIT",
        "BELLWETHER_STORE_TWO_PHASE_COMMIT_FILE",
    ] {
        let variable = problem(&[(name, "false")], "");
        assert!(
            variable.starts_with(&format!("{name}: {why}")),
            "{variable}"
        );
    }
}

#[test]
fn listening_on_a_public_address_requires_confirmation() {
    for address in ["0.0.0.0:8480", "[::]:8480", "192.0.2.1:1"] {
        let refused = problem(&[("BELLWETHER_REST_LISTEN", address)], "");
        assert!(
            refused.starts_with("rest_listen: other machines reach"),
            "{refused}"
        );
        let variables = [
            ("BELLWETHER_REST_LISTEN", address),
            ("BELLWETHER_INSECURE", "true"),
        ];
        load(&Flags::default(), &variables, "data_dir = \"/x\"").unwrap();
    }
    load(
        &Flags::default(),
        &[("BELLWETHER_REST_LISTEN", "[::1]:0")],
        "data_dir = \"/x\"",
    )
    .unwrap();
}

#[test]
fn listen_address_is_an_ip_or_a_resolvable_name() {
    let listen = |text: &str| {
        let variables = [
            ("BELLWETHER_DATA_DIR", "/x"),
            ("BELLWETHER_REST_LISTEN", text),
        ];
        let flags = Flags {
            insecure: true,
            ..Flags::default()
        };
        load(&flags, &variables, "").map(|settings| settings.rest_listen.unwrap())
    };
    for (text, address) in [
        ("127.0.0.1:8480", "127.0.0.1:8480"),
        ("localhost:8480", "127.0.0.1:8480"),
        (":8480", "0.0.0.0:8480"),
        ("LOCALHOST:0", "127.0.0.1:0"),
        ("[::1]:0", "[::1]:0"),
    ] {
        assert_eq!(listen(text).unwrap(), address.parse().unwrap(), "{text}");
    }
    for (text, says) in [
        (
            "name.invalid:8480",
            "the name \"name.invalid\" cannot be resolved",
        ),
        ("localhost", "expected an address and a port"),
        ("localhost:", "expected an address and a port"),
        ("localhost:99999", "expected an address and a port"),
        ("::1:8480", "expected an address and a port"),
        ("http://localhost:8480", "expected an address and a port"),
        ("", "expected an address and a port"),
    ] {
        let refused = listen(text).unwrap_err().to_string();
        assert!(refused.starts_with("BELLWETHER_REST_LISTEN: "), "{refused}");
        assert!(refused.contains(says), "{text}: {refused}");
    }
}

#[test]
fn settings_are_validated_only_for_the_part_using_them() {
    let cases = [
        ("BELLWETHER_STORE_PASSWORD_FILE", "/nowhere", Part::Store),
        ("BELLWETHER_STORE_PASSWORD", "secret", Part::Store),
        ("BELLWETHER_STORE_CONNECTIONS", "0", Part::Store),
        ("BELLWETHER_SMTP_PORT", "no", Part::Service),
        ("BELLWETHER_SMTP_HOST", "a", Part::Service),
        ("BELLWETHER_GRPC_LISTEN", "0.0.0.0:1", Part::Service),
        ("BELLWETHER_TLS_CLIENT_OPTIONAL", "maybe", Part::Service),
        ("BELLWETHER_GRPC_LISTEN", "here", Part::Client),
        ("BELLWETHER_CONNECT", "here", Part::Client),
        ("BELLWETHER_KEY_FILE", "", Part::Client),
        ("BELLWETHER_TLS_CERT", "/a", Part::Client),
    ];
    for (name, value, needed) in cases {
        let variables = [("BELLWETHER_DATA_DIR", "/x"), (name, value)];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        for part in [Part::Client, Part::Store, Part::Service] {
            let loaded = Settings::load(&Flags::default(), &variables.clone().into(), |_| part);
            assert_eq!(
                loaded.is_err(),
                part >= needed,
                "{name} {part:?}: {loaded:?}"
            );
        }
    }
}

#[test]
fn key_source_follows_precedence() {
    let file = "data_dir = \"/x\"\nkey_file = \"/from-file\"\n";
    let given = ("BELLWETHER_KEY", " secret\n");
    let named = ("BELLWETHER_KEY_FILE", "/from-variable");
    let flags = || Flags {
        key_file: Some("/from-flag".into()),
        ..Flags::default()
    };

    let key = |flags: Flags, variables: &[_], file| load(&flags, variables, file).unwrap().key;
    assert_eq!(
        key(Flags::default(), &[], "data_dir = \"/x\""),
        KeySource::DataDir
    );
    assert_eq!(
        key(Flags::default(), &[], file),
        KeySource::File("/from-file".into())
    );
    assert_eq!(
        key(Flags::default(), &[named], file),
        KeySource::File("/from-variable".into())
    );
    assert_eq!(
        key(Flags::default(), &[named, given], file),
        KeySource::Given("secret".into())
    );
    assert_eq!(
        key(flags(), &[named, given], file),
        KeySource::File("/from-flag".into())
    );
}

#[test]
fn debug_output_hides_secrets() {
    let variables = [
        ("BELLWETHER_DATA_DIR", "/x"),
        ("BELLWETHER_KEY", "planted-key"),
        ("BELLWETHER_SMTP_PASSWORD", "planted-password"),
        ("BELLWETHER_SMTP_USER", "user"),
        ("BELLWETHER_SMTP_HOST", "host"),
        ("BELLWETHER_SMTP_FROM", "a@example.net"),
    ];
    let mut with_a_token = variables.to_vec();
    with_a_token.retain(|(name, _)| *name != "BELLWETHER_SMTP_PASSWORD");
    with_a_token.extend([
        ("BELLWETHER_SMTP_OAUTH_TOKEN_URL", "https://example.net/"),
        ("BELLWETHER_SMTP_OAUTH_CLIENT_ID", "id"),
        ("BELLWETHER_SMTP_OAUTH_CLIENT_SECRET", "planted-secret"),
        ("BELLWETHER_SMTP_OAUTH_REFRESH_TOKEN", "planted-token"),
    ]);
    for variables in [&variables[..], &with_a_token] {
        let settings = load(&Flags::default(), variables, "").unwrap();
        let shown = format!("{settings:?} {:?}", settings.backend_config().unwrap());
        assert!(!shown.contains("planted"), "{shown}");
    }
}

#[test]
fn all_invalid_key_bindings_are_reported_with_their_lines() {
    let file = "[keys]\ncpoy = \"Y\"\ntop = 3\nhelp = []\n\n[keys.events]\nmark = \"q\"\n";
    let message = problem(&[("BELLWETHER_DATA_DIR", "/x")], file);
    let says = [
        ("toml:2: keys.cpoy", "the nearest is `copy`"),
        ("toml:3: keys.top", "expected a key such as"),
        ("toml:4: keys.help", "needs a key"),
        ("toml:7: keys.events.mark", "`q` is also `quit`"),
    ];
    assert_eq!(message.lines().count(), says.len(), "{message}");
    for (at, says) in says {
        let line = message.lines().find(|line| line.contains(at));
        assert!(line.is_some_and(|line| line.contains(says)), "{message}");
    }
}

#[test]
fn key_bindings_are_read_from_any_toml_form() {
    let file = "data_dir = \"/x\"\nkeys.top = \"g g\"\nkeys.events = { mark = ['m'] }\n";
    let message = load(&Flags::default(), &[], file)
        .unwrap()
        .keys
        .reference_text();
    assert!(message.contains("`g g` | Go to the top"), "{message}");
    assert!(message.contains("`m` (events) | Mark"), "{message}");
}

#[test]
fn no_color_applies_unless_a_theme_is_set() {
    let theme = |variables: &[(&str, &str)], flag: Option<&str>| {
        let flags = Flags {
            theme: flag.map(str::to_owned),
            ..Flags::default()
        };
        load(&flags, variables, "data_dir = \"/x\"").unwrap().theme
    };
    let no_color = ("NO_COLOR", "1");
    assert_eq!(theme(&[], None), Theme::Auto);
    assert_eq!(theme(&[no_color], None), Theme::Mono);
    assert_eq!(theme(&[("NO_COLOR", "")], None), Theme::Auto);
    assert_eq!(
        theme(&[no_color, ("BELLWETHER_THEME", "dusk")], None),
        Theme::Dusk
    );
    assert_eq!(theme(&[no_color], Some("auto")), Theme::Auto);
}

#[test]
fn context_selects_a_service_by_name() {
    let file = "connect = \"http://127.0.0.1:1\"\nkey_file = \"/mine\"\n\
        [contexts.prod]\nconnect = \"https://prod:8481\"\nkey_file = \"/prod.key\"\n\
        colour = \"red\"\nread_only = true\n\
        [contexts.lab]\nconnect = \"http://lab:8481\"\n";
    let entered = |context: Option<&str>, connect: Option<&str>| {
        let flags = Flags {
            context: context.map(str::to_owned),
            connect: connect.map(str::to_owned),
            ..Flags::default()
        };
        load(&flags, &[], file)
    };
    let prod = entered(Some("prod"), None).unwrap();
    assert_eq!(prod.connect.as_deref(), Some("https://prod:8481"));
    assert_eq!(prod.key, KeySource::File("/prod.key".into()));
    assert!(prod.read_only);
    assert_eq!(
        prod.context.unwrap().colour,
        bellwether_tui::Colour::find("red")
    );
    let lab = entered(Some("lab"), None).unwrap();
    assert_eq!(
        (lab.connect.as_deref(), lab.read_only),
        (Some("http://lab:8481"), false)
    );
    // A flag overrides the context. Without a context, the settings of no context apply.
    let own = entered(Some("prod"), Some("http://127.0.0.1:2")).unwrap();
    assert_eq!(own.connect.as_deref(), Some("http://127.0.0.1:2"));
    let none = entered(None, None).unwrap();
    assert_eq!(none.connect.as_deref(), Some("http://127.0.0.1:1"));
    assert!(none.context.is_none() && none.contexts.len() == 2);

    let message = entered(Some("prd"), None).unwrap_err().to_string();
    assert_eq!(
        message,
        "--context: unknown context `prd`: there are lab, prod"
    );
}

#[test]
fn invalid_context_is_reported_by_name() {
    for (section, says) in [
        ("[contexts.a]\n", "contexts.a.connect"),
        ("[contexts.a]\nconnect = \"lab\"\n", "an address such as"),
        (
            "[contexts.a]\nconnect = \"http://a\"\ncolour = \"pink\"\n",
            "expected one of red,",
        ),
        (
            "[contexts.a]\nconnect = \"http://a\"\ntenant = \"x\"\n",
            "expected one of connect, key_file",
        ),
        (
            "[contexts.\"a b\"]\nconnect = \"http://a\"\n",
            "letters, digits",
        ),
        ("contexts = 1\n", "expected sections"),
    ] {
        let message = load(&Flags::default(), &[], section)
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("contexts") && message.contains(says),
            "{section}: {message}"
        );
    }
}

#[test]
fn views_are_read_and_invalid_ones_are_reported_by_name() {
    let file = "[views.night]\nfilter = \"severity>=error\"\nsort = \"severity\"\nascending = true\n\
        includes_closed = true\ncolumns = [\"Seen\"]\n[views.\"by host\"]\ngroup_by = \"host\"\n";
    let read = load(&Flags::default(), &[], file).unwrap().views;
    let names: Vec<_> = read.iter().map(|view| view.name.as_str()).collect();
    assert_eq!(names, ["by host", "night"]);
    assert_eq!(read[0].group_by, "host");
    let night = View {
        name: "night".to_owned(),
        filter: "severity>=error".to_owned(),
        sort: "severity".to_owned(),
        ascending: true,
        includes_closed: true,
        columns: vec!["Seen".to_owned()],
        ..View::default()
    };
    assert_eq!(read[1], night);
    for (section, says) in [
        ("views = 1\n", "expected sections"),
        ("[views.a]\nfilter = 1\n", "views.a.filter"),
        ("[views.a]\nsort = \"count\"\n", "startTime"),
        ("[views.a]\nascending = 1\n", "true or false"),
        ("[views.a]\ncolumns = [1]\n", "a list of column titles"),
        (
            "[views.a]\nfiltre = \"a\"\n",
            "expected one of filter, sort",
        ),
    ] {
        let message = load(&Flags::default(), &[], section).unwrap_err();
        let message = message.to_string();
        assert!(
            message.contains("views") && message.contains(says),
            "{message}"
        );
    }
}

#[test]
fn escape_delay_is_longer_over_ssh_and_configurable() {
    let delay = |variables: &[(&str, &str)], file| {
        let settings = load(&Flags::default(), variables, file);
        settings.map(|it| it.escape_delay.as_millis())
    };
    let far = ("SSH_CONNECTION", "192.0.2.1 50000 192.0.2.2 22");
    assert_eq!(delay(&[], "").unwrap(), 40);
    assert_eq!(delay(&[far], "").unwrap(), 100);
    assert_eq!(delay(&[far], "escape_delay = \"25ms\"").unwrap(), 25);
    assert_eq!(delay(&[], "escape_delay = \"0ms\"").unwrap(), 0);
    let refused = delay(&[], "escape_delay = \"2s\"").unwrap_err().to_string();
    assert!(
        refused.contains("escape_delay") && refused.contains("0ms"),
        "{refused}"
    );
}

#[test]
fn terminals_with_kitty_keys_are_detected_by_name() {
    let has = |variables: &[(&str, &str)]| {
        let settings = load(&Flags::default(), variables, "").unwrap();
        settings.kitty_keys
    };
    assert!(has(&[("TERM", "xterm-kitty")]));
    assert!(has(&[("TERM", "xterm-256color"), ("KITTY_WINDOW_ID", "1")]));
    assert!(!has(&[("TERM", "xterm-256color")]));
    assert!(!has(&[("TERM", "foot"), ("TMUX", "/tmp/tmux")]));
}

#[test]
fn system_file_is_read_if_the_user_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (named, own, system) = (path("named"), path("own"), path("system"));
    let selected = |named: Option<&Path>| {
        let named = named.map(Path::to_owned);
        file::select_file(named, Some(own.clone()), &system)
    };
    assert_eq!(selected(None), None);
    fs::write(&system, "").unwrap();
    assert_eq!(selected(None), Some(system.clone()));
    fs::write(&own, "").unwrap();
    assert_eq!(selected(None), Some(own.clone()));
    assert_eq!(selected(Some(&named)), Some(named.clone()));
}

#[test]
fn notice_settings_are_read_from_file_and_variables() {
    let file = "[notice]\nseverity = \"error\"\npopup = \"osc777\"\nquiet = \"22:00-07:00\"\n";
    let variables = [("BELLWETHER_NOTICE_BELL", "false"), ("TMUX", "/tmp/tmux")];
    let notices = load(&Flags::default(), &variables, file).unwrap().notices;
    assert_eq!(notices.popup.as_str(), "osc777");
    assert_eq!(notices.quiet, "22:00-07:00".parse().ok());
    assert!(!notices.bell && notices.title && notices.tmux);
    let off = load(&Flags::default(), &[], "[notice]\nquiet = \"\"\n").unwrap();
    assert_eq!(off.notices, Notices::default());
    for (file, message) in [
        ("[notice]\nquiet = \"22-7\"\n", "notice.quiet (in "),
        ("[notice]\nquiet = \"22-7\"\n", "such as \"22:00-07:00\""),
        (
            "[notice]\npopup = \"osc8\"\n",
            "\"off\", \"osc9\", \"osc777\" or \"osc99\"",
        ),
        ("[notice]\nseverity = \"major\"\n", "notice.severity"),
        ("[notice]\nbel = true\n", "the nearest is notice.bell"),
    ] {
        let found = problem(&[], file);
        assert!(found.contains(message), "{found}");
    }
}

#[test]
fn command_errors_name_the_command_and_both_meanings_of_a_key() {
    let section = |lines: &str| format!("[commands.ssh]\n{lines}\n");
    let run = "run = [\"ssh\", \"{dimensions.host}\"]";
    let good = section(&format!(
        "key = \"g l\"\nscreens = [\"events\", \"rule\"]\n{run}"
    ));
    load(&Flags::default(), &[], &good).unwrap();
    for (lines, message) in [
        (
            format!("key = \"a\"\n{run}"),
            "commands.ssh.key: `a` is also `acknowledge` (in events)",
        ),
        (run.to_owned(), "commands.ssh.key (in "),
        ("key = \"X\"".to_owned(), "commands.ssh.run (in "),
        (
            "key = \"X\"\nrun = \"ssh host\"".to_owned(),
            "expected a list such as [\"ssh\"",
        ),
        (
            "key = \"X\"\nrun = [\"ssh\", 1]".to_owned(),
            "commands.ssh.run (in ",
        ),
        (format!("key = 1\n{run}"), "expected a key such as"),
        (
            format!("key = \"X\"\nshell = true\n{run}"),
            "commands.ssh.shell (in ",
        ),
        (
            format!("key = \"X\"\nscreens = [\"overview\"]\n{run}"),
            "shows no item",
        ),
    ] {
        let found = problem(&[], &section(&lines));
        assert!(found.contains(message), "{found}");
    }
    // A key that the file binds to an action.
    let bound = format!(
        "[keys]\ntop = \"X\"\n{}",
        section(&format!("key = \"X\"\n{run}"))
    );
    let found = problem(&[], &bound);
    assert!(found.contains("`X` is also `top`"), "{found}");
}

#[test]
fn browser_needs_a_display_on_this_machine() {
    let opener = |variables: &[(&str, &str)]| {
        let settings = load(&Flags::default(), variables, "").unwrap();
        settings.opener
    };
    assert_eq!(
        opener(&[("DISPLAY", ":0"), ("SSH_TTY", "/dev/pts/1")]),
        None
    );
    if cfg!(target_os = "linux") {
        assert_eq!(opener(&[]), None);
        let opener = opener(&[("WAYLAND_DISPLAY", "wayland-0")]);
        assert_eq!(opener.as_deref(), Some("xdg-open"));
    }
}
