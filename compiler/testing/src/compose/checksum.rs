//! The checksums that headers declare.

use pktc_semantics::typed::{Checksum, ChecksumPart, FieldDefault, FieldIndex, Type};

use super::form::Form;
use super::select::{edge_to, selector};
use super::{Part, bytes_of};
use crate::reference::Operand;

/// Fills in all checksums that are not given, innermost first, because outer ones cover inner ones.
pub(super) fn fill(parts: &mut [Part<'_>]) {
    for index in (0..parts.len()).rev() {
        let Part::Header(form) = &parts[index] else { continue };
        let computed: Vec<_> = (0..form.header.fields.len())
            .filter(|&field| !form.is_given(field))
            .filter_map(|field| compute(parts, index, form, field).map(|sum| (field, sum)))
            .collect();
        if let Part::Header(form) = &mut parts[index] {
            computed.into_iter().for_each(|(field, sum)| form.set(field, sum));
        }
    }
}

fn compute(parts: &[Part<'_>], index: usize, form: &Form<'_>, field: FieldIndex) -> Option<u64> {
    let FieldDefault::Checksum { kind, over } = &form.header.fields[field].default else { return None };
    let mut covered = Vec::new();
    for part in over {
        match part {
            ChecksumPart::Pseudo => covered.extend(pseudo_header(parts, index)),
            ChecksumPart::Header => covered.extend(form.bytes()),
            ChecksumPart::Payload => covered.extend(bytes_of(&parts[index + 1..])),
        }
    }
    Some(match kind {
        Checksum::Internet => u64::from(internet(&covered)),
        Checksum::InternetOrNone => match internet(&covered) {
            0 => 0xffff,
            sum => u64::from(sum),
        },
        // It goes out lowest byte first (RFC 9260, appendix A).
        Checksum::Crc32c => u64::from(crc32c(&covered).swap_bytes()),
    })
}

/// The pseudo header of the nearest header around that has addresses `src` and `dst` (RFC 9293 section 3.1,
/// RFC 8200 section 8.1); nothing if there is none.
fn pseudo_header(parts: &[Part<'_>], index: usize) -> Vec<u8> {
    let length = bytes_of(&parts[index..]).len() as u32;
    let protocol = protocol(parts, index).to_be_bytes()[7];
    let around = parts[..index].iter().rev().find_map(|part| match part {
        Part::Header(form) => Some((address(form, "src")?, address(form, "dst")?)),
        Part::Bytes(_) => None,
    });
    match around {
        Some((Operand::Ipv4(src), Operand::Ipv4(dst))) => {
            [&src.octets()[..], &dst.octets(), &[0, protocol], &length.to_be_bytes()[2..]].concat()
        }
        Some((Operand::Ipv6(src), Operand::Ipv6(dst))) => {
            [&src.octets()[..], &dst.octets(), &length.to_be_bytes(), &[0, 0, 0, protocol]].concat()
        }
        _ => Vec::new(),
    }
}

fn address(form: &Form<'_>, name: &str) -> Option<Operand> {
    let is_address = |ty: &Type| matches!(ty, Type::Ipv4 | Type::Ipv6);
    let field = form
        .header
        .fields
        .iter()
        .position(|field| field.name.as_deref() == Some(name) && is_address(&field.ty))?;
    form.view(&form.bytes()).field(field)
}

/// The number by which the header before selects the one at `index`, as it stands in the packet.
fn protocol(parts: &[Part<'_>], index: usize) -> u64 {
    let (Some(Part::Header(parent)), Part::Header(form)) = (parts[..index].last(), &parts[index]) else {
        return 0;
    };
    let selecting =
        parent.header.next.iter().find(|next| edge_to(next, form.id).is_some()).and_then(selector);
    match selecting.and_then(|field| parent.view(&parent.bytes()).field(field)) {
        Some(Operand::Number(number)) => number,
        _ => 0,
    }
}

/// The Internet checksum (RFC 1071): an odd byte counts as the higher one of a word.
fn internet(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|word| u64::from(word[0]) << 8 | u64::from(word.get(1).copied().unwrap_or(0)));
    let mut sum: u64 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// CRC32c, bit by bit (RFC 9260, appendix A).
fn crc32c(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut crc = u32::MAX;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::{crc32c, internet};

    #[test]
    fn sums_are_those_of_the_rfcs() {
        // RFC 1071, section 3: the sum of these is ddf2.
        assert_eq!(internet(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(internet(&[0x01]), !0x0100, "an odd byte is the higher one");
        assert_eq!(internet(&[]), 0xffff);
        // RFC 3720, appendix B.4: 32 bytes of zeros, and of ones.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }
}
