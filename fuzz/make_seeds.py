#!/usr/bin/env python3
"""Makes the seed corpora from the test vectors of crates/packet and crates/security.

Run it again when the vectors change; the files are committed. Every seed has the name of its
vector, so that a finding can be traced to its origin.
"""
import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
VECTORS = HERE.parent / "crates" / "packet" / "tests" / "test-vectors.json"
KEY_VECTORS = HERE.parent / "crates" / "security" / "tests" / "vectors.json"
LVS = HERE.parent / "crates" / "security" / "tests" / "lvs"
SEED_BYTES_MAX = 4096
# Actions of targets/management_interest.rs.
VERBS = 11
ANSWER = 12
RAW_INTEREST = 15
# Expression, template and name, as targets/name_regex.rs reads them.
EXPRESSIONS = [
    ("^<localhop><nfd><rib>[<register><unregister>]<>{1,3}$", "\\0", "/localhop/nfd/rib/register/x/y"),
    ("^(<>*)<KEY><>{1,3}$", "\\1", "/ndn/site/KEY/1/ca/v=1"),
    ("<a-(.*)-(.*)>([^<b><c>])*", "\\2<x>\\1\\3", "/z/a-1-2/d/e"),
    ("^((<>*)+<v=[0-9]+>?){,2}", "\\2", "/a/v=1/b"),
]
# The tables of a state file, as crates/configuration/src/state_file.rs writes them.
STATE = b"""
[[face]]
uri = "udp4://192.0.2.1:6363"
mtu = 1400
[[route]]
prefix = "/a/v=1"
face = "udp4://192.0.2.1:6363"
capture = true
[[strategy]]
prefix = "/"
strategy = "multicast"
"""
# Of a file /p/a of 9000 bytes, as the table in crates/files/src/metadata.rs has it.
FILE_METADATA = "07090801700801613601051a03320101fdf500021f40fdf502022328fdf5040281a4fdf50a0107fdf50c0105"
MTU = (1400).to_bytes(2, "big")  # first bytes of an input of targets/link_service.rs
# Inputs that once broke a target, named after the cause.
REGRESSIONS = [
    ("packet_parse", "nonce-before-must-be-fresh",
     "0526071ab1096c6f63616c686f737408036e666408026373080469000000280012004a041be15492"),
]


def write(target: str, name: str, wire: bytes) -> int:
    if not 0 < len(wire) <= SEED_BYTES_MAX:
        return 0
    directory = HERE / "corpus" / target
    directory.mkdir(parents=True, exist_ok=True)
    (directory / re.sub(r"[^A-Za-z0-9_.-]", "_", name)).write_bytes(wire)
    return 1


def element(type_number: int, value: bytes) -> bytes:
    return var_number(type_number) + var_number(len(value)) + value


def var_number(number: int) -> bytes:
    if number < 253:
        return bytes([number])
    return b"\xfd" + number.to_bytes(2, "big") if number < 65536 else b"\xfe" + number.to_bytes(4, "big")


def revocations() -> dict[str, bytes]:
    """Contents of revocation records without the digest of the key, which the target adds."""
    time = element(201, (1_700_000_000_000).to_bytes(8, "big"))
    reasons = {"unspecified": 0, "compromise": 1, "superseded": 4}
    contents = {name: time + element(203, bytes([number])) for name, number in reasons.items()}
    contents["since"] = contents["superseded"] + element(205, (1_600_000_000_000).to_bytes(8, "big")) + element(204, b"?")
    return contents


def record(content: bytes) -> bytes:
    """A record that no key has signed."""
    components = [b"a", b"REVOKE", b"1", b"self"]
    name = b"".join(element(8, one) for one in components) + element(54, b"\1") + element(8, b"self")
    content += element(202, bytes(32))
    return element(6, element(7, name) + element(21, content) + element(22, element(27, b"\0")) + element(23, bytes(32)))


def frames(packets: list[bytes], face: int = 0) -> bytes:
    """A sequence for the targets with state: face byte, two length bytes, bytes."""
    return b"".join(bytes([face]) + len(packet).to_bytes(2, "big") + packet for packet in packets)


def tag_packets() -> dict[str, bytes]:
    """A pull by descriptor and a reply by locator, as `packet::tag` writes them."""
    head = element(10, bytes(4)) + element(34, b"\x40") + element(39433, bytes(6))
    tags = element(39447, b"classical") + element(39447, b"concert")
    place = bytes(4) + b"\x01\x02\x03"
    return {
        "pull": element(39427, head + element(39435, (2).to_bytes(4, "big")) + element(39437, b"\x05" * 24)
                        + element(39439, tags) + element(39443, place) + element(39445, b"GET")),
        "reply": element(39429, head + element(39441, place)),
    }


