//! The routing netlink requests that XDP takes: list interfaces, set an interface's program, make one for tests.
//!
//! Formats: rtnetlink(7), `include/uapi/linux/if_link.h` (`IFLA_XDP`), `include/uapi/linux/netlink.h` (extended
//! acknowledgements).

use std::fs::File;
use std::io::{self, Read as _, Write as _};

use crate::sys;

const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_CREATE: u16 = 0x400;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_ACK_TLVS: u16 = 0x200;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLMSGERR_ATTR_MSG: u16 = 1;
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_SETLINK: u16 = 19;
const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NUM_RX_QUEUES: u16 = 32;
const IFLA_XDP: u16 = 43;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_XDP_FD: u16 = 1;
const IFLA_XDP_FLAGS: u16 = 3;
const IFLA_XDP_DRV_PROG_ID: u16 = 5;
const IFLA_XDP_SKB_PROG_ID: u16 = 6;
const IFLA_XDP_HW_PROG_ID: u16 = 7;
const IFLA_XDP_EXPECTED_FD: u16 = 8;
/// Marks an attribute that holds attributes; newer kernels insist on it.
const NLA_F_NESTED: u16 = 1 << 15;
/// Flags in the upper bits of an attribute's type.
const NLA_TYPE_MASK: u16 = 0x3fff;
/// `struct nlmsghdr`
const HEADER: usize = 16;
/// `struct ifinfomsg`
const LINK: usize = 16;
/// The kernel sends at most this much at once.
const BUFFER: usize = 1 << 16;

/// An interface and the programs on it, by id; 0: none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) native: u32,
    pub(crate) skb: u32,
    /// Run by the device itself.
    pub(crate) offloaded: u32,
}

/// Why a request failed.
#[derive(Debug)]
pub(crate) struct NetlinkError {
    pub(crate) error: io::Error,
    /// The kernel's own words, if it has any.
    pub(crate) message: Option<String>,
}

impl From<io::Error> for NetlinkError {
    fn from(error: io::Error) -> Self {
        NetlinkError { error, message: None }
    }
}

/// The interfaces of the calling thread's network namespace.
pub(crate) fn links() -> Result<Vec<Link>, NetlinkError> {
    let mut links = Vec::new();
    request(RTM_GETLINK, NLM_F_DUMP, &[0; LINK], |kind, body| {
        if kind == RTM_NEWLINK {
            links.extend(parse_link(body));
        }
    })?;
    Ok(links)
}

/// Sets the program of an interface; `fd` −1 takes it away. `flags` are `XDP_FLAGS_…`; `expected` is the program
/// that must be there (with `XDP_FLAGS_REPLACE`).
pub(crate) fn set_xdp(index: u32, fd: i32, flags: u32, expected: Option<i32>) -> Result<(), NetlinkError> {
    let mut nested = Vec::new();
    put(&mut nested, IFLA_XDP_FD, &fd.to_ne_bytes());
    put(&mut nested, IFLA_XDP_FLAGS, &flags.to_ne_bytes());
    if let Some(expected) = expected {
        put(&mut nested, IFLA_XDP_EXPECTED_FD, &expected.to_ne_bytes());
    }
    let mut body = link_header(index);
    put(&mut body, IFLA_XDP | NLA_F_NESTED, &nested);
    request(RTM_SETLINK, NLM_F_ACK, &body, |_, _| {})
}

/// Makes a pair of veth devices, of which one has the given index and number of receive queues. It stays down.
pub(crate) fn create_veth(index: u32, queues: u32) -> Result<(), NetlinkError> {
    let mut info = Vec::new();
    put(&mut info, IFLA_INFO_KIND, b"veth");
    let mut body = link_header(index);
    put(&mut body, IFLA_NUM_RX_QUEUES, &queues.to_ne_bytes());
    put(&mut body, IFLA_LINKINFO | NLA_F_NESTED, &info);
    request(RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &body, |_, _| {})
}

/// A `struct ifinfomsg` that names an interface by its index.
fn link_header(index: u32) -> Vec<u8> {
    let mut header = vec![0; LINK];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header
}

