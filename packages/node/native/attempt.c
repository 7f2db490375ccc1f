/* attempt: tries one thing a cell must refuse. Exits 0 when it was possible and 1 when it was not, with the reason. */
#include <errno.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "protocol.h"

enum { VSOCK_FAMILY = 40 };

static int attempt(const char *what) {
  if (!strcmp(what, "vsock")) return socket(VSOCK_FAMILY, SOCK_STREAM, 0) < 0;
  if (!strcmp(what, "routes")) return socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) < 0;
  if (!strcmp(what, "device-events")) return socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT) < 0;
  if (!strcmp(what, "asynchronous-requests")) {
    unsigned long context = 0;
    return syscall(SYS_io_setup, 1, &context) != 0;
  }
  if (!strcmp(what, "userns")) return unshare(CLONE_NEWUSER) != 0;
  if (!strcmp(what, "mountns")) return unshare(CLONE_NEWNS) != 0;
  if (!strcmp(what, "mount")) return mount("none", "/tmp", "tmpfs", 0, NULL) != 0;
  if (!strcmp(what, "umount")) return umount2("/proc", MNT_DETACH) != 0;
  return -1;
}

int attempt_main(int argc, char **argv) {
  int refused = argc == 1 ? attempt(argv[0]) : -1;
  const char *usage = "attempt: vsock | routes | device-events | asynchronous-requests | userns | mountns | mount | umount\n";
  if (refused < 0) return fprintf(stderr, "%s", usage), 64;
  printf("%s: %s\n", argv[0], refused ? strerror(errno) : "possible");
  return refused;
}
