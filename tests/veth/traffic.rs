//! Datagrams and ICMP errors against a program on the interface.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use crate::machine::{self, Object, counted, pktc, run};
use crate::network::{INTERFACE, Pair, Receiver};

/// Datagrams of each kind.
const COUNT: usize = 10;
/// Bytes in each.
const PAYLOAD: usize = 100;
/// Ethernet, IPv4 and UDP headers.
pub(crate) const HEADERS4: u64 = 14 + 20 + 8;
/// Ethernet, IPv6 and UDP headers.
pub(crate) const HEADERS6: u64 = 14 + 40 + 8;
/// How long counters may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Puts a program on the interface, and takes it away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    /// `ip link set … xdpdrv object …`
    Ip,
    /// `xdp-loader load`
    XdpLoader,
    /// `bpftool prog load`, `bpftool net attach`
    Bpftool,
    /// `pktc load`
    Pktc,
    /// `pktc load --mode skb`
    PktcSkb,
}

impl Tool {
    pub(crate) fn attach(self, object: &Object) {
        let path = object.object();
        match self {
            Tool::Ip => {
                run(&[
                    "ip",
                    "link",
                    "set",
                    "dev",
                    INTERFACE,
                    "xdpdrv",
                    "object",
                    &path,
                    "section",
                    "xdp.frags",
                ]);
            }
            Tool::XdpLoader => {
                run(&["xdp-loader", "load", "-m", "native", "-n", &object.program, INTERFACE, &path]);
            }
            Tool::Bpftool => {
                let pin = format!("/sys/fs/bpf/{}", object.program);
                run(&["bpftool", "prog", "load", &path, &pin, "type", "xdp"]);
                let attached = machine::output(&[
                    "bpftool", "net", "attach", "xdpdrv", "pinned", &pin, "dev", INTERFACE,
                ]);
                std::fs::remove_file(&pin).unwrap();
                assert!(attached.status.success(), "{attached:?}");
            }
            Tool::Pktc => {
                run(&[pktc().unwrap(), "load", &object.source(), "--iface", INTERFACE]);
            }
            Tool::PktcSkb => {
                run(&[pktc().unwrap(), "load", &path, "--iface", INTERFACE, "--mode", "skb"]);
            }
        }
    }

    pub(crate) fn detach(self) {
        match self {
            Tool::Ip => run(&["ip", "link", "set", "dev", INTERFACE, "xdpdrv", "off"]),
            Tool::XdpLoader => run(&["xdp-loader", "unload", "-a", INTERFACE]),
            Tool::Bpftool => run(&["bpftool", "net", "detach", "xdpdrv", "dev", INTERFACE]),
            Tool::Pktc | Tool::PktcSkb => run(&[pktc().unwrap(), "unload", "--iface", INTERFACE]),
        };
    }
}

/// Without a program all arrives; with it what the rules drop does not, and is counted; without it all arrives again.
pub(crate) fn check(pair: &Pair, object: &Object, tool: Tool) {
    let ends = Ends::new();
    assert_eq!(ends.send(pair).arrived(), [COUNT; 4]);
    tool.attach(object);
    let id = object.id().expect("the program is loaded");
    let rules: Vec<_> =
        machine::metadata(id).programs[0].rules.iter().map(|rule| rule.name.clone()).collect();
    assert_eq!(rules, ["default", "port", "v6", "errors"]);
    // What passes is sent last of each kind, so that nothing dropped can still be under way when it has arrived.
    assert_eq!(ends.send(pair).passed_only(), COUNT);
    let payload = PAYLOAD as u64;
    let (one, count) = (COUNT as u64 * (HEADERS6 + payload), COUNT as u64);
    await_count(id, "port", (2 * count, one + count * (HEADERS4 + payload)));
    await_count(id, "v6", (count, one));
    ends.check_errors(id);
    tool.detach();
    assert_eq!(pktc_loader::attached(INTERFACE).unwrap(), []);
    assert_eq!(ends.send(pair).arrived(), [COUNT; 4]);
}

/// Waits until the rule has counted so much, and no more.
pub(crate) fn await_count(id: u32, rule: &str, expected: (u64, u64)) {
    let started = Instant::now();
    while counted(id, rule).0 < expected.0 && started.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(counted(id, rule), expected, "{rule}: packets, bytes");
}

/// The near end's sockets: of both families, at the ports 7001 and 7002.
struct Ends([Receiver; 4]);

impl Ends {
    fn new() -> Self {
        let ends = [("192.0.2.2", 7001), ("2001:db8::2", 7001), ("2001:db8::2", 7002), ("192.0.2.2", 7002)];
        Ends(ends.map(|(address, port)| Receiver::new(address, port)))
    }

    /// Sends to all of them from the far end; to the last one, what the rules pass.
    fn send(&self, pair: &Pair) -> &Self {
        let send = |socket: &UdpSocket, address: &str, port: u16| {
            for _ in 0..COUNT {
                assert_eq!(socket.send_to(&[0; PAYLOAD], (address, port)).unwrap(), PAYLOAD);
            }
        };
        send(&pair.far4, "192.0.2.2", 7001);
        send(&pair.far6, "2001:db8::2", 7001);
        send(&pair.far6, "2001:db8::2", 7002);
        send(&pair.far4, "192.0.2.2", 7002);
        self
    }

    fn arrived(&self) -> [usize; 4] {
        self.0.each_ref().map(|receiver| receiver.receive(COUNT))
    }

    /// How many of those arrived that the rules pass; of the others, none may.
    fn passed_only(&self) -> usize {
        let [dropped @ .., passed] = &self.0;
        let count = passed.receive(COUNT);
        assert!(!dropped.iter().any(Receiver::has_some), "something arrived that a rule drops");
        count
    }

    /// A datagram to a port of the far end that nobody has: the error that comes back is dropped and counted.
    fn check_errors(&self, id: u32) {
        let socket = UdpSocket::bind(("192.0.2.2", 0)).unwrap();
        socket.connect(("192.0.2.1", 9)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        assert_eq!(socket.send(b"?").unwrap(), 1);
        // The error quotes the datagram: Ethernet, IPv4, ICMP, then its IPv4 and UDP headers and its byte.
        await_count(id, "errors", (1, 14 + 20 + 8 + 20 + 8 + 1));
        let error = socket.recv(&mut [0; 16]).unwrap_err();
        assert_ne!(error.kind(), std::io::ErrorKind::ConnectionRefused, "the error arrived");
    }
}
