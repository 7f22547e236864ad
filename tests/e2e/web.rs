//! gRPC-Web as used by browsers: a preflight request, then a call over HTTP/1.1.

use bellwether_tests::{rest::Rest, world::World};
use http::Method;

const PATH: &str = "/bellwether.v1.ClientService/GetCaller";
const ORIGIN: &str = "http://console.example.net";

#[tokio::test]
async fn cors_preflight_is_allowed() {
    let world = World::start();
    let browser = Rest::new(world.service().address("grpc"), None);
    let headers = [
        ("origin", ORIGIN),
        ("access-control-request-method", "POST"),
        (
            "access-control-request-headers",
            "authorization,content-type,x-grpc-web",
        ),
    ];

    let answer = browser
        .try_send(Method::OPTIONS, PATH, &headers, "")
        .await
        .expect("an answer");

    assert!(
        answer.status.is_success(),
        "{}: {}",
        answer.status,
        answer.text()
    );
    let origin = answer.header("access-control-allow-origin");
    assert!(["*", ORIGIN].contains(&origin), "{:?}", answer.headers);
    let allowed = answer.header("access-control-allow-headers").to_lowercase();
    for header in ["authorization", "content-type", "x-grpc-web"] {
        assert!(allowed == "*" || allowed.contains(header), "{allowed}");
    }
}

#[tokio::test]
async fn grpc_web_over_http1_has_trailers_in_the_body() {
    let world = World::start();
    let browser = Rest::new(world.service().address("grpc"), Some(&world.admin_key()));
    let headers = [
        ("origin", ORIGIN),
        ("content-type", "application/grpc-web+proto"),
        ("x-grpc-web", "1"),
    ];
    let empty_message: &[u8] = &[0, 0, 0, 0, 0];

    let answer = browser
        .try_send(Method::POST, PATH, &headers, empty_message)
        .await
        .expect("an answer");

    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(
        answer
            .header("content-type")
            .starts_with("application/grpc-web")
    );
    assert!(
        !answer.header("access-control-allow-origin").is_empty(),
        "{:?}",
        answer.headers
    );
    let body = answer.text();
    assert!(body.contains("admin"), "{body:?}");
    assert!(body.to_lowercase().contains("grpc-status:0"), "{body:?}");

    let anonymous = Rest::new(world.service().address("grpc"), None);
    let refused = anonymous
        .try_send(Method::POST, PATH, &headers, empty_message)
        .await
        .expect("an answer");
    let reported = format!("{:?} {}", refused.headers, refused.text());
    assert!(reported.contains("16"), "{reported}");
    assert!(
        !refused.header("access-control-allow-origin").is_empty(),
        "{reported}"
    );
}