def routing_packets() -> list[bytes]:
    """A hello from a parent, with the label of its child, an announcement, and an envelope of a tree with a key."""
    numbers = [(1, 2), (3, 8), (9 << 32, 8), (3, 8), (5, 4), (20, 2), (2, 4), (0, 2), (3, 8), (2, 4), (6, 8), (77, 8),
               (0, 8), (0, 8)]
    hello = b"".join(number.to_bytes(size, "big") for number, size in numbers)
    label = (1).to_bytes(4, "big") + (6).to_bytes(8, "big") + (9).to_bytes(4, "big") + b"\0\1" + bytes(4)
    entry = b"\x03" + b"\x05" + bytes(23)
    announcement = (1).to_bytes(2, "big") + (77).to_bytes(8, "big") + bytes(8) + entry
    envelope = (2).to_bytes(2, "big") + (1).to_bytes(8, "big") + bytes(8 + 32) + element(39451, announcement)
    return [element(39453, hello), element(39453, hello + label), element(39451, announcement), element(39455, envelope)]


def conversation() -> bytes:
    """What a program says that hands over: the node, a face of each kind without a socket, a route, the end."""
    def message(kind: int, text: dict | None, behind: bytes = b"") -> bytes:
        said = json.dumps(text).encode()
        return b"".join(n.to_bytes(4, "little") for n in (kind, len(said), len(behind), 0)) + said + behind
    face = {"face": 300, "remote": "udp4://192.0.2.1:6363", "local": "udp4://192.0.2.2:6363", "persistency": 2,
            "mtu": 8800, "counters": {"in_data": 5, "malformed-frame": 1}}
    listener = {"udp-of-listener": {"listener": "192.0.2.2:6363", "remote": "192.0.2.1:6363", "from": None}}
    route = element(128, element(7, element(8, b"a")) + element(129, element(105, b"\x01\x2c") + element(111, b"\0")
                                                              + element(106, b"\0") + element(108, b"\x01")))
    faces = [message(6, {**face, "channel": channel}) for channel in ("down", "group", listener)]
    return message(4, {"next_face": 301, "cs": {"policy": "all/lru"}}) + b"".join(faces) + message(7, None, route) \
        + message(10, None)


def ndncert_messages() -> dict[str, bytes]:
    """A message of each kind of NDNCERT, with fields of the right lengths."""
    parameters = element(133, b"code") + element(135, b"123456")
    point, name = element(145, b"\4" * 65), element(7, element(8, b"site"))
    return {
        "new": point + element(147, b"certificate"),
        "new-answer": point + element(149, bytes(32)) + element(151, bytes(8)) + element(153, b"pin"),
        "challenge": element(161, b"pin") + parameters,
        "question": element(155, b"\1") + element(163, b"need-code") + element(165, b"\3") + element(167, b"\x3c") + parameters,
        "issued": element(155, b"\3") + element(169, name) + element(30, name),
        "probe": element(141, name + element(143, b"\1")) + element(179, name),
        "refusal": element(171, b"\5") + element(173, b"no"),
        "encrypted": element(157, bytes(12)) + element(175, bytes(16)) + element(159, b"message"),
    }


