/*
 * launch [CGROUP_FILE...]: turns the calling process into a cell. Joins the given groups at once, so that a launcher can
 * be kept ready in its group, then reads its description from standard input until end of file, a list of
 * NUL-terminated records whose first character says what they are:
 *
 *   n PATH     network namespace to enter             l NAME=VALUE  resource limit (soft and hard)
 *   u PATH     user namespace to enter before it
 *   s PATH     unix socket to bind and listen on      c FD   control connection, handed to the supervisor
 *   f PATH     seccomp program for bwrap              U ID / G ID  host uid and gid to become
 *   b ARG      argument for bwrap, in order           e PATH the program to execute: bwrap, or the supervisor itself
 *   a ARG      argument behind bwrap's own; "@listen" and "@control" become descriptor numbers
 *
 * Arguments reach bwrap through a memory file, so that nothing of a pod shows in the host's process list. Privileges
 * are dropped before bwrap runs: a payload of host uid 0 could write to /proc/sys.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol.h"

enum { MAX_DESCRIPTION = 4 * 1024 * 1024, MAX_ARGS = 256 };

static void fail(const char *what, const char *detail) {
  fprintf(stderr, "launch: %s%s%s: %s\n", what, detail ? " " : "", detail ? detail : "", strerror(errno));
  exit(125);
}

static char *read_description(size_t *length) {
  size_t capacity = 16384, used = 0;
  char *text = malloc(capacity + 1);
  for (;;) {
    if (!text) fail("memory", NULL);
    ssize_t got = read(0, text + used, capacity - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read description", NULL);
    if (got == 0) break;
    used += (size_t)got;
    if (used == capacity) {
      if (capacity >= MAX_DESCRIPTION) errno = E2BIG, fail("description", NULL);
      capacity *= 2;
      text = realloc(text, capacity + 1);
    }
  }
  text[used] = 0;
  *length = used;
  return text;
}

static void join_cgroup(const char *path) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, "0", 1) != 1) fail("join cgroup", path);
  close(fd);
}

static int open_namespace(const char *path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail("open namespace", path);
  return fd;
}

static void enter(int fd, int kind, const char *what) {
  if (fd >= 0 && setns(fd, kind)) fail("enter", what);
  if (fd >= 0) close(fd);
}

static int listen_at(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) errno = ENAMETOOLONG, fail("socket", path);
  strcpy(address.sun_path, path);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  unlink(path);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 128)) fail("listen", path);
  return fd;
}

static void limit(const char *text) {
  const char *value = strchr(text, '=');
  if (!value) errno = EINVAL, fail("limit", text);
  struct rlimit wanted = {strtoull(value + 1, NULL, 10), strtoull(value + 1, NULL, 10)};
  int which = !strncmp(text, "nofile=", 7)  ? RLIMIT_NOFILE
              : !strncmp(text, "nproc=", 6) ? RLIMIT_NPROC
              : !strncmp(text, "core=", 5)  ? RLIMIT_CORE
                                            : -1;
  struct rlimit now;
  if (which < 0 || getrlimit((__rlimit_resource_t)which, &now)) errno = EINVAL, fail("limit", text);
  if (wanted.rlim_max > now.rlim_max) wanted.rlim_cur = wanted.rlim_max = now.rlim_max;
  if (setrlimit((__rlimit_resource_t)which, &wanted)) fail("limit", text);
}

static void become(uid_t uid, gid_t gid) {
  if (geteuid() == 0 && setgroups(0, NULL)) fail("drop groups", NULL);
  if (setresgid(gid, gid, gid)) fail("become gid", NULL);
  if (setresuid(uid, uid, uid)) fail("become uid", NULL);
  if (uid != 0 && setuid(0) == 0) errno = EPERM, fail("uid 0 could be regained", NULL);
}

/* Closes everything above 2 but the wanted descriptors: bwrap hands on whatever it inherits. */
static void close_others(const int *keep, int count) {
  for (int fd = 3, highest = 0; fd >= 0; fd = highest) {
    int next = -1;
    for (int i = 0; i < count; i++)
      if (keep[i] >= fd && (next < 0 || keep[i] < next)) next = keep[i];
    unsigned last = next < 0 ? ~0U : (unsigned)next - 1;
    if ((next < 0 || next > fd) && syscall(SYS_close_range, (unsigned)fd, last, 0))
      for (int each = fd; each < 4096 && (next < 0 || each < next); each++) close(each);
    if (next < 0) return;
    fcntl(next, F_SETFD, 0);
    highest = next + 1;
  }
}

