//! Two network namespaces with a pair of virtual interfaces between them.

use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

use pktc_loader::in_private_network;

use crate::machine::run;

/// The interface that programs are put on, in the namespace of the test's thread.
pub(crate) const INTERFACE: &str = "vb";

/// The other end.
const FAR: &str = "va";

/// How long a datagram may take that should arrive.
const ARRIVAL: Duration = Duration::from_secs(3);

/// The far end, by sockets that belong to it.
pub(crate) struct Pair {
    /// Sends from the far end: 192.0.2.1.
    pub(crate) far4: UdpSocket,
    /// Sends from the far end: 2001:db8::1.
    pub(crate) far6: UdpSocket,
    /// Takes connections at port 7003 of 192.0.2.1.
    pub(crate) bulk: TcpListener,
    /// Takes connections at port 7004 of 192.0.2.1.
    pub(crate) closed: TcpListener,
}

/// Does `work` in the near namespace of a new pair, whose ends send frames of `mtu` bytes behind Ethernet's header.
///
/// # Errors
/// If there are no namespaces.
pub(crate) fn with_pair(mtu: u32, work: impl FnOnce(&Pair) + Send) -> Result<(), String> {
    let in_far = || {
        run(&["ip", "link", "add", FAR, "type", "veth", "peer", "name", INTERFACE]);
        set_up(FAR, mtu, "192.0.2.1/24", "2001:db8::1/64");
        let bind = |address: &str| UdpSocket::bind((address, 0)).unwrap();
        let listen = |port: u16| TcpListener::bind(("192.0.2.1", port)).unwrap();
        let pair = Pair {
            far4: bind("192.0.2.1"),
            far6: bind("2001:db8::1"),
            bulk: listen(7003),
            closed: listen(7004),
        };
        let enter = format!("--net={}", namespace());
        in_private_network(|| {
            run(&["nsenter", &enter, "ip", "link", "set", "dev", INTERFACE, "netns", &namespace()]);
            set_up(INTERFACE, mtu, "192.0.2.2/24", "2001:db8::2/64");
            work(&pair);
        })
    };
    in_private_network(in_far)
        .and_then(|result| result)
        .map_err(|error| format!("network namespaces: {error}"))
}

/// The path of the calling thread's network namespace.
fn namespace() -> String {
    let thread = std::fs::read_link("/proc/thread-self").unwrap();
    format!("/proc/{}/ns/net", thread.display())
}

fn set_up(interface: &str, mtu: u32, v4: &str, v6: &str) {
    run(&["ip", "link", "set", interface, "mtu", &mtu.to_string()]);
    run(&["ip", "address", "add", v4, "dev", interface]);
    run(&["ip", "address", "add", v6, "dev", interface, "nodad"]);
    run(&["ip", "link", "set", "lo", "up"]);
    run(&["ip", "link", "set", interface, "up"]);
}

/// A socket of the near end that waits for datagrams to a port.
pub(crate) struct Receiver(UdpSocket);

impl Receiver {
    /// `address` is the near end's.
    pub(crate) fn new(address: &str, port: u16) -> Self {
        Receiver(UdpSocket::bind((address, port)).unwrap())
    }

    /// Takes `count` datagrams; how many came in time.
    pub(crate) fn receive(&self, count: usize) -> usize {
        self.0.set_read_timeout(Some(ARRIVAL)).unwrap();
        let mut buffer = [0; 1 << 16];
        (0..count).take_while(|_| self.0.recv(&mut buffer).is_ok()).count()
    }

    /// Whether a datagram is there already.
    pub(crate) fn has_some(&self) -> bool {
        self.0.set_nonblocking(true).unwrap();
        let some = self.0.recv(&mut [0; 2048]).is_ok();
        self.0.set_nonblocking(false).unwrap();
        some
    }
}
