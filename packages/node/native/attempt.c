/* attempt: tries one thing a cell must refuse. Exits 0 when it was possible and 1 when it was not, with the reason. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol.h"

enum { VSOCK_FAMILY = 40 };

static int attempt(const char *what) {
  if (!strcmp(what, "vsock")) return socket(VSOCK_FAMILY, SOCK_STREAM, 0) < 0;
  if (!strcmp(what, "userns")) return unshare(CLONE_NEWUSER) != 0;
  if (!strcmp(what, "mountns")) return unshare(CLONE_NEWNS) != 0;
  if (!strcmp(what, "mount")) return mount("none", "/tmp", "tmpfs", 0, NULL) != 0;
  if (!strcmp(what, "umount")) return umount2("/proc", MNT_DETACH) != 0;
  return -1;
}

int attempt_main(int argc, char **argv) {
  int refused = argc == 1 ? attempt(argv[0]) : -1;
  if (refused < 0) return fprintf(stderr, "attempt: vsock | userns | mountns | mount | umount\n"), 64;
  printf("%s: %s\n", argv[0], refused ? strerror(errno) : "possible");
  return refused;
}