def main() -> int:
    vectors = json.loads(VECTORS.read_text())
    made = 0
    packets = {}
    for vector in vectors["packets"] + vectors["captured_commands"] + vectors["captured_repo"]:
        packets[vector["id"]] = bytes.fromhex(vector["hex"])
    for name, wire in packets.items():
        target = "lp_packet" if wire[:1] == b"\x64" else "packet_parse"
        made += write(target, name, wire)
        made += write("engine_frames", name, b"\0" + frames([wire], 0) + frames([wire], 0x85))
        made += write("router_sockets", name, b"".join(frames([wire], socket) for socket in range(8)))
        if "prefix-announcement" in name:
            made += write("nfd_tlv", name, wire)
        if "prefixann" in name:  # to self-learning
            made += write("engine_frames", f"learned-{name}", b"\x40" + frames([wire], 1))
        made += write("link_service", name, MTU + frames([wire]))
    for name, wire in tag_packets().items():
        made += write("tag_packet", name, wire)
    # Version 2: two producers, then one of them again, newer.
    vectors_of_svs = ["C914CA080703080161CC0101CA080703080162CC0102", "C90ACA080703080161CC0105"]
    packets_of_svs = [bytes.fromhex(one) for one in vectors_of_svs]
    timed = [len(one).to_bytes(2, "little") + b"\x10\x00" + one for one in packets_of_svs]
    made += write("svs_packet", "two-members", b"\0" + b"".join(timed))
    made += write("hand_over", "conversation", conversation())
    for vector in vectors["repo_tlvs"]:
        made += write("repo_command", vector["id"], bytes.fromhex(vector["hex"]))
    made += write("file_protocol", "listing", b"file\0folder/\0../x\0\xff\0")
    made += write("file_protocol", "metadata", bytes.fromhex(FILE_METADATA))
    for name, message in ndncert_messages().items():
        made += write("ndncert", name, message)
    made += write("tag_routing", "neighbour", b"".join(len(one).to_bytes(2, "big") + one for one in routing_packets()))
    for index, vector in enumerate(vectors["names"]):
        made += write("name_uri", f"uri-{index}", vector["uri"].encode())
        if vector.get("name_tlv"):
            made += write("name_uri", f"value-{index}", bytes.fromhex(vector["name_tlv"])[2:])
    for vector in vectors["management_tlvs"]:
        made += write("nfd_tlv", vector["id"], bytes.fromhex(vector["hex"]))
    for index, uri in enumerate([
            "udp4://192.0.2.1:6363", "udp://[2001:DB8::1]", "udp6://[fe80::1%25eth0]:6363", "tcp://host.example",
            "tcp6://[2001:db8::1%eth0]:6363", "udp4://224.0.23.170", "ether://08-00-27-0A-01-01", "dev://eth0",
            "udp4+dev://eth0:7700", "udp6+dev://eth0:56363", "unix:///run/nfd/nfd.sock", "fd://17", "internal://",
            "ws://0.0.0.0:9696", "ws://[::]:9696", "WS://Host", "wss://router.example:443/ws?x=1", "wss://[2001:DB8::1]/",
            "wsclient://127.0.0.1:40000"]):
        made += write("face_uri", f"uri-{index}", uri.encode())
    for index, uri in enumerate(["udp4://192.0.2.1:6363", "tcp6://[2001:db8::1]:6363", "unix:///run/nfd/nfd.sock",
                                 "ether://[08:00:27:00:00:01]", "fd://9", "internal://"]):
        made += write("nfd_tlv", f"face-uri-{index}", uri.encode())
    for index, vector in enumerate(vectors["fragment_sets"]):
        made += write("link_service", f"fragments-{index}", MTU + frames([packets[name] for name in vector["fragments"]]))
    sizes = b"".join(size.to_bytes(2, "big") for size in (10, 300, 700, 1100) * 5)
    made += write("reliability", "quiet-channel", bytes([0, 0, 20]) + sizes)
    made += write("reliability", "lossy-channel", bytes([0, 60, 20]) + sizes + bytes([0, 255, 255, 16, 100]) * 200)
    made += write("reliability", "first-three-lost", bytes([0, 0, 20]) + sizes + bytes(600))
    # Sends, time, pumps; Acks of later frames; fragments of incomplete packets; a frame of the vectors.
    made += write("reliability", "hostile", bytes([1, 200]) + bytes([0xF9, 31, 64, 0, 39, 16, 2, 0, 0, 0x24, 0, 30]) * 20
                  + bytes([0xFD, 0, 1, 0xFE, 31, 0, 3, 0, 0]) * 20
                  + bytes([7]) + len(packets["L-cxx-reliable"]).to_bytes(2, "big") + packets["L-cxx-reliable"])
    made += write("link_service", "flood", MTU + frames([b"\0" * 1000] * 3, 0x40))
    for vector in vectors["captured_commands"]:
        made += write("management_interest", vector["id"], frames([packets[vector["id"]]], RAW_INTEREST))
    for vector in vectors["management_tlvs"]:
        wire = bytes.fromhex(vector["hex"])
        if wire[:1] == b"\x68":  # ControlParameters: for every command
            requests = b"".join(frames([wire], verb) for verb in range(VERBS))
            made += write("management_interest", vector["id"], requests)
    # A routing daemon appears, gets a route, and accepts it: ControlResponse 200.
    routes = [b"localhost nlsr", b"client"]
    names = [element(7, b"".join(element(8, part) for part in route.split())) for route in routes]
    agreed = element(101, element(102, b"\xc8") + element(103, b"OK"))
    made += write("management_interest", "readvertise",
                  frames([element(104, name) for name in names], 0) + frames([agreed], 0x10 | ANSWER))
    for index, vector in enumerate(vectors["matching"]):
        pair = [bytes.fromhex(vector["interest"]), bytes.fromhex(vector["data"])]
        # The application (face 0) sends the Interest and the first next hop (face 1) answers,
        # without and with foreign tokens on both packets.
        ends_batch = 0x20
        asked = [element(100, element(98, b"mine") + element(80, pair[0]))]
        answered = [element(100, element(98, b"yours") + element(80, pair[1]))]
        made += write("engine_frames", f"matching-{index}", b"\0" + frames(pair[:1], 0) + frames(pair[1:], 1))
        for strategies in (0x20, 0x40, 0x60, 0x80, 0xa0):  # the upper bits of the settings
            made += write("engine_frames", f"strategies-{strategies:x}-{index}", bytes([strategies]) +
                          frames(pair[:1], 0) + frames(pair[1:], ends_batch | 1))
        # From one neighbour of a core router to another (face 2), and back with the mark *collided*.
        marked = [element(100, b"\xfd\x03\xbc\x00" + element(80, pair[1]))]
        made += write("engine_frames", f"core-{index}",
                      b"\x03" + frames(pair[:1], ends_batch | 1) + frames(marked, ends_batch | 2) * 2)
        made += write("engine_frames", f"tokens-{index}",
                      b"\0" + frames(asked, ends_batch) + frames(answered, ends_batch | 1))
    for index, lines in enumerate(EXPRESSIONS):
        made += write("name_regex", f"expression-{index}", "\n".join(lines).encode())
    for table in json.loads((LVS / "verdicts.json").read_text()):
        allowed = [case for case in table["cases"] if case[2]]
        packet, key, _ = (allowed or table["cases"])[0]
        model = (LVS / f"{table['model']}.tlv").read_bytes()
        if len(model) <= SEED_BYTES_MAX:
            made += write("lvs_schema", table["model"], f"{packet}\n{key}\n".encode() + model)
    keys = json.loads(KEY_VECTORS.read_text())
    for vector in keys["keys"]:
        for form in ("pkcs8", "traditional", "spki"):
            made += write("keys", f"{vector['id']}-{form}", bytes.fromhex(vector[form]))
    for index, vector in enumerate(keys["refused_keys"]):
        made += write("keys", f"refused-{index}", bytes.fromhex(vector["spki"]))
    for index, vector in enumerate(keys["certificates"]):
        wire = bytes.fromhex(vector["wire"])
        made += write("keys", f"certificate-{index}", wire)
        encrypted = bytes.fromhex(keys["keys"][index % len(keys["keys"])]["encrypted_pkcs8"])
        made += write("keys", f"safe-bag-{index}", element(128, wire + element(129, encrypted)))
    for name, content in revocations().items():
        made += write("revocation", f"content-{name}", content)
        made += write("revocation", f"record-{name}", record(content))
    # The first byte selects the reader: for our format, for nfd.conf, for the bare INFO format.
    defaults = (HERE.parent / "crates/configuration/src/default.toml").read_bytes()
    # One seed per table, because small pieces are easier to vary than the whole.
    for index, table in enumerate(re.split(rb"\n(?=\[)", defaults)):
        bare = b"\n".join(line.removeprefix(b"# ") for line in table.splitlines()
                          if re.match(rb"(# )?(\[|\w+ = )", line))
        made += write("configuration", f"toml-{index}", b"\0" + bare)
    nfd_conf = (HERE.parent / "crates/configuration/tests/nfd.conf").read_bytes()
    for index, section in enumerate(re.split(rb"\n(?=\w+\n\{)", nfd_conf)):
        made += write("configuration", f"nfd-conf-{index}", b"\1" + section)
        made += write("configuration", f"info-{index}", b"\2" + section)
    made += write("configuration", "info-include", b'\2a { "b c" "d"\\\n"e" ; f\n#include "g"\n}')
    made += write("configuration", "state", b"\3version = 1\nunset_strategies = [\"/c\"]\n" + STATE)
    made += write("observed_routers", "address", b"\0lab=http://[2001:db8::1]:9695/")
    made += write("observed_routers", "file", b"\1default = \"lab\"\n[routers.lab]\ntransport = \"udp://h\"\n"
                  b"identity = \"/a\"\nobserver = \"http://h:1\"\n")
    face = '{"id": %d, "local": "udp4://192.0.2.%d:6363", "remote": "udp4://192.0.2.%d:6363", "state": "%s"}'
    lines = [
        '{"instance": "1", "host": "a", "faces": [%s], "last_drops": [{"name": "/a/b/c", "reason": "x"}]}'
        % (face % (7, 1, 2, "up")),
        '{"outcome": "it goes", "next_hops": [{"face_id": 7, "is_chosen": true}]}',
        '{"instance": "2", "host": "b", "faces": [%s], "drops": [{"reason": "x", "count": 9}]}'
        % (face % (8, 2, 1, "down")),
        '{"outcome": "it goes back", "next_hops": [{"face_id": 8, "is_silent": true}], "stored": [{}]}',
    ]
    made += write("observed_routers", "two", b"\2" + "\n".join(lines).encode())
    for target, name, digits in REGRESSIONS:
        made += write(target, f"regression-{name}", bytes.fromhex(digits))
    print(f"{made} seeds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