/* When the whole machine runs out of memory, sandboxes go before the platform. Raising the score is always allowed. */
static void die_first(void) {
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  if (write(fd, "900", 3) != 3) errno = 0; /* A container may forbid it; its own limits hold then. */
  close(fd);
}

int launch_main(int argc, char **argv) {
  die_first();
  for (int i = 0; i < argc; i++) join_cgroup(argv[i]);
  size_t length = 0;
  char *text = read_description(&length);
  if (!length) return 0; /* A launcher kept ready that is not needed after all. */
  int options = (int)syscall(SYS_memfd_create, "cell", 0);
  FILE *list = options < 0 ? NULL : fdopen(options, "w");
  if (!list) fail("memory file", NULL);

  char *args[MAX_ARGS], args_fd[16], listen_fd[16] = "-1", control_fd[16] = "-1", filter_fd[16];
  int count = 0, keep[4], kept = 0, user = -1, network = -1;
  const char *program = NULL;
  long uid = -1, gid = -1;
  int wraps = 0;

  for (char *record = text; record < text + length; record += strlen(record) + 1) {
    char *value = record + 1;
    switch (record[0]) {
      case 'u': user = open_namespace(value); break;
      case 'n': network = open_namespace(value); break;
      case 'l': limit(value); break;
      case 's': {
        int fd = listen_at(value);
        keep[kept++] = fd;
        snprintf(listen_fd, sizeof listen_fd, "%d", fd);
        break;
      }
      case 'c':
        keep[kept++] = atoi(value);
        snprintf(control_fd, sizeof control_fd, "%d", atoi(value));
        break;
      case 'f': {
        int fd = open(value, O_RDONLY);
        if (fd < 0) fail("seccomp filter", value);
        keep[kept++] = fd;
        snprintf(filter_fd, sizeof filter_fd, "%d", fd);
        fprintf(list, "--seccomp%c%s%c", 0, filter_fd, 0);
        break;
      }
      case 'b':
        wraps = 1;
        if (fwrite(value, strlen(value) + 1, 1, list) != 1) fail("bwrap arguments", NULL);
        break;
      case 'U': uid = atol(value); break;
      case 'G': gid = atol(value); break;
      case 'e': program = value; break;
      case 'a':
        if (count >= MAX_ARGS - 8) errno = E2BIG, fail("arguments", NULL);
        args[count++] = !strcmp(value, "@listen") ? listen_fd : !strcmp(value, "@control") ? control_fd : value;
        break;
      default: errno = EINVAL, fail("record", record);
    }
  }
  if (!program) errno = EINVAL, fail("no program", NULL);
  /* Both were opened first: from inside the user namespace the paths of the process that holds them are closed to us. */
  enter(user, CLONE_NEWUSER, "user namespace");
  enter(network, CLONE_NEWNET, "network namespace");
  if (uid >= 0) become((uid_t)uid, (gid_t)gid);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) fail("no_new_privs", NULL);
  setsid();

  char *line[MAX_ARGS];
  int filled = 0;
  line[filled++] = (char *)program;
  if (wraps) {
    if (fflush(list)) fail("bwrap arguments", NULL);
    lseek(options, 0, SEEK_SET);
    keep[kept++] = options;
    snprintf(args_fd, sizeof args_fd, "%d", options);
    line[filled++] = "--args";
    line[filled++] = args_fd;
    line[filled++] = "--";
  }
  for (int i = 0; i < count; i++) line[filled++] = args[i];
  line[filled] = NULL;
  close_others(keep, kept);
  int null = open("/dev/null", O_RDONLY);
  if (null >= 0) dup2(null, 0), null > 2 && close(null);
  char *empty[] = {NULL};
  execve(program, line, empty);
  fail("execute", program);
  return 125;
}
