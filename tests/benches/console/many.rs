//! Long lists: the cost of scrolling a row, and the memory of many loaded rows.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use bellwether_proto::v1::{
    Clause, CreateRuleRequest, CreateTriggerRequest, Equals, EventTrigger, Query, Rule, Trigger,
    TriggerType, clause, equals, rule_service_client::RuleServiceClient,
    trigger_service_client::TriggerServiceClient, trigger_type,
};
use bellwether_tests::{grpc::Grpc, world::World};
use tokio::{runtime::Handle, task::JoinSet, time::sleep};
use tonic::{Code, Status};

use crate::{
    keys::step,
    pty::{Pty, shows},
    report::{Figure, Goal, Report},
    stage,
    times::Times,
};

/// Number of rows scrolled.
const ROWS: usize = 150;
/// Maximum number of rows that a console loads.
const HELD: usize = 100_000;
const STORED: usize = 1_000_000;
const RULES: usize = 10_000;
const TRIGGERS: usize = 50;
const GOALS: [f64; 2] = [0.5, 2.0];
/// Time before a request rejected for overload is retried.
const BUSY: Duration = Duration::from_millis(50);
/// Timeout for a console to read as many events as it can load.
const READING_MAX: Duration = Duration::from_secs(60);

pub(crate) fn measure(report: &mut Report) {
    if !report.wants("scroll") && !report.wants("memory") {
        return;
    }
    let (mut empty, _) = Pty::start(stage::empty_program(), "", |_| true);
    let reference = Scrolled::down(&mut empty);
    empty.quit();

    let world = World::start();
    define_rules(&world);
    let (mut pty, _) = Pty::start(
        stage::console(&world, &stage::address(&world)),
        "",
        shows("connected"),
    );
    pty.press("5", shows("/10,000"));
    Scrolled::down(&mut pty).add_to_report(report, "10,000 rules", &reference);
    pty.quit();

    drop(world);
    let world = World::start();
    stage::fill(&world, 0, HELD);
    let mut pty = hold_all(&world, shows("100,000/100,000"));
    report.add(
        Figure::new("memory, 100,000 events held", resident_mib(&pty), "MiB")
            .goal(Goal::Most(60.0)),
    );
    Scrolled::up(&mut pty).add_to_report(report, "100,000 events", &reference);
    pty.quit();

    stage::fill(&world, HELD, STORED);
    let mut pty = hold_all(&world, shows("100,000/1,000,000"));
    Scrolled::up(&mut pty).add_to_report(report, "1,000,000 events", &reference);
    pty.quit();
}

/// Repeated measurements of scrolling by one row.
struct Scrolled {
    frame: Times,
    /// CPU time of the program.
    cpu: Times,
}

impl Scrolled {
    fn down(pty: &mut Pty) -> Self {
        Self::by(pty, "j")
    }

    fn up(pty: &mut Pty) -> Self {
        Self::by(pty, "k")
    }

    fn by(pty: &mut Pty, key: &str) -> Self {
        // Press keys until the rows scroll. At first, only the cursor moves.
        for _ in 0..40 {
            step(pty, key);
        }
        let (mut frame, mut cpu) = (Times::default(), Times::default());
        for number in 0..ROWS {
            stage::pause(number);
            let before = stage::cpu(pty.process());
            frame.push(step(pty, key));
            // Wait, so that the CPU time includes the work after the frame.
            std::thread::sleep(Duration::from_millis(2));
            cpu.push(stage::cpu(pty.process()).saturating_sub(before));
        }
        Self { frame, cpu }
    }

    fn add_to_report(&self, report: &mut Report, name: &str, reference: &Self) {
        let frame = format!("scroll, {name}: key -> frame");
        self.frame
            .add_to_report(report, &frame, None, Some(&reference.frame));
        let cpu = format!("scroll, {name}: frame time (CPU)");
        self.cpu
            .add_to_report(report, &cpu, Some(GOALS), Some(&reference.cpu));
    }
}

/// Starts a console that has read as many events as it can load, with the cursor on the last.
fn hold_all(world: &World, wanted: impl FnMut(&vt100::Screen) -> bool + Send + 'static) -> Pty {
    let mut pty = stage::console_on_events(world, &stage::address(world));
    let held = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&held);
    let mut wanted = wanted;
    pty.want(move |screen| {
        let is_held = wanted(screen);
        seen.store(is_held, Ordering::Relaxed);
        is_held
    });
    let start = Instant::now();
    while !held.load(Ordering::Relaxed) {
        assert!(start.elapsed() < READING_MAX, "the events are not read");
        pty.type_keys("G");
        std::thread::sleep(Duration::from_millis(20));
    }
    pty
}

fn resident_mib(pty: &Pty) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pty.process()));
    let status = status.expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.expect("its memory") / 1024.0
}

/// Creates disabled rules, spread evenly over the triggers.
fn define_rules(world: &World) {
    Handle::current().block_on(async {
        let mut triggers = JoinSet::new();
        for number in 0..TRIGGERS {
            triggers.spawn(define_rules_of(
                world.grpc(),
                format!("trigger-{number:02}"),
            ));
        }
        for made in triggers.join_all().await {
            made.expect("a trigger and its rules");
        }
    });
}

async fn define_rules_of(channel: Grpc, trigger_name: String) -> Result<(), Status> {
    let never = Clause {
        kind: Some(clause::Kind::Equals(Equals {
            field: "name".into(),
            value: Some(equals::Value::StringVal("never".into())),
        })),
    };
    let event = trigger_type::Type::Event(EventTrigger {
        query: Some(Query {
            clause: Some(never),
        }),
        ..EventTrigger::default()
    });
    let trigger = Trigger {
        name: trigger_name.clone(),
        r#type: Some(TriggerType {
            r#type: Some(event),
        }),
        ..Trigger::default()
    };
    let request = CreateTriggerRequest {
        trigger: Some(trigger),
        ..CreateTriggerRequest::default()
    };
    let mut triggers = TriggerServiceClient::new(channel.clone());
    while let Err(status) = triggers.create_trigger(request.clone()).await {
        wait_if_busy(status).await?;
    }
    let mut rules = RuleServiceClient::new(channel);
    for number in 0..RULES / TRIGGERS {
        let rule = Rule {
            name: format!("rule-{number:03}-of-{trigger_name}"),
            trigger_names: vec![trigger_name.clone()],
            ..Rule::default()
        };
        let request = CreateRuleRequest {
            rule: Some(rule),
            ..CreateRuleRequest::default()
        };
        while let Err(status) = rules.create_rule(request.clone()).await {
            wait_if_busy(status).await?;
        }
    }
    Ok(())
}

/// Waits before retrying a request that was rejected for overload or a conflict.
async fn wait_if_busy(status: Status) -> Result<(), Status> {
    match status.code() {
        Code::Aborted => {}
        Code::ResourceExhausted => sleep(BUSY).await,
        _ => return Err(status),
    }
    Ok(())
}
