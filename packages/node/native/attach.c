/*
 * attach: holds the copy-on-write trees of one pod and puts them into its cells.
 *
 *   attach [--join-user FD] OWNER USER [TREE DIRECTORY PATH]...
 *
 * OWNER is the id that owns the files of each TREE, USER the id of the pod; they differ as root only. DIRECTORY belongs to
 * the pod and has `lower`, `upper`, `work` and `mount` in it. PATH is where the tree appears in a cell.
 *
 * The overlays are made in a mount namespace of this process, so nothing of them shows on the host and nothing is left when
 * the process ends, however it ends. It says "ready" once they are there, then reads lines "PID STARTTIME" (a process in the
 * cell, and when it began, as in /proc/PID/stat) and answers each with "ok" or "error TEXT". All cells of a pod get the same
 * overlay: two with one upper directory would spoil each other. End of file on standard input is the end.
 *
 * Exit 69 says that this kernel cannot, 125 that something else went wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol.h"

enum { CANNOT = 69, WRONG = 125, MAX_TREES = 16 };

struct tree {
  const char *source, *directory, *path;
  int overlay; /* O_PATH on its root, in our own namespace */
  dev_t device;
};

static bool is_refusal(int number) {
  return number == ENOSYS || number == EINVAL || number == EPERM || number == EOPNOTSUPP || number == ENODEV;
}

static void fail(const char *what, const char *detail) {
  int number = errno;
  fprintf(stderr, "attach: %s%s%s: %s\n", what, detail ? " " : "", detail ? detail : "", strerror(number));
  exit(is_refusal(number) ? CANNOT : WRONG);
}

static bool put(pid_t pid, const char *name, const char *text) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
  close(fd);
  return written;
}

/* A user namespace in which the id `from` on the disk stands for `to`; every other id is the overflow id (65534) there. */
static int id_map(unsigned from, unsigned to) {
  int made[2], done[2];
  if (pipe2(made, O_CLOEXEC) || pipe2(done, O_CLOEXEC)) fail("pipe", NULL);
  pid_t child = fork();
  if (child < 0) fail("fork", NULL);
  char byte = 0;
  if (child == 0) {
    close(done[1]);
    if (unshare(CLONE_NEWUSER)) _exit(errno);
    if (write(made[1], "m", 1) == 1 && read(done[0], &byte, 1) < 0) _exit(1);
    _exit(0);
  }
  close(made[1]);
  close(done[0]);
  if (read(made[0], &byte, 1) != 1) {
    int status = 0;
    waitpid(child, &status, 0);
    errno = WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : EIO;
    fail("make user namespace", NULL);
  }
  char map[64], path[64];
  snprintf(map, sizeof map, "%u %u 1", from, to);
  if (!put(child, "uid_map", map) || !put(child, "gid_map", map)) fail("map ids", map);
  snprintf(path, sizeof path, "/proc/%d/ns/user", (int)child);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail("open", path);
  close(made[0]);
  close(done[1]);
  waitpid(child, NULL, 0);
  return fd;
}

/* The tree as the overlay's lower layer: read-only, and owned by the pod. */
static void mount_lower(const struct tree *tree, int map) {
  int fd = (int)syscall(SYS_open_tree, AT_FDCWD, tree->source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
  if (fd < 0) fail("open tree", tree->source);
  struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
  if (map >= 0) attributes.attr_set |= MOUNT_ATTR_IDMAP, attributes.userns_fd = (__u64)map;
  if (syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attributes, sizeof attributes))
    fail(map >= 0 ? "no idmapped mounts on this file system" : "make read-only", NULL);
  if (syscall(SYS_move_mount, fd, "", AT_FDCWD, "lower", MOVE_MOUNT_F_EMPTY_PATH)) fail("mount", "lower");
  close(fd);
}

static void make_overlay(struct tree *tree, int map, bool privileged) {
  /* Names relative to the directory need no escaping in the options. */
  if (chdir(tree->directory)) fail("enter", tree->directory);
  mount_lower(tree, map);
  /* Without redirect_dir a rename of a directory that comes from the tree is refused with EXDEV; the kernel offers it to
     the host's root only. */
  const char *options = privileged ? "lowerdir=lower,upperdir=upper,workdir=work,redirect_dir=on"
                                   : "lowerdir=lower,upperdir=upper,workdir=work,userxattr";
  if (mount("overlay", "mount", "overlay", MS_NOSUID | MS_NODEV, options)) fail("overlay of", tree->source);
  tree->overlay = open("mount", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat found;
  if (tree->overlay < 0 || fstat(tree->overlay, &found)) fail("open overlay of", tree->source);
  tree->device = found.st_dev;
}

/* One step down from a directory, never over a link; a missing one is made, with the pod's own rights. */
static int step_down(int parent, const char *name) {
  struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                         .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_BENEATH};
  int fd = (int)syscall(SYS_openat2, parent, name, &how, sizeof how);
  if (fd >= 0 || errno != ENOENT) return fd;
  if (mkdirat(parent, name, 0755) && errno != EEXIST) return -1;
  return (int)syscall(SYS_openat2, parent, name, &how, sizeof how);
}

