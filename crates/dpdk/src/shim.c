/*
 * What Rust cannot call: inline functions and macros of DPDK. One call per burst, not per frame.
 *
 * Names: nw_dpdk_*. `ffi.rs` and `burst.rs` declare the same functions and structs. Functions return 0 or a positive
 * errno, unless they say otherwise.
 *
 * Source: DPDK 22.11, programmer's guide, "Poll Mode Driver", "Mbuf Library", "Mempool Library".
 */
#define _GNU_SOURCE /* fopencookie */
#define ALLOW_EXPERIMENTAL_API /* rte_intr_*, in `nw_dpdk_end` */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_prefetch.h>

/* --- The log: its newest bytes, until somebody takes them --- */

#define LOG_BYTES 4096

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char log_text[LOG_BYTES];
static size_t log_used;
static bool log_to_stderr;

static ssize_t log_write(void *cookie, const char *bytes, size_t count)
{
	size_t keep = count < LOG_BYTES ? count : LOG_BYTES;

	(void)cookie;
	pthread_mutex_lock(&log_lock);
	if (log_used + keep > LOG_BYTES) {
		size_t forget = log_used + keep - LOG_BYTES;

		memmove(log_text, log_text + forget, log_used - forget);
		log_used -= forget;
	}
	memcpy(log_text + log_used, bytes + count - keep, keep);
	log_used += keep;
	pthread_mutex_unlock(&log_lock);
	/* After rte_panic, nobody can take the log. */
	int level = rte_log_cur_msg_loglevel();
	if (log_to_stderr || (level > 0 && level <= (int)RTE_LOG_CRIT))
		return write(STDERR_FILENO, bytes, count);
	return (ssize_t)count;
}

/* Copies the log to `to`, at most `room` bytes, and forgets it. Returns how many bytes. */
size_t nw_dpdk_take_log(char *to, size_t room)
{
	pthread_mutex_lock(&log_lock);
	size_t count = log_used < room ? log_used : room;

	memcpy(to, log_text + log_used - count, count);
	log_used = 0;
	pthread_mutex_unlock(&log_lock);
	return count;
}

/* --- The runtime --- */

/*
 * The threads that DPDK starts inherit the calling thread's signal mask. They must not take the process's signals, so
 * all are blocked, except those that a fault of the thread itself raises. The calling thread ends soon afterwards.
 */
static void block_signals(void)
{
	static const int faults[] = { SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP, SIGABRT };
	sigset_t all;

	sigfillset(&all);
	for (size_t i = 0; i < RTE_DIM(faults); i++)
		sigdelset(&all, faults[i]);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
}

/*
 * With `show`, the log also goes to stderr. If an option is wrong, DPDK prints a page of help to stdout, and getopt a
 * line to stderr. So C's streams (not Rust's) lead elsewhere meanwhile.
 */
int nw_dpdk_init(int argc, char **argv, int show)
{
	FILE *log = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = log_write });
	FILE *nothing = fopen("/dev/null", "w"), *out = stdout, *err = stderr;

	if (log == NULL || nothing == NULL)
		return ENOMEM;
	setvbuf(log, NULL, _IOLBF, 1024);
	block_signals();
	log_to_stderr = show != 0;
	rte_openlog_stream(log);
	stdout = nothing;
	stderr = log;
	rte_errno = 0;
	int result = rte_eal_init(argc, argv), error = rte_errno;
	stdout = out;
	stderr = err;
	fclose(nothing);
	if (result >= 0)
		return 0; /* The log stays open while DPDK runs. */
	return error > 0 ? error : EINVAL;
}

