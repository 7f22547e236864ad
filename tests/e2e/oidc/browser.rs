//! Users who sign in by browser, and attacks that must fail.

mod flood;

use std::collections::BTreeMap;

use bellwether_tests::{rest::Rest, world::World};
use http::Method;
use http_body_util::{BodyExt as _, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde_json::json;

use super::{Provider, settings};
use crate::samples;

/// The configured address of the gateway. No server listens there: the test replaces it with the
/// address in use.
const PAGE: &str = "http://127.0.0.1:9";

/// A user's browser, which stores cookies per site and follows redirects.
struct Browser {
    gateway: String,
    cookies: BTreeMap<(String, String), String>,
}

struct Answer {
    status: u16,
    next: Option<String>,
    set: Vec<String>,
    body: String,
}

impl Answer {
    fn signs_in(&self) -> bool {
        let has_session = |it: &String| it.contains("bellwether=") && !it.contains("bellwether=;");
        self.set.iter().any(has_session)
    }
}

impl Browser {
    fn new(world: &World) -> Self {
        Self {
            gateway: format!("http://{}", world.service().address("rest")),
            cookies: BTreeMap::new(),
        }
    }

    async fn open(&mut self, path: &str) -> (u16, String) {
        self.ask(Method::GET, path, "", "none").await
    }

    /// Requests a path from a page of this site, and follows redirects.
    async fn ask(&mut self, method: Method, path: &str, form: &str, site: &str) -> (u16, String) {
        let mut answer = self
            .step(method, &format!("{PAGE}{path}"), form, site)
            .await;
        for _ in 0..10 {
            let Some(next) = answer.next else {
                return (answer.status, answer.body);
            };
            answer = self.step(Method::GET, &next, "", site).await;
        }
        panic!("the redirects do not end");
    }

    async fn step(&mut self, method: Method, address: &str, form: &str, site: &str) -> Answer {
        let uri: http::Uri = address.replacen(PAGE, &self.gateway, 1).parse().unwrap();
        let host = uri.authority().unwrap().to_string();
        let sent = self.cookies.iter();
        let sent = sent.filter(|((of, _), value)| *of == host && !value.is_empty());
        let sent: Vec<_> = sent
            .map(|((_, name), value)| format!("{name}={value}"))
            .collect();
        let request = http::Request::builder()
            .method(method)
            .uri(uri)
            .header("content-type", "application/x-www-form-urlencoded")
            .header("cookie", sent.join("; "))
            .header("sec-fetch-site", site)
            .body(Full::<bytes::Bytes>::from(form.to_owned()))
            .unwrap();
        let client = Client::builder(TokioExecutor::new()).build_http();
        let answer = client.request(request).await.unwrap();
        let lines = answer.headers().get_all("set-cookie").iter();
        let set: Vec<_> = lines.map(|it| it.to_str().unwrap().to_owned()).collect();
        for cookie in &set {
            let pair = cookie.split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            let place = (host.clone(), name.to_owned());
            self.cookies.insert(place, value.to_owned());
        }
        let status = answer.status();
        let next = answer.headers().get("location");
        let next = next.map(|it| it.to_str().unwrap().to_owned());
        let next = next.map(|next| match next.strip_prefix('/') {
            Some(path) => format!("http://{host}/{path}"),
            None => next,
        });
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        Answer {
            status: status.as_u16(),
            next: next.filter(|_| status.is_redirection()),
            set,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    /// Starts a sign-in, and returns the address to which the provider redirects with the code.
    async fn comes_back(&mut self, to: &str) -> String {
        let address = format!("{PAGE}/sign-in?to={to}");
        let mut answer = self.step(Method::GET, &address, "", "none").await;
        for _ in 0..10 {
            let next = answer.next.expect("it is redirected");
            if next.contains("/signed-in?") {
                return next;
            }
            answer = self.step(Method::GET, &next, "", "none").await;
        }
        panic!("it did not return");
    }

    async fn arrives(&mut self, address: &str) -> Answer {
        self.step(Method::GET, address, "", "cross-site").await
    }

    fn cookie(&self, name: &str) -> &str {
        let mut found = self.cookies.iter().filter(|((_, of), _)| of == name);
        found.next().map_or("", |(_, value)| value)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn browser_sign_in_is_valid_only_for_web_pages() {
    let Some(provider) = Provider::start(600) else {
        return;
    };
    let settings = format!("{}page = {PAGE:?}\n", settings(&provider.issuer));
    let world = World::with_settings(&settings);
    let mut ada = Browser::new(&world);
    let (_, welcome) = ada.open("/").await;
    assert!(welcome.contains("href=\"/sign-in?to=%2F\""), "{welcome}");
    assert!(welcome.contains("type=\"password\""), "{welcome}");
    let (status, shown) = ada.open("/sign-in?to=%2F").await;
    assert_eq!(status, 200, "{shown}");
    assert!(
        shown.contains("0 open") && shown.contains("Sign out"),
        "{shown}"
    );
    assert!(!shown.contains("type=\"password\""), "{shown}");
    let (status, shown) = ada.open("/").await;
    assert!(status == 200 && shown.contains("0 open"), "{shown}");

    // The cookie grants no other access, and is not accepted from other sites.
    assert_eq!(ada.open("/v1/notification/rules").await.0, 401);
    for (site, expected) in [
        ("same-origin", 200),
        ("same-site", 403),
        ("cross-site", 403),
    ] {
        let (status, shown) = ada.ask(Method::POST, "/", "do=show", site).await;
        assert_eq!(status, expected, "{site}: {shown}");
    }
    let token = ada.cookie("bellwether").to_owned();
    assert_eq!(token.split('.').count(), 3);
    let log = world.service().log();
    assert!(!log.contains(&token), "a token is in the log");

    let (_, shown) = ada.ask(Method::POST, "/sign-out", "", "same-origin").await;
    assert!(
        shown.contains("/sign-in") && !shown.contains("0 open"),
        "{shown}"
    );
    assert_eq!(ada.cookie("bellwether"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn browser_completes_only_sign_ins_it_started() {
    let Some(provider) = Provider::start(600) else {
        return;
    };
    let settings = format!("{}page = {PAGE:?}\n", settings(&provider.issuer));
    let world = World::with_settings(&settings);
    let mut browser = Browser::new(&world);
    let (status, reported) = browser.open("/signed-in?code=a&state=b").await;
    assert_eq!(status, 401);
    assert!(
        reported.contains("started in another browser"),
        "{reported}"
    );

    provider.ask("/come?account=nobody", None).await;
    let (status, reported) = browser.open("/sign-in").await;
    assert_eq!(status, 401);
    assert!(
        reported.contains("the provider declined the sign-in"),
        "{reported}"
    );
    let state = browser.cookie("bellwether-sign-in");
    let state = state.split('.').next().unwrap().to_owned();
    let (status, reported) = browser
        .open(&format!("/signed-in?code=a&state={state}"))
        .await;
    assert_eq!(status, 401);
    assert!(reported.contains("the provider refused"), "{reported}");

    provider.ask("/come?account=eve", None).await;
    let (status, reported) = Browser::new(&world).open("/sign-in").await;
    assert_eq!(status, 403);
    assert!(reported.contains("has no role"), "{reported}");

    drop(provider);
    let (status, reported) = browser
        .open(&format!("/signed-in?code=a&state={state}"))
        .await;
    assert_eq!(status, 503);
    assert!(reported.contains("does not respond"), "{reported}");
}

fn at_page(provider: &Provider) -> World {
    let settings = settings(&provider.issuer);
    World::with_settings(&format!("{settings}page = {PAGE:?}\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn authorization_code_works_once_in_the_same_browser() {
    let Some(provider) = Provider::start(600) else {
        return;
    };
    let world = at_page(&provider);
    let (mut ada, mut mallory) = (Browser::new(&world), Browser::new(&world));
    let back = ada.comes_back("%2F").await;
    let theirs = mallory.comes_back("%2F").await;
    let parameter = |address: &str, name: &str| {
        let url = url::Url::parse(address).unwrap();
        let mut pairs = url.query_pairs().filter(|(found, _)| found == name);
        pairs.next().expect("it is present").1.into_owned()
    };
    let (code, state) = (parameter(&back, "code"), parameter(&back, "state"));

    // A wrong or missing state is rejected, also in a browser that started no sign-in.
    let cases = [
        back.replace(&state, &parameter(&theirs, "state")),
        back.replace(&state, ""),
        back.replace(&format!("state={state}"), "x=y"),
    ];
    for address in &cases {
        let answer = ada.arrives(address).await;
        assert_eq!(answer.status, 401, "{address}: {}", answer.body);
        assert!(!answer.signs_in(), "{address}");
        assert!(
            answer.body.contains("started in another browser"),
            "{}",
            answer.body
        );
    }
    let answer = Browser::new(&world).arrives(&back).await;
    assert!(
        answer.status == 401 && !answer.signs_in(),
        "{}",
        answer.body
    );
    // A code obtained for another browser is rejected (PKCE).
    let stolen = theirs.replace(&parameter(&theirs, "code"), &code);
    let answer = mallory.arrives(&stolen).await;
    assert!(
        answer.status == 401 && !answer.signs_in(),
        "{}",
        answer.body
    );
    assert!(
        answer.body.contains("the provider refused"),
        "{}",
        answer.body
    );

    // The provider revokes tokens if a code is used twice, so use a new code.
    let back = ada.comes_back("%2F").await;
    let cookies = ada.cookies.clone();
    let answer = ada.arrives(&back).await;
    assert!(answer.signs_in(), "{}", answer.body);
    assert_eq!(
        answer.next.as_deref(),
        Some(format!("{}/", ada.gateway).as_str())
    );
    let again = ada.arrives(&back).await;
    assert!(again.status == 401 && !again.signs_in(), "{}", again.body);
    let mut other = Browser::new(&world);
    other.cookies = cookies;
    let again = other.arrives(&back).await;
    assert!(again.status == 401 && !again.signs_in(), "{}", again.body);
    assert!(
        again.body.contains("the provider refused"),
        "{}",
        again.body
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_in_cookies_are_http_only_and_redirects_stay_local() {
    let Some(provider) = Provider::start(600) else {
        return;
    };
    let secure = format!(
        "{}page = {:?}\n",
        settings(&provider.issuer),
        PAGE.replace("http:", "https:")
    );
    for (lines, prefix, end) in [
        (
            format!("{}page = {PAGE:?}\n", settings(&provider.issuer)),
            "",
            "SameSite=Lax",
        ),
        (secure, "__Host-", "Secure"),
    ] {
        let world = World::with_settings(&lines);
        let mut ada = Browser::new(&world);
        let begun = ada
            .step(Method::GET, &format!("{PAGE}/sign-in?to=%2F"), "", "none")
            .await;
        let cookie = &begun.set[0];
        assert!(
            cookie.starts_with(&format!("{prefix}bellwether-sign-in=")),
            "{cookie}"
        );
        assert!(
            cookie.contains("; Path=/; Max-Age=600; HttpOnly; SameSite=Lax"),
            "{cookie}"
        );
        assert!(cookie.ends_with(end), "{cookie}");
        for to in [
            "https%3A%2F%2Fevil.example.net",
            "%2F%2Fevil.example.net",
            "%2F%5Cevil.example.net",
            "%2Fevents%2F..%2F..%2Fevil",
            "javascript%3Aalert(1)",
        ] {
            let back = ada.comes_back(to).await;
            let back = back.replacen("https:", "http:", 1);
            let answer = ada.arrives(&back).await;
            let home = format!("{}/", ada.gateway);
            assert_eq!(answer.next.as_deref(), Some(home.as_str()), "{to}");
            let session = answer
                .set
                .iter()
                .find(|it| it.starts_with(&format!("{prefix}bellwether=")));
            let session = session.expect("it is reused");
            assert!(session.contains("; Path=/; Max-Age="), "{session}");
            assert!(session.contains("; HttpOnly; SameSite=Lax"), "{session}");
            assert!(session.ends_with(end), "{session}");
            // The session expires with the token.
            let age = session.split("Max-Age=").nth(1).unwrap();
            let age: u32 = age.split(';').next().unwrap().parse().unwrap();
            assert!(age > 0 && age <= 600 + 60, "{session}");
            let forgotten = format!("{prefix}bellwether-sign-in=; Path=/; Max-Age=0");
            assert!(
                answer.set.iter().any(|it| it.starts_with(&forgotten)),
                "{:?}",
                answer.set
            );
        }
    }
}

async fn is_no_key(rest: &Rest, token: &str) {
    let anonymous = rest.with_key(None);
    let cookie = format!("bellwether={token}");
    let headers = [
        ("cookie", cookie.as_str()),
        ("sec-fetch-site", "same-origin"),
    ];
    for path in [
        "/v1/notification/rules",
        "/v1/audit",
        "/v1/events/x:explain",
    ] {
        let response = anonymous.try_send(Method::GET, path, &headers, "");
        let answer = response.await.unwrap();
        assert_eq!(answer.status, 401, "{path}: {}", answer.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cross_site_requests_make_no_change() {
    let Some(provider) = Provider::start(600) else {
        return;
    };
    let world = at_page(&provider);
    let rest = world.rest();
    let event = samples::event("full", "db-1", "SEVERITY_ERROR", "disk is full");
    rest.post("/v1/data-receiver/events", &samples::events(&[event]))
        .await
        .ok();
    let found = rest.post("/v1/events:search", &json!({})).await.ok();
    let id = found["results"][0]["id"].as_str().unwrap();
    let page = format!("/events/{id}:1");
    let is_acknowledged = async || {
        let found = rest.get(&format!("/v1/events/{id}")).await.ok();
        found["result"]["occurrences"][0]["acknowledged"] == true
    };
    provider.ask("/come?account=otto", None).await;
    let mut otto = Browser::new(&world);
    let (status, shown) = otto
        .open(&format!("/sign-in?to={}", page.replace('/', "%2F")))
        .await;
    assert!(status == 200 && shown.contains("disk is full"), "{shown}");

    for site in ["cross-site", "same-site", "none", ""] {
        let (status, reported) = otto.ask(Method::POST, &page, "do=acknowledge", site).await;
        assert_eq!(status, 403, "{site}: {reported}");
        let (status, reported) = otto.ask(Method::POST, "/sign-out", "", site).await;
        assert_eq!(status, 403, "{site}: {reported}");
    }
    let (status, _) = otto
        .ask(
            Method::GET,
            &format!("{page}?do=acknowledge"),
            "",
            "same-origin",
        )
        .await;
    assert!(
        status == 200 && !is_acknowledged().await,
        "a GET request changes state"
    );
    is_no_key(&rest, otto.cookie("bellwether")).await;
    let (status, _) = otto
        .ask(Method::POST, &page, "do=acknowledge", "same-origin")
        .await;
    assert!(
        status == 200 && is_acknowledged().await,
        "its own page does"
    );
    let entries = rest.get("/v1/audit").await.text();
    assert!(entries.contains("oidc:otto@example.org"), "{entries}");

    let (status, _) = otto.ask(Method::POST, "/sign-out", "", "same-origin").await;
    assert_eq!((status, otto.cookie("bellwether")), (200, ""));
    let (_, shown) = otto.open(&page).await;
    assert!(!shown.contains("disk is full"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn token_with_wrong_audience_or_signature_is_rejected() {
    let Some(provider) = Provider::start(600) else {
        return;
    };
    let settings = settings(&provider.issuer);
    let world = World::with_settings(&format!(
        "{settings}page = {PAGE:?}\naudience = \"another\"\n"
    ));
    let mut ada = Browser::new(&world);
    let back = ada.comes_back("%2F").await;
    let answer = ada.arrives(&back).await;
    assert!(
        answer.status == 401 && !answer.signs_in(),
        "{}",
        answer.body
    );

    let world = at_page(&provider);
    let mut ada = Browser::new(&world);
    ada.open("/sign-in?to=%2F").await;
    let token = ada.cookie("bellwether").to_owned();
    let place = (ada.gateway.replace("http://", ""), "bellwether".to_owned());
    let parts: Vec<_> = token.split('.').collect();
    let elsewhere = provider.token("ada", "another").await;
    let none = "eyJhbGciOiJub25lIn0";
    for wrong in [
        elsewhere,
        format!("{}.{}.AAAA", parts[0], parts[1]),
        format!("{none}.{}.", parts[1]),
        "a.b.c".to_owned(),
        world.admin_key().replace("bw_", "bw."),
    ] {
        ada.cookies.insert(place.clone(), wrong.clone());
        let (status, shown) = ada.open("/").await;
        assert!(
            status == 401 && !shown.contains("0 open"),
            "{wrong}: {shown}"
        );
        assert!(!shown.contains(&wrong), "the shown value is returned");
    }
    ada.cookies.insert(place, token);
    let (status, shown) = ada.open("/").await;
    assert!(status == 200 && shown.contains("0 open"), "{shown}");
}
