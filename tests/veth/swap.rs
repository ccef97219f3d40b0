//! New versions of a program that runs, while packets come.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::machine::{Object, counted, output, pktc, run};
use crate::network::{INTERFACE, Pair, Receiver};

/// How often the program is replaced under traffic.
const SWAPS: usize = 100;
/// How often a command is killed.
const KILLS: u64 = 50;
/// From one datagram of the flood to the next.
const PAUSE: Duration = Duration::from_micros(200);

/// The object's rules with one more before them, which is never true of what is sent here; built beside it.
fn second(object: &Object) -> String {
    let source = std::fs::read_to_string(object.source()).unwrap();
    let changed = source.replace("default pass;", "default pass;\n    rule: tcp.dport == 23 => drop;");
    assert_ne!(source, changed);
    std::fs::write(object.source(), changed).unwrap();
    let path = object.source().replace("edge.pkt", "second.o");
    run(&[pktc().unwrap(), "build", &object.source(), "-o", &path]);
    path
}

fn load(path: &str) {
    run(&[pktc().unwrap(), "load", path, "--iface", INTERFACE, "--direct"]);
}

/// Both versions drop datagrams to port 7001: while one takes the place of the other, none arrives, and each is counted.
pub(crate) fn under_traffic(pair: &Pair, object: &Object) {
    let objects = [object.object(), second(object)];
    let receiver = Receiver::new("192.0.2.2", 7001);
    load(&objects[0]);
    let done = AtomicBool::new(false);
    let flood = || {
        let mut sent = 0;
        while !done.load(Ordering::Relaxed) {
            sent += u64::from(pair.far4.send_to(b"marked", ("192.0.2.2", 7001)).is_ok());
            std::thread::sleep(PAUSE);
        }
        sent
    };
    let sent = std::thread::scope(|scope| {
        let flood = scope.spawn(flood);
        // Should a swap fail, the flood ends nevertheless.
        let swaps = std::panic::catch_unwind(|| (1..=SWAPS).for_each(|n| load(&objects[n % 2])));
        done.store(true, Ordering::Relaxed);
        let sent = flood.join().unwrap();
        swaps.unwrap();
        sent
    });
    assert!(sent > SWAPS as u64, "{sent} datagrams");
    assert!(!receiver.has_some(), "something arrived while the program was replaced");
    std::thread::sleep(Duration::from_millis(100));
    let counts = counted(object.id().expect("the program is loaded"), "port").0;
    // Each swap puts the counts in another place: what comes in that very instant may be missed.
    assert!(counts <= sent && counts + SWAPS as u64 >= sent, "{counts} of {sent} datagrams were counted");
}

/// A command that is killed leaves the interface as it was, or as it was to be.
pub(crate) fn killed(_: &Pair, object: &Object) {
    let objects = [object.object(), second(object)];
    load(&objects[0]);
    let mut killed = 0;
    for n in 0..KILLS {
        let mut command = Command::new(pktc().unwrap());
        command.args(["load", &objects[n as usize % 2], "--iface", INTERFACE, "--direct"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(n));
        // It may have ended already.
        let _ = child.kill();
        killed += u32::from(child.wait().unwrap().signal() == Some(9));
        let there = pktc_loader::attached(INTERFACE).unwrap();
        assert!(there.len() == 1 && there[0].name == object.program, "{there:?}");
    }
    assert!(killed > 0, "no command was still running");
    load(&objects[0]);
    run(&[pktc().unwrap(), "unload", "--iface", INTERFACE]);
    assert_eq!(pktc_loader::attached(INTERFACE).unwrap(), []);
}

/// What cannot run leaves the old version running.
pub(crate) fn refused(_: &Pair, object: &Object) {
    load(&object.object());
    let before = pktc_loader::attached(INTERFACE).unwrap();
    let mut broken = std::fs::read(object.object()).unwrap();
    let path = object.source().replace("edge.pkt", "broken.o");
    // The code begins behind the header: a jump to nowhere.
    broken[64..72].copy_from_slice(&[0x05, 0, 0xff, 0x7f, 0, 0, 0, 0]);
    std::fs::write(&path, &broken).unwrap();
    let failed = output(&[pktc().unwrap(), "load", &path, "--iface", INTERFACE, "--direct"]);
    assert_eq!(failed.status.code(), Some(2), "{failed:?}");
    assert_eq!(pktc_loader::attached(INTERFACE).unwrap(), before);
}
