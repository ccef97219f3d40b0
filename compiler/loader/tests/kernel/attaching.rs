//! Programs on the interfaces of a private network namespace, which is gone with the test.

use std::process::Command;

use libtest_mimic::Trial;
use pktc_loader::{
    AttachError, Attached, LoadOptions, Loaded, Mode, Which, attach, attached, in_private_network, load,
    remove,
};

use crate::{Outcome, kernel_test, objects};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        kernel_test("attached_and_detached_in_both_modes", attached_and_detached_in_both_modes),
        kernel_test("a_busy_interface_stays_as_it_was", a_busy_interface_stays_as_it_was),
        kernel_test("a_foreign_program_is_not_detached", a_foreign_program_is_not_detached),
        kernel_test("native_mode_never_falls_back", native_mode_never_falls_back),
        kernel_test("an_attached_program_drops_packets", an_attached_program_drops_packets),
    ]
}

/// Runs `ip` in the calling thread's namespace; `Err`: it is missing, or cannot do that here.
fn ip(arguments: &str) -> Outcome {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("ip {arguments}: {}", errors.trim())) }
}

/// Runs `body` in a namespace with the veth pair `pair0`, `pair1`, both up.
fn with_pair(body: impl FnOnce() -> Outcome + Send) -> Outcome {
    let work = || {
        ip("link add pair0 type veth peer name pair1")?;
        ip("link set pair0 up")?;
        ip("link set pair1 up")?;
        body()
    };
    in_private_network(work).map_err(|error| format!("no network namespace: {error}"))?
}

fn edge() -> Loaded {
    load(&objects::constant("edge", 1, false), &LoadOptions::default()).unwrap()
}

fn detach(interface: &str) -> Result<Vec<Attached>, AttachError> {
    remove(interface, &Which::Own)
}

fn attached_and_detached_in_both_modes() -> Outcome {
    let loaded = edge();
    with_pair(|| {
        for mode in [Mode::Native, Mode::Skb] {
            assert_eq!(attached("pair0").unwrap(), []);
            attach("pair0", &loaded.programs[0], mode).unwrap();
            let there = attached("pair0").unwrap();
            assert_eq!(there.len(), 1);
            assert_eq!((there[0].id, there[0].name.as_str()), (loaded.programs[0].id, "edge"));
            assert_eq!(there[0].mode, Some(mode));
            assert_eq!(detach("pair0").unwrap(), there);
        }
        let nothing = detach("pair0").unwrap_err();
        assert_eq!(nothing.to_string(), "there is no program on pair0");
        let unknown = attach("pair2", &loaded.programs[0], Mode::Native).unwrap_err();
        assert!(
            unknown.to_string().starts_with("there is no interface `pair2`; did you mean `pair"),
            "{unknown}"
        );
        Ok(())
    })
}

fn a_busy_interface_stays_as_it_was() -> Outcome {
    let (first, second) = (edge(), edge());
    with_pair(|| {
        attach("pair0", &first.programs[0], Mode::Native).unwrap();
        let before = attached("pair0").unwrap();
        for mode in [Mode::Native, Mode::Skb] {
            let error = attach("pair0", &second.programs[0], mode).unwrap_err();
            let AttachError::Busy { other, .. } = &error else { panic!("{error}") };
            assert_eq!(other.id, first.programs[0].id);
            let start = format!("program `edge` (id {}) is on pair0 already", other.id);
            assert!(error.to_string().starts_with(&start), "{error}");
            assert_eq!(attached("pair0").unwrap(), before);
        }
        Ok(())
    })
}

fn a_foreign_program_is_not_detached() -> Outcome {
    let foreign = load(&objects::compile("foreign")?, &LoadOptions::default()).unwrap();
    with_pair(|| {
        attach("pair0", &foreign.programs[0], Mode::Native).unwrap();
        let error = detach("pair0").unwrap_err();
        assert!(matches!(&error, AttachError::Foreign { other, .. } if other.name == "foreign"), "{error}");
        assert!(error.to_string().contains("ip link set dev pair0 xdpdrv off"), "{error}");
        assert_eq!(attached("pair0").unwrap().len(), 1);
        ip("link set dev pair0 xdpdrv off")?;
        assert_eq!(attached("pair0").unwrap(), []);
        Ok(())
    })
}

fn native_mode_never_falls_back() -> Outcome {
    let loaded = edge();
    with_pair(|| {
        let error = attach("lo", &loaded.programs[0], Mode::Native).unwrap_err();
        assert!(matches!(error, AttachError::NoNativeSupport { .. }), "{error}");
        assert!(error.to_string().contains("try `--mode skb`"), "{error}");
        assert!(!error.to_string().contains("--access"), "{error}");
        assert_eq!(attached("lo").unwrap(), []);
        attach("lo", &loaded.programs[0], Mode::Skb).unwrap();
        assert_eq!(detach("lo").unwrap().len(), 1);
        // The peer's frames would not fit into one buffer: the driver says so, and which one it is.
        ip("link set pair1 mtu 9000")?;
        let error = attach("pair0", &loaded.programs[0], Mode::Native).unwrap_err();
        assert!(error.to_string().contains("driver `veth`"), "{error}");
        assert!(error.to_string().contains("Peer MTU is too large"), "{error}");
        assert!(error.to_string().contains("build it with `--access auto`"), "{error}");
        let frags = objects::load_frags(&objects::constant("edge", 1, true))?;
        attach("pair0", &frags.programs[0], Mode::Native).unwrap();
        Ok(())
    })
}

/// Two ends of a pair in one namespace do not talk to each other, so the frames are counted where they arrive.
fn an_attached_program_drops_packets() -> Outcome {
    let loaded = load(&objects::compile("first_byte")?, &LoadOptions::default()).unwrap();
    with_pair(|| {
        attach("pair1", &loaded.programs[0], Mode::Native).unwrap();
        // A broadcast ARP request begins with 0xff: index 3 of the table, so it is dropped.
        ip("addr add 10.9.8.7/24 dev pair0")?;
        let before = loaded.maps["counters"].counters(1, 1).unwrap()[0].0;
        let probe = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        probe.send_to(b"x", "10.9.8.1:9").unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while loaded.maps["counters"].counters(1, 1).unwrap()[0].0 == before {
            assert!(std::time::Instant::now() < deadline, "no packet reached the program");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Ok(())
    })
}
