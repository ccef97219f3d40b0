//! Helpers and maps as programs use them.

use pktc_bpf::{AluOp, Condition, Helper, MapDef, MapKind, Size};
use pktc_testing::engine::Env;

use crate::asm::{EXIT, Machine, add, alu, branch, call, imm, load, map, map_def, mov, packet, r, store, vm};

/// r0 = helper(map, &key, &value, 0), with the key (4 bytes) at fp-4, the value (8 bytes) at fp-16.
fn on_map(helper: Helper, key: i32, value: i32) -> Vec<Machine> {
    vec![
        store(Size::U32, 10, -4, imm(key)),
        store(Size::U64, 10, -16, imm(value)),
        map(1, 0),
        mov(2, r(10)),
        add(2, imm(-4)),
        mov(3, r(10)),
        add(3, imm(-16)),
        mov(4, imm(0)),
        call(helper),
    ]
}

fn maps(kind: MapKind) -> [MapDef; 1] {
    [map_def("m", kind, 4, 4)]
}

#[test]
fn values_of_maps_are_changed_in_place_and_kept() {
    let mut code = on_map(Helper::MapLookupElem, 2, 0);
    code.extend([
        branch(Condition::Ne, 0, imm(0), 1),
        EXIT,
        load(Size::U64, 1, 0, 0),
        add(1, imm(1)),
        store(Size::U64, 0, 0, r(1)),
        mov(0, r(1)),
        EXIT,
    ]);
    for kind in [MapKind::Array, MapKind::PerCpuArray] {
        let mut vm = vm(&code, &maps(kind));
        assert_eq!(vm.execute(&[], &Env::default()), Ok(1));
        assert_eq!(vm.execute(&[], &Env::default()), Ok(2));
        assert_eq!(vm.map_value("m", &[2, 0, 0, 0]), Some(vec![2, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(vm.map_value("m", &[1, 0, 0, 0]), Some(vec![0; 8]));
        assert_eq!(vm.map_value("m", &[4, 0, 0, 0]), None);
        assert_eq!(vm.map_value("n", &[1, 0, 0, 0]), None);
    }
}

#[test]
fn hashes_are_updated_and_deleted() {
    let mut update = on_map(Helper::MapUpdateElem, 7, 1000);
    update.push(EXIT);
    let mut with_update = vm(&update, &maps(MapKind::Hash));
    assert_eq!(with_update.execute(&[], &Env::default()), Ok(0));
    assert_eq!(with_update.map_value("m", &[7, 0, 0, 0]), Some(vec![0xe8, 3, 0, 0, 0, 0, 0, 0]));

    let mut delete = on_map(Helper::MapDeleteElem, 7, 0);
    delete.push(EXIT);
    let mut with_delete = vm(&delete, &maps(MapKind::Hash));
    assert_eq!(with_delete.execute(&[], &Env::default()), Ok(-2_i64 as u64), "ENOENT");
    assert!(with_delete.set_map_value("m", &[7, 0, 0, 0], &[1; 8]));
    assert!(!with_delete.set_map_value("m", &[7, 0, 0, 0], &[1; 4]), "too short");
    assert_eq!(with_delete.execute(&[], &Env::default()), Ok(0));
    assert_eq!(with_delete.map_value("m", &[7, 0, 0, 0]), None);
}

#[test]
fn clock_processor_and_context_come_from_the_environment() {
    let env = Env { now: 1_000_000_007, ifindex: 9, queue: 3, ..Env::default() };
    let run = |code: &[Machine]| vm(code, &[]).execute(&[], &env).unwrap();
    assert_eq!(run(&[call(Helper::KtimeGetNs), EXIT]), 1_000_000_007);
    assert_eq!(run(&[call(Helper::GetSmpProcessorId), EXIT]), 0);
    assert_eq!(run(&[load(Size::U32, 0, 1, 12), EXIT]), 9);
    assert_eq!(run(&[load(Size::U32, 0, 1, 16), EXIT]), 3);
}

#[test]
fn random_numbers_follow_from_the_seed() {
    let code = [call(Helper::GetPrandomU32), EXIT];
    let draw = |seed| {
        let mut vm = vm(&code, &[]);
        [(); 3].map(|()| vm.execute(&[], &Env { seed, ..Env::default() }).unwrap())
    };
    let [first, second, third] = draw(1);
    assert_eq!(draw(1), [first, second, third]);
    assert_ne!(draw(2), [first, second, third]);
    assert!(first != second && second != third && first != third);
    assert!(draw(1).iter().all(|number| *number <= 0xffff_ffff));
}

/// r0 = load_bytes(ctx, offset, fp-16, len), or the 8 bytes from fp-16 on where that gave 0.
fn load_bytes(offset: i32, len: i32) -> Vec<Machine> {
    vec![
        store(Size::U64, 10, -16, imm(0)),
        mov(2, imm(offset)),
        mov(3, r(10)),
        add(3, imm(-16)),
        mov(4, imm(len)),
        call(Helper::XdpLoadBytes),
        branch(Condition::Ne, 0, imm(0), 1),
        load(Size::U64, 0, 10, -16),
        EXIT,
    ]
}

#[test]
fn packet_bytes_are_copied_wherever_they_lie() {
    let env = Env { linear: Some(20), fragment: 7, ..Env::default() };
    let run = |offset, len| vm(&load_bytes(offset, len), &[]).execute(&packet(100), &env).unwrap() as i64;
    assert_eq!(run(0, 4), 0x0302_0100);
    assert_eq!(run(18, 4), 0x1514_1312, "over the end of the linear part");
    assert_eq!(run(92, 8), 0x6362_6160_5f5e_5d5c, "the last bytes");
    assert_eq!(run(93, 8), -22, "EINVAL");
    assert_eq!(run(0x10000, 1), -14, "EFAULT");
    assert_eq!(run(-1, 1), -14, "EFAULT");
    assert_eq!(run(0xffff, 1), -22, "EINVAL");
}

#[test]
fn packet_bytes_are_written_wherever_they_lie() {
    let code = [
        store(Size::U32, 10, -4, imm(-1)),
        mov(2, imm(18)),
        mov(3, r(10)),
        add(3, imm(-4)),
        mov(4, imm(4)),
        call(Helper::XdpStoreBytes),
        EXIT,
    ];
    let mut vm = vm(&code, &[]);
    let env = Env { linear: Some(20), ..Env::default() };
    assert_eq!(vm.execute(&packet(24), &env), Ok(0));
    assert_eq!(vm.packet()[16..], [16, 17, 0xff, 0xff, 0xff, 0xff, 22, 23]);
    assert_eq!(vm.execute(&packet(21), &env), Ok(-22_i64 as u64));
    assert_eq!(vm.packet(), packet(21));
}

#[test]
fn the_length_counts_all_parts() {
    let code = [
        mov(6, r(1)),
        call(Helper::XdpGetBuffLen),
        load(Size::U32, 2, 6, 0),
        load(Size::U32, 3, 6, 4),
        alu(AluOp::Sub, 3, r(2)),
        alu(AluOp::Lsh, 0, imm(16)),
        alu(AluOp::Or, 0, r(3)),
        EXIT,
    ];
    let run = |linear| vm(&code, &[]).execute(&packet(100), &Env { linear, ..Env::default() }).unwrap();
    assert_eq!(run(None), 100 << 16 | 100);
    assert_eq!(run(Some(20)), 100 << 16 | 20);
    assert_eq!(run(Some(0)), 100 << 16);
    assert_eq!(run(Some(1000)), 100 << 16 | 100);
}