fn put(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    out.extend(((value.len() + 4) as u16).to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// Sends a request and hands its answers to `receive`, until the kernel says that it is through.
fn request(
    kind: u16,
    flags: u16,
    body: &[u8],
    mut receive: impl FnMut(u16, &[u8]),
) -> Result<(), NetlinkError> {
    let mut socket = File::from(sys::route_socket()?);
    let mut message = Vec::new();
    message.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend((NLM_F_REQUEST | flags).to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    socket.write_all(&message)?;
    let mut buffer = vec![0; BUFFER];
    loop {
        let length = socket.read(&mut buffer)?;
        if length == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        if consume(&buffer[..length], &mut receive)? {
            return Ok(());
        }
    }
}

/// Reads the messages of a datagram; true: that was all.
fn consume(mut data: &[u8], receive: &mut impl FnMut(u16, &[u8])) -> Result<bool, NetlinkError> {
    while data.len() >= HEADER {
        let length = (number(data, 0) as usize).clamp(HEADER, data.len());
        let (kind, flags) = (short(data, 4), short(data, 6));
        let body = &data[HEADER..length];
        match kind {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => return acknowledge(flags, body),
            _ => receive(kind, body),
        }
        data = data.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Ok(false)
}

/// An acknowledgement: the error, the request's header (the kernel is told to leave its body out), attributes.
fn acknowledge(flags: u16, body: &[u8]) -> Result<bool, NetlinkError> {
    let code = number(body, 0) as i32;
    if code == 0 {
        return Ok(true);
    }
    let extra = if flags & NLM_F_ACK_TLVS != 0 { body.get(4 + HEADER..).unwrap_or(&[]) } else { &[] };
    let message =
        attributes(extra).find(|(kind, _)| *kind == NLMSGERR_ATTR_MSG).map(|(_, text)| string(text));
    Err(NetlinkError { error: io::Error::from_raw_os_error(-code), message })
}

fn parse_link(body: &[u8]) -> Option<Link> {
    let mut link = Link { index: number(body, 4), ..Link::default() };
    for (kind, value) in attributes(body.get(LINK..)?) {
        match kind {
            IFLA_IFNAME => link.name = string(value),
            IFLA_XDP => {
                for (kind, value) in attributes(value) {
                    match kind {
                        IFLA_XDP_DRV_PROG_ID => link.native = number(value, 0),
                        IFLA_XDP_SKB_PROG_ID => link.skb = number(value, 0),
                        IFLA_XDP_HW_PROG_ID => link.offloaded = number(value, 0),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Some(link)
}

/// The attributes in `data`, up to the first that is cut short.
fn attributes(mut data: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = short(data.get(..4)?, 0) as usize;
        let value = data.get(4..length)?;
        let kind = short(data, 2) & NLA_TYPE_MASK;
        data = data.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, value))
    })
}

/// The host-order number at `at`; 0 past the end.
fn number(data: &[u8], at: usize) -> u32 {
    data.get(at..at + 4).map_or(0, |b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]))
}

fn short(data: &[u8], at: usize) -> u16 {
    data.get(at..at + 2).map_or(0, |b| u16::from_ne_bytes([b[0], b[1]]))
}

fn string(value: &[u8]) -> String {
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_damaged_ones_end_the_list() {
        let mut data = Vec::new();
        put(&mut data, 7, b"abc");
        put(&mut data, 9 | NLA_F_NESTED, &[1, 2, 3, 4]);
        assert_eq!(data.len(), 16);
        let read: Vec<_> = attributes(&data).collect();
        assert_eq!(read, [(7, &b"abc"[..]), (9, &[1, 2, 3, 4][..])]);
        data[8] = 200;
        assert_eq!(attributes(&data).count(), 1, "a length past the end");
        data[0] = 0;
        assert_eq!(attributes(&data).count(), 0, "a length below the header's");
    }

    #[test]
    fn the_kernels_words_are_found_in_an_acknowledgement() {
        let mut body = Vec::new();
        body.extend((-16i32).to_ne_bytes());
        body.extend([0; HEADER]);
        put(&mut body, NLMSGERR_ATTR_MSG, b"XDP program already attached\0");
        let error = acknowledge(NLM_F_ACK_TLVS, &body).unwrap_err();
        assert_eq!(error.error.raw_os_error(), Some(libc::EBUSY));
        assert_eq!(error.message.as_deref(), Some("XDP program already attached"));
        assert!(acknowledge(0, &[0; 20]).unwrap());
    }

    #[test]
    fn loopback_is_listed() {
        let links = links().unwrap();
        let lo = links.iter().find(|link| link.name == "lo").unwrap();
        assert_eq!(lo.index, 1);
    }
}
