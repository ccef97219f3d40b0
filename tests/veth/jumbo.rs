//! Frames of 9000 bytes, which lie in several buffers: what rules say of them, and which loaders refuse what.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crate::machine::{Object, counted, output, pktc, run};
use crate::network::{INTERFACE, Pair, Receiver};
use crate::traffic::{self, HEADERS4, HEADERS6, Tool};

/// Largest unit that both ends send.
pub(crate) const MTU: u32 = 9000;

/// Ports, lengths, and a connection's long segments.
pub(crate) const RULES: &str = "\
xdp NAME {
    default pass;
    rule port: udp.dport == 7001 => drop;
    rule long: udp.dport == 7002 and pkt.len > 7000 => drop;
    rule bulk: tcp.sport == 7003 and ip.len > 5000 and tcp.payload.len > 4000 => pass;
    rule closed: tcp.sport == 7004 => drop;
}
";

/// Datagrams of each kind.
const COUNT: usize = 5;
/// Bytes in a datagram of several buffers; 3520 bytes of the frame are in the first.
const LONG: usize = 8000;
/// Bytes in one that is shorter, and still lies in several.
const SHORTER: usize = 6000;
/// Bytes that a connection brings.
const BULK: usize = 1 << 20;
/// How long a connection may take that should come about, and is waited for that should not.
const PATIENCE: Duration = Duration::from_millis(500);

/// What `tool` loads decides by ports and lengths of whole packets.
pub(crate) fn check(pair: &Pair, object: &Object, tool: Tool) {
    let to = |address, port| Receiver::new(address, port);
    let dropped = [to("192.0.2.2", 7001), to("2001:db8::2", 7001)];
    let measured = [to("192.0.2.2", 7002), to("2001:db8::2", 7002)];
    tool.attach(object);
    let id = object.id().expect("the program is loaded");
    for _ in 0..COUNT {
        for (socket, address) in [(&pair.far4, "192.0.2.2"), (&pair.far6, "2001:db8::2")] {
            for (port, bytes) in [(7001, LONG), (7002, LONG), (7002, SHORTER)] {
                assert_eq!(socket.send_to(&vec![0; bytes], (address, port)).unwrap(), bytes);
            }
        }
    }
    // What passes was sent last, so that nothing dropped can still be under way.
    for receiver in &measured {
        assert_eq!(receiver.receive(COUNT), COUNT, "the shorter ones arrive");
        assert!(!receiver.has_some(), "a long one arrived");
    }
    assert!(!dropped.iter().any(Receiver::has_some), "something arrived that a rule drops");
    let count = COUNT as u64;
    let bytes = count * (HEADERS4 + HEADERS6 + 2 * LONG as u64);
    traffic::await_count(id, "port", (2 * count, bytes));
    traffic::await_count(id, "long", (2 * count, bytes));
    connect(&pair.bulk, true);
    assert!(counted(id, "bulk").0 > 0, "no segment was long");
    connect(&pair.closed, false);
    assert!(counted(id, "closed").0 > 0);
    tool.detach();
}

/// A connection from the near end to the far one, which sends through it.
fn connect(listener: &TcpListener, passes: bool) {
    let connected = TcpStream::connect_timeout(&listener.local_addr().unwrap(), PATIENCE);
    if !passes {
        assert_eq!(connected.unwrap_err().kind(), ErrorKind::TimedOut);
        return;
    }
    let (mut near, (mut far, _)) = (connected.unwrap(), listener.accept().unwrap());
    near.set_read_timeout(Some(10 * PATIENCE)).unwrap();
    let mut received = Vec::new();
    std::thread::scope(|scope| {
        // The end of the stream comes with the far end's.
        scope.spawn(move || far.write_all(&vec![7; BULK]).unwrap());
        near.read_to_end(&mut received).unwrap();
    });
    assert!(received.len() == BULK && received.iter().all(|byte| *byte == 7), "{} bytes", received.len());
}

/// A program with direct access takes frames in one buffer only: in native mode nobody puts it before long ones, and all
/// say why. In skb mode the kernel puts frames together first.
pub(crate) fn direct(pair: &Pair, object: &Object) {
    let (path, pin) = (object.object(), format!("/sys/fs/bpf/{}", object.program));
    let pktc = pktc().unwrap();
    run(&["bpftool", "prog", "load", &path, &pin, "type", "xdp"]);
    let refused: [(&[&str], &str); 4] = [
        (
            &["ip", "link", "set", "dev", INTERFACE, "xdpdrv", "object", &path, "section", "xdp"],
            "Peer MTU is too large to set XDP",
        ),
        (
            &["xdp-loader", "load", "-m", "native", "-n", &object.program, INTERFACE, &path],
            "Couldn't attach XDP program",
        ),
        (
            &["bpftool", "net", "attach", "xdpdrv", "pinned", &pin, "dev", INTERFACE],
            "Peer MTU is too large to set XDP",
        ),
        (
            &[pktc, "load", &path, "--iface", INTERFACE],
            "Peer MTU is too large to set XDP); build it with `--access auto`, which takes frames of any length",
        ),
    ];
    let outcomes = refused.map(|(command, expected)| (output(command), expected));
    std::fs::remove_file(&pin).unwrap();
    for (outcome, expected) in outcomes {
        let said = String::from_utf8_lossy(&outcome.stderr);
        assert!(!outcome.status.success() && said.contains(expected), "{expected}: {said}");
    }
    assert_eq!(pktc_loader::attached(INTERFACE).unwrap(), []);
    check(pair, object, Tool::PktcSkb);
}

/// How else the tools are told which program, and what does not do.
pub(crate) fn sections(_: &Pair, object: &Object) {
    let (path, pin) = (object.object(), format!("/sys/fs/bpf/{}", object.program));
    let ip = ["ip", "link", "set", "dev", INTERFACE, "xdpdrv", "object", &path];
    for (section, missing) in [(&[][..], "sec prog"), (&["section", "xdp"], "sec xdp")] {
        let refused = output(&[&ip, section].concat());
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && said.contains(missing), "{missing}: {said}");
    }
    run(&[&ip[..], &["program", &object.program]].concat());
    Tool::Ip.detach();
    run(&["xdp-loader", "load", "-m", "native", "-s", "xdp.frags", INTERFACE, &path]);
    Tool::XdpLoader.detach();
    run(&["bpftool", "prog", "load", &path, &pin]);
    std::fs::remove_file(&pin).unwrap();
}
