/* The XDP program that steers NDN frames into AF_XDP sockets.
 *
 * Question: which frames of this interface does the router take past the kernel's network stack?
 * Source: Documentation/bpf/map_xskmap.rst and Documentation/networking/af_xdp.rst of Linux.
 *
 * A frame goes to the socket of the queue it came by if its EtherType is that of NDN, 0x8624. It may have one priority
 * tag in front: a VLAN tag (IEEE 802.1Q) whose VLAN id is 0, which belongs to no VLAN. Packet sockets receive such
 * frames too. All others go on to the kernel: those of a VLAN, those too short to have an EtherType, and NDN frames of
 * a queue that has no socket. The program reads at most six bytes of a frame and writes nothing: the tag stays in the
 * frame.
 *
 * Cost: one look-up in an array per NDN frame. Limit: SOCKETS_MAX queues; the kernel gets the NDN frames of the others.
 *
 * steer.o is the compiled form, so that a build of the router needs no clang. After a change:
 *
 *   clang -O2 -g0 -target bpfel -mcpu=v2 -c steer.c -o steer.o
 *
 * It was made with clang 14. A test compares its instructions with those of a fresh build. Another compares what
 * src/steer.rs takes from it. The file needs no headers: it declares the few parts of linux/bpf.h that it uses, which
 * are kernel interfaces and do not change.
 */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SECTION(name) __attribute__((section(name), used))

/* enum xdp_action and enum bpf_map_type. */
#define XDP_PASS 2
#define BPF_MAP_TYPE_XSKMAP 17

/* Two bytes of a frame as a little-endian processor reads them: EtherTypes, and the id in a tag. */
#define NDN 0x2486
#define VLAN 0x0081
#define VLAN_ID 0xFF0F

/* Bytes before the EtherType: the addresses of destination and source. */
#define ETHERTYPE_AT 12

/* Bytes of a VLAN tag before the next EtherType: its own EtherType and the TCI, whose low 12 bits are the VLAN id. */
#define TAG_BYTES 4

#define SOCKETS_MAX 1024

/* struct xdp_md. The kernel rewrites each access. */
struct frame {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
	u32 rx_queue_index;
	u32 egress_ifindex;
};

/* Helper 51: the action that sends the frame to the entry `key`, or the action `otherwise` if there is no entry. */
static long (*const redirect_map)(void *map, u64 key, u64 otherwise) = (void *)51;

/* The properties of a map. The loader names them itself; a test compares. */
struct map_definition {
	u32 type;
	u32 key_size;
	u32 value_size;
	u32 max_entries;
	u32 flags;
};

/* The socket of each receive queue. */
SECTION("maps") struct map_definition sockets = {
	.type = BPF_MAP_TYPE_XSKMAP,
	.key_size = sizeof(u32),
	.value_size = sizeof(u32),
	.max_entries = SOCKETS_MAX,
};

/* The places of a frame have constant offsets: without CAP_PERFMON, which the router does not keep, the kernel refuses a
 * program that adds a variable to the address of a frame. */
SECTION("xdp") int steer(struct frame *frame)
{
	const u8 *bytes = (const u8 *)(u64)frame->data;
	const u8 *end = (const u8 *)(u64)frame->data_end;

	if (bytes + ETHERTYPE_AT + 2 > end)
		return XDP_PASS;
	if (*(const u16 *)(bytes + ETHERTYPE_AT) != NDN) {
		if (*(const u16 *)(bytes + ETHERTYPE_AT) != VLAN || bytes + ETHERTYPE_AT + TAG_BYTES + 2 > end)
			return XDP_PASS;
		if ((*(const u16 *)(bytes + ETHERTYPE_AT + 2) & VLAN_ID) != 0)
			return XDP_PASS;
		if (*(const u16 *)(bytes + ETHERTYPE_AT + TAG_BYTES) != NDN)
			return XDP_PASS;
	}
	return redirect_map(&sockets, frame->rx_queue_index, XDP_PASS);
}

SECTION("license") char licence_of_program[] = "MIT OR Apache-2.0";
