/*
 * netns: makes a pod's network namespace (or, with --join FD, works in an existing one) and hands its listeners to the
 * Node process at the other end of NODE_CHANNEL_FD in Node's own form for passed handles.
 *
 *   --user              make a user namespace too (started without root)
 *   --join FD           enter this namespace instead of making one; --join-user FD enters its user namespace first
 *   --address IP        an address on lo              --route CIDR     addresses answered locally
 *   --tcp KEY=IP:PORT   a listener                    --udp KEY=IP:PORT  a datagram socket
 *   --spare             made ahead of a pod: says "made", and reads one more CIDR from a line of standard input
 *
 * Afterwards it says "ready" on standard output and waits for end of file on standard input: until then the caller can
 * open /proc/PID/ns/net, and that descriptor keeps the namespace alive.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol.h"

static void fail(const char *what) {
  fprintf(stderr, "netns: %s: %s\n", what, strerror(errno));
  exit(125);
}

static int put(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t wrote = write(fd, text, strlen(text));
  close(fd);
  return wrote < 0 ? -1 : 0;
}

static void enter_new_user(void) {
  char map[64];
  unsigned uid = getuid(), gid = getgid();
  if (unshare(CLONE_NEWUSER)) fail("make user namespace");
  if (put("/proc/self/setgroups", "deny")) fail("setgroups");
  snprintf(map, sizeof map, "%u %u 1", uid, uid);
  if (put("/proc/self/uid_map", map)) fail("setting up uid map");
  snprintf(map, sizeof map, "%u %u 1", gid, gid);
  if (put("/proc/self/gid_map", map)) fail("setting up gid map");
}

static int loopback_index(void) {
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct ifreq request = {.ifr_name = "lo"};
  request.ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK;
  if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request)) fail("loopback up");
  struct ifreq index = {.ifr_name = "lo"};
  if (ioctl(fd, SIOCGIFINDEX, &index)) fail("loopback index");
  close(fd);
  return index.ifr_ifindex;
}

/* Tells the kernel that everything below address/bits is this machine: lets listeners bind there without an address. */
static void local_route(int loopback, const char *cidr) {
  static int netlink = -1;
  char text[64];
  snprintf(text, sizeof text, "%s", cidr);
  char *slash = strchr(text, '/');
  if (slash) *slash = 0;
  struct in_addr target;
  if (inet_pton(AF_INET, text, &target) != 1) errno = EINVAL, fail(cidr);
  struct {
    struct nlmsghdr header;
    struct rtmsg route;
    char attributes[64];
  } request = {0};
  request.header.nlmsg_type = RTM_NEWROUTE;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_REPLACE | NLM_F_ACK;
  request.header.nlmsg_len = NLMSG_LENGTH(sizeof request.route);
  request.route.rtm_family = AF_INET;
  request.route.rtm_table = RT_TABLE_LOCAL;
  request.route.rtm_protocol = RTPROT_BOOT;
  request.route.rtm_scope = RT_SCOPE_HOST;
  request.route.rtm_type = RTN_LOCAL;
  request.route.rtm_dst_len = slash ? (unsigned char)atoi(slash + 1) : 32;
  const void *values[] = {&loopback, &target};
  const unsigned short kinds[] = {RTA_OIF, RTA_DST};
  for (int i = 0; i < 2; i++) {
    struct rtattr *attribute = (void *)((char *)&request + NLMSG_ALIGN(request.header.nlmsg_len));
    attribute->rta_type = kinds[i];
    attribute->rta_len = RTA_LENGTH(4);
    memcpy(RTA_DATA(attribute), values[i], 4);
    request.header.nlmsg_len = NLMSG_ALIGN(request.header.nlmsg_len) + RTA_ALIGN(attribute->rta_len);
  }
  if (netlink < 0) netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  char answer[512];
  if (send(netlink, &request, request.header.nlmsg_len, 0) < 0) fail("route request");
  if (recv(netlink, answer, sizeof answer, 0) < 0) fail("route answer");
  int error = ((struct nlmsgerr *)NLMSG_DATA((struct nlmsghdr *)answer))->error;
  if (error) errno = -error, fail("route");
}