static int open_target(const char *path) {
  char text[4096];
  if (strlen(path) >= sizeof text) return errno = ENAMETOOLONG, -1;
  strcpy(text, path);
  int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (char *rest = text, *name; at >= 0 && (name = strtok_r(NULL, "/", &rest));) {
    int next = step_down(at, name);
    int number = errno;
    close(at);
    errno = number;
    at = next;
  }
  return at;
}

static bool answer(const char *format, ...) {
  va_list values;
  va_start(values, format);
  vprintf(format, values);
  va_end(values);
  fflush(stdout);
  return false;
}

/* Field 22 of /proc/PID/stat, counted behind the command's name, which may hold anything. 0 when there is no such process. */
static unsigned long long start_time(int process) {
  char text[1024];
  int fd = openat(process, "stat", O_RDONLY | O_CLOEXEC);
  ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  if (got <= 0) return 0;
  text[got] = 0;
  char *field = strrchr(text, ')');
  for (int i = 2; field && i < 22; i++) field = strchr(field + 1, ' ');
  return field ? strtoull(field, NULL, 10) : 0;
}

/* The mount namespace of exactly that process: a number that has gone to another one meanwhile is refused. */
static int open_cell(pid_t pid, unsigned long long began) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d", (int)pid);
  int process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (process < 0) return -1;
  int cell = openat(process, "ns/mnt", O_RDONLY | O_CLOEXEC), number = errno;
  bool same = cell >= 0 && start_time(process) == began;
  close(process);
  if (same) return cell;
  if (cell >= 0) close(cell), number = ESRCH;
  errno = number;
  return -1;
}

static bool move_in(struct tree *trees, int count, const int *clones, unsigned user) {
  int targets[MAX_TREES];
  /* Directories are found and made as the pod would: where it may not go, neither does this. */
  setfsgid(user);
  setfsuid(user);
  int found = 0, number = 0;
  while (found < count && (targets[found] = open_target(trees[found].path)) >= 0) found++;
  if (found < count) number = errno;
  setfsuid(geteuid());
  setfsgid(getegid());
  if (found < count) {
    for (int i = 0; i < found; i++) close(targets[i]);
    return answer("error %s: %s\n", trees[found].path, strerror(number));
  }
  bool moved = true;
  for (int i = 0; i < count; i++) {
    struct stat there;
    bool is_there = !fstat(targets[i], &there) && there.st_dev == trees[i].device;
    if (moved && !is_there &&
        syscall(SYS_move_mount, clones[i], "", targets[i], "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH))
      moved = answer("error mount on %s: %s\n", trees[i].path, strerror(errno));
    close(targets[i]);
  }
  return moved;
}

static void attach_to(struct tree *trees, int count, unsigned user, int home, pid_t pid, unsigned long long began) {
  int clones[MAX_TREES], cell = open_cell(pid, began);
  if (cell < 0) {
    answer("error the cell is gone: %s\n", strerror(errno));
    return;
  }
  int made = 0;
  while (made < count && (clones[made] = (int)syscall(SYS_open_tree, trees[made].overlay, "",
                                                      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH)) >= 0)
    made++;
  bool done = false;
  if (made < count) answer("error copy the mount: %s\n", strerror(errno));
  else if (setns(cell, CLONE_NEWNS)) answer("error enter the cell: %s\n", strerror(errno));
  else {
    done = move_in(trees, count, clones, user);
    if (setns(home, CLONE_NEWNS)) fail("come back", NULL);
  }
  for (int i = 0; i < made; i++) close(clones[i]);
  close(cell);
  if (done) answer("ok\n");
}

int attach_main(int argc, char **argv) {
  struct tree trees[MAX_TREES];
  bool privileged = true;
  if (argc >= 2 && !strcmp(argv[0], "--join-user")) {
    if (setns(atoi(argv[1]), CLONE_NEWUSER)) fail("enter user namespace", NULL);
    privileged = false;
    argc -= 2, argv += 2;
  }
  if (argc < 5 || (argc - 2) % 3 || (argc - 2) / 3 > MAX_TREES) return 64;
  unsigned owner = (unsigned)strtoul(argv[0], NULL, 10), user = (unsigned)strtoul(argv[1], NULL, 10);
  int count = (argc - 2) / 3;
  if (unshare(CLONE_NEWNS)) fail("make mount namespace", NULL);
  /* What the host mounts and unmounts goes on here too, nothing of ours goes there. */
  if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL)) fail("make mounts private", NULL);
  umask(022);
  int map = owner == user ? -1 : id_map(owner, user);
  for (int i = 0; i < count; i++) {
    trees[i] = (struct tree){.source = argv[2 + 3 * i], .directory = argv[3 + 3 * i], .path = argv[4 + 3 * i]};
    make_overlay(&trees[i], map, privileged);
  }
  int home = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
  if (home < 0 || chdir("/")) fail("open own namespace", NULL);
  answer("ready\n");
  for (char line[128]; fgets(line, sizeof line, stdin);) {
    int pid = 0;
    unsigned long long began = 0;
    if (sscanf(line, "%d %llu", &pid, &began) == 2) attach_to(trees, count, user, home, (pid_t)pid, began);
  }
  return 0;
}