static void stay(void *stays)
{
	__atomic_store_n((int *)stays, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

/*
 * Ends DPDK. Its host thread would go on, and read memory that is gone: one test of ten crashed. So the thread first
 * enters a callback that never returns. It must not be a timed one: rte_eal_cleanup waits for those. If the thread does
 * not come within 2 s, DPDK's memory stays until the process ends.
 */
void nw_dpdk_end(void)
{
	static int stays;
	struct rte_intr_handle *handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	int event = eventfd(1, EFD_CLOEXEC);

	if (handle == NULL || event < 0 || rte_intr_fd_set(handle, event) != 0 ||
	    rte_intr_type_set(handle, RTE_INTR_HANDLE_EXT) != 0 ||
	    rte_intr_callback_register(handle, stay, &stays) != 0)
		return;
	for (int tries = 0; tries < 20000 && !__atomic_load_n(&stays, __ATOMIC_ACQUIRE); tries++)
		usleep(100);
	if (__atomic_load_n(&stays, __ATOMIC_ACQUIRE))
		rte_eal_cleanup();
}

/* --- Devices --- */

struct nw_dpdk_device {
	char name[64];
	char driver[64];
	char arguments[1024]; /* "name,key=value", to attach the device again */
	uint8_t address[6];
	uint8_t is_virtual;
};

/* DPDK's -errno as errno. Drivers return -1 for failures of any kind, which do not mean EPERM. */
static int errno_of(int result)
{
	return result == -1 ? EIO : result < 0 ? -result : 0;
}

int nw_dpdk_probe(const char *device)
{
	return errno_of(rte_dev_probe(device));
}

/* The port with this name, or the first one of the device with this name. */
int nw_dpdk_find(const char *name, uint16_t *port)
{
	struct rte_eth_dev_info info;
	uint16_t each;

	if (rte_eth_dev_get_port_by_name(name, port) == 0)
		return 0;
	RTE_ETH_FOREACH_DEV(each) {
		if (rte_eth_dev_info_get(each, &info) == 0 && strcmp(rte_dev_name(info.device), name) == 0) {
			*port = each;
			return 0;
		}
	}
	return ENODEV;
}

static bool shares_device(uint16_t port, const struct rte_device *device)
{
	struct rte_eth_dev_info info;
	uint16_t each;

	RTE_ETH_FOREACH_DEV(each) {
		if (each != port && rte_eth_dev_info_get(each, &info) == 0 && info.device == device)
			return true;
	}
	return false;
}

int nw_dpdk_describe(uint16_t port, struct nw_dpdk_device *device)
{
	struct rte_eth_dev_info info;
	struct rte_ether_addr address;
	int result = rte_eth_dev_info_get(port, &info);

	if (result == 0)
		result = rte_eth_macaddr_get(port, &address);
	if (result != 0)
		return errno_of(result);
	const struct rte_devargs *given = rte_dev_devargs(info.device);
	const char *name = rte_dev_name(info.device), *arguments = given != NULL ? given->args : NULL;
	const char *comma = arguments != NULL && arguments[0] != '\0' ? "," : "";

	snprintf(device->name, sizeof(device->name), "%s", name);
	snprintf(device->driver, sizeof(device->driver), "%s", info.driver_name);
	const size_t room = sizeof(device->arguments);
	int bytes = snprintf(device->arguments, room, "%s%s%s", name, comma, comma[0] != '\0' ? arguments : "");
	memcpy(device->address, address.addr_bytes, sizeof(device->address));
	device->is_virtual = strcmp(rte_bus_name(rte_dev_bus(info.device)), "vdev") == 0;
	return bytes >= (int)room ? ENAMETOOLONG : 0;
}

/* Stops and closes the port, and detaches its device unless other ports need it. */
int nw_dpdk_close(uint16_t port)
{
	struct rte_eth_dev_info info;
	int result = rte_eth_dev_info_get(port, &info);

	if (result != 0)
		return errno_of(result);
	bool shared = shares_device(port, info.device);
	rte_eth_dev_stop(port);
	result = rte_eth_dev_close(port);
	if (!shared)
		rte_dev_remove(info.device);
	return errno_of(result);
}

/* --- Buffers --- */

_Static_assert(RTE_PKTMBUF_HEADROOM == 128, "options.rs says so");

struct rte_mempool *nw_dpdk_pool_new(const char *name, uint32_t buffers, uint32_t cache, uint16_t room, uint16_t port)
{
	return rte_pktmbuf_pool_create(name, buffers, cache, 0, room, rte_eth_dev_socket_id(port));
}

/* --- Ports --- */

struct nw_dpdk_setup {
	uint16_t receive_descriptors;
	uint16_t transmit_descriptors;
	uint16_t mtu; /* 0: the driver's. Afterwards: the one in force. */
	uint8_t promiscuous;
};

/* A driver without the operation: virtual devices, mostly. */
static int unless_unsupported(int result)
{
	return result == -ENOTSUP || result == -ENOSYS ? 0 : result;
}

static int set_mtu(uint16_t port, struct nw_dpdk_setup *setup)
{
	uint16_t mtu;
	int result = rte_eth_dev_get_mtu(port, &mtu);

	if (result == 0 && setup->mtu != 0 && setup->mtu != mtu)
		return rte_eth_dev_set_mtu(port, setup->mtu);
	setup->mtu = mtu;
	return result;
}

/* Gives the port one queue each way, and starts it. */
int nw_dpdk_start(uint16_t port, struct rte_mempool *pool, struct nw_dpdk_setup *setup)
{
	struct rte_eth_conf conf = { .rxmode = { .mq_mode = RTE_ETH_MQ_RX_NONE, .mtu = setup->mtu } };
	struct rte_eth_dev_info info;
	int result = rte_eth_dev_info_get(port, &info);

	if (result != 0)
		return errno_of(result);
	/* All buffers that we send come from one pool and have one owner. */
	conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	result = rte_eth_dev_configure(port, 1, 1, &conf);
	if (result == 0)
		result = rte_eth_dev_adjust_nb_rx_tx_desc(port, &setup->receive_descriptors,
							  &setup->transmit_descriptors);
	int socket = rte_eth_dev_socket_id(port);
	if (result == 0)
		result = rte_eth_rx_queue_setup(port, 0, setup->receive_descriptors, socket, NULL, pool);
	if (result == 0)
		result = rte_eth_tx_queue_setup(port, 0, setup->transmit_descriptors, socket, NULL);
	if (result == 0)
		result = set_mtu(port, setup);
	if (result == 0)
		result = rte_eth_dev_start(port);
	if (result == 0)
		result = unless_unsupported(setup->promiscuous ? rte_eth_promiscuous_enable(port) :
								 rte_eth_promiscuous_disable(port));
	return errno_of(result);
}

int nw_dpdk_is_up(uint16_t port)
{
	struct rte_eth_link link;

	return rte_eth_link_get_nowait(port, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

/* Receives these groups, `count` times 6 bytes; or else all groups; or else everything. ENOTSUP if there is no way. */
int nw_dpdk_hear_groups(uint16_t port, const uint8_t *groups, uint32_t count)
{
	int result = rte_eth_dev_set_mc_addr_list(port, (struct rte_ether_addr *)(uintptr_t)groups, count);

	if (result != 0)
		result = rte_eth_allmulticast_enable(port);
	if (result != 0)
		result = rte_eth_promiscuous_enable(port);
	return result == -ENOSYS ? ENOTSUP : errno_of(result);
}

struct nw_dpdk_counters {
	uint64_t missed;
	uint64_t receive_errors;
	uint64_t no_buffer;
	uint64_t transmit_errors;
};

int nw_dpdk_counters(uint16_t port, struct nw_dpdk_counters *counters)
{
	struct rte_eth_stats stats;
	int result = rte_eth_stats_get(port, &stats);

	if (result != 0)
		return errno_of(result);
	counters->missed = stats.imissed;
	counters->receive_errors = stats.ierrors;
	counters->no_buffer = stats.rx_nombuf;
	counters->transmit_errors = stats.oerrors;
	return 0;
}

/* --- Bursts --- */

struct nw_dpdk_view {
	uint8_t *data;
	size_t bytes;
};

/* One piece, within its buffer. A frame in several pieces becomes one if the first buffer has room. */
static inline bool make_whole(struct rte_mbuf *mbuf)
{
	if (unlikely(mbuf->nb_segs != 1)) {
		if (rte_mbuf_refcnt_read(mbuf) != 1 || !RTE_MBUF_DIRECT(mbuf) || rte_pktmbuf_linearize(mbuf) != 0)
			return false;
	}
	return (uint32_t)mbuf->data_off + mbuf->data_len <= mbuf->buf_len;
}

/*
 * Receives up to `count` frames. Returns how many buffers are in `mbufs`, all of which the caller must free; the frames
 * are in the first `*frames` entries of `views`. The difference was dropped.
 */
uint16_t nw_dpdk_receive(uint16_t port, struct rte_mbuf **mbufs, struct nw_dpdk_view *views, uint16_t count,
			 uint16_t *frames)
{
	uint16_t received = rte_eth_rx_burst(port, 0, mbufs, count), whole = 0;

	for (uint16_t i = 0; i < received; i++) {
		if (unlikely(!make_whole(mbufs[i])))
			continue;
		views[whole].data = rte_pktmbuf_mtod(mbufs[i], uint8_t *);
		views[whole].bytes = mbufs[i]->data_len;
		rte_prefetch0(views[whole].data);
		whole++;
	}
	*frames = whole;
	return received;
}

/* Allocates up to `count` buffers, and says where their frames start. Returns how many. */
uint16_t nw_dpdk_allocate(struct rte_mempool *pool, struct rte_mbuf **mbufs, uint8_t **data, uint16_t count)
{
	/* It gives all or none. A pool that is nearly empty may have some. */
	while (count > 0 && rte_pktmbuf_alloc_bulk(pool, mbufs, count) != 0)
		count /= 2;
	for (uint16_t i = 0; i < count; i++)
		data[i] = rte_pktmbuf_mtod(mbufs[i], uint8_t *);
	return count;
}

/* Sends buffers with so many bytes each. The device owns the first ones, whose number is returned. */
uint16_t nw_dpdk_send(uint16_t port, struct rte_mbuf **mbufs, const uint16_t *bytes, uint16_t count)
{
	for (uint16_t i = 0; i < count; i++) {
		mbufs[i]->data_len = bytes[i];
		mbufs[i]->pkt_len = bytes[i];
	}
	return rte_eth_tx_burst(port, 0, mbufs, count);
}