static int listener(int type, const char *place) {
  char ip[64];
  snprintf(ip, sizeof ip, "%s", place);
  char *colon = strrchr(ip, ':');
  if (!colon) errno = EINVAL, fail(place);
  *colon = 0;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(colon + 1))};
  /* Node makes the sockets it opens itself non-blocking, not those it is handed: accept() would wait for ever on one that
     became ready and has nothing any more, and with it everything else the receiving process does. */
  int one = 1, fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || inet_pton(AF_INET, ip, &address.sin_addr) != 1) fail(place);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(fd, (struct sockaddr *)&address, sizeof address)) fail(place);
  if (type == SOCK_STREAM && listen(fd, 511)) fail(place);
  return fd;
}

static void hand_over(int channel, int fd, int type, const char *key) {
  char message[256];
  int size = snprintf(message, sizeof message,
                      "{\"cmd\":\"NODE_HANDLE\",\"type\":\"%s\",\"dgramType\":\"udp4\",\"msg\":{\"key\":\"%s\"}}\n",
                      type == SOCK_STREAM ? "net.Server" : "dgram.Socket", key);
  struct iovec part = {message, (size_t)size};
  char control[CMSG_SPACE(sizeof fd)] = {0};
  struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr *attached = CMSG_FIRSTHDR(&header);
  attached->cmsg_level = SOL_SOCKET;
  attached->cmsg_type = SCM_RIGHTS;
  attached->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(attached), &fd, sizeof fd);
  if (sendmsg(channel, &header, 0) < 0) fail("hand over listener");
  close(fd);
}

/* Node acknowledges each handle with a line; leaving before the last one would drop what is still under way. */
static void await_acknowledgements(int channel, int lines) {
  char text[512];
  while (lines > 0) {
    ssize_t got = read(channel, text, sizeof text);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    for (ssize_t i = 0; i < got; i++) lines -= text[i] == '\n';
  }
}

/* The pod's own address, once there is a pod. False at end of file: the namespace was not used. */
static int await_address(char *cidr, size_t size) {
  size_t used = 0;
  while (used + 1 < size) {
    ssize_t got = read(0, cidr + used, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return 0;
    if (cidr[used] == '\n') break;
    used++;
  }
  cidr[used] = 0;
  return 1;
}

int netns_main(int argc, char **argv) {
  const char *channel_text = getenv("NODE_CHANNEL_FD");
  int channel = channel_text ? atoi(channel_text) : -1;
  int joined = 0, loopback = 0, sent = 0, spare = 0;
  if (channel >= 0) fcntl(channel, F_SETFL, fcntl(channel, F_GETFL) & ~O_NONBLOCK);
  for (int i = 0; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (!strcmp(argv[i], "--user")) enter_new_user();
    if (!strcmp(argv[i], "--spare")) spare = 1;
    if (!strcmp(argv[i], "--join-user") && setns(atoi(value), CLONE_NEWUSER)) fail("enter user namespace");
    if (!strcmp(argv[i], "--join")) {
      if (setns(atoi(value), CLONE_NEWNET)) fail("enter network namespace");
      joined = 1;
    }
  }
  if (!joined && unshare(CLONE_NEWNET)) fail("make network namespace");
  loopback = loopback_index();
  /* Where the kernel refuses, ports below 1024 stay privileged inside: inconvenient, not unsafe. */
  if (!joined) (void)put("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
  for (int i = 0; i + 1 < argc; i++) {
    char *value = argv[i + 1], *equals = strchr(value, '=');
    int type = !strcmp(argv[i], "--tcp") ? SOCK_STREAM : !strcmp(argv[i], "--udp") ? SOCK_DGRAM : 0;
    if (!strcmp(argv[i], "--route") || !strcmp(argv[i], "--address")) local_route(loopback, value);
    if (!type || !equals) continue;
    *equals = 0;
    if (channel < 0) errno = EBADF, fail("no channel for listeners");
    hand_over(channel, listener(type, equals + 1), type, value);
    sent++;
  }
  await_acknowledgements(channel, sent);
  if (spare) {
    char cidr[64];
    if (write(1, "made\n", 5) < 0) fail("say made");
    if (!await_address(cidr, sizeof cidr)) return 0;
    local_route(loopback, cidr);
  }
  if (write(1, "ready\n", 6) < 0) fail("say ready");
  char rest[64];
  while (read(0, rest, sizeof rest) > 0) continue;
  return 0;
}
