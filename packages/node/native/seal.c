/*
 * seal OWNER [TREE NAME]...: looks through directory trees that are to become a snapshot. No process writes to them any more.
 *
 * Standard input: values, each ended by NUL, that no file, name or link may hold. First everything is looked at; what must
 * not be in a snapshot ends the program with status 1 and a line "CODE PATH" on standard error, and nothing is changed. Then
 * what a snapshot simply does not keep is taken away: set-id bits of files, devices, sockets, and the extended attributes by
 * which overlayfs and file capabilities work. At the end one line of counts, "KEY=NUMBER ..." on standard output.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "protocol.h"

enum { MAX_DEPTH = 2000, MAX_SECRETS = 64, CHUNK = 1 << 20, INPUT_SIZE = 1 << 20 };

static struct {
  uid_t owner;
  dev_t device;
  bool strips;
  char path[16384]; /* of the current entry, as the pod calls it */
  const char *secrets[MAX_SECRETS];
  size_t lengths[MAX_SECRETS], longest;
  int secret_count;
  unsigned long long files, bytes, setuid, devices, sockets, attributes;
} seal;

static char input[INPUT_SIZE + 1];
static char chunk[2 * CHUNK];

/* A name may be what must not be told. */
static void hide_secrets(char *text) {
  for (int i = 0; i < seal.secret_count; i++)
    for (char *at = text; (at = strstr(at, seal.secrets[i])); at += seal.lengths[i]) memset(at, '*', seal.lengths[i]);
}

static void refuse(const char *code) {
  hide_secrets(seal.path);
  fprintf(stderr, "%s %s\n", code, seal.path);
  exit(1);
}

static void fail(const char *what) {
  int reason = errno;
  hide_secrets(seal.path);
  fprintf(stderr, "Failed %s: %s: %s\n", seal.path, what, strerror(reason));
  exit(1);
}

static void read_secrets(void) {
  size_t used = 0;
  for (ssize_t got; (got = read(0, input + used, INPUT_SIZE - used)) != 0; used += (size_t)got)
    if (got < 0) fail("read values");
  if (used == INPUT_SIZE) errno = E2BIG, fail("values");
  for (char *value = input; value < input + used; value += strlen(value) + 1) {
    if (!*value) continue;
    if (seal.secret_count == MAX_SECRETS) errno = E2BIG, fail("values");
    size_t length = strlen(value);
    seal.secrets[seal.secret_count] = value;
    seal.lengths[seal.secret_count++] = length;
    if (length > seal.longest) seal.longest = length;
  }
  if (seal.longest > CHUNK) errno = E2BIG, fail("values");
}

static void search(const char *bytes, size_t size) {
  for (int i = 0; i < seal.secret_count; i++)
    if (memmem(bytes, size, seal.secrets[i], seal.lengths[i])) refuse("SecretFound");
}

/* Where the file has something from here on, -1 where nothing comes any more. File systems without holes have it everywhere. */
static off_t next_data(int fd, off_t from) {
  off_t data = lseek(fd, from, SEEK_DATA);
  return data < 0 && errno != ENXIO ? from : data;
}

static void search_file(int parent, const char *name) {
  int fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) fail("cannot be read");
  posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  /* The end of each piece is looked at again with the next one: a value may lie across both. Holes are passed over, for a file
   * that takes no room may say it has terabytes; they are zeros, which no value has. */
  size_t kept = 0;
  for (off_t at = 0, data; (data = next_data(fd, at)) >= 0;) {
    if (data > at) kept = 0;
    off_t hole = lseek(fd, data, SEEK_HOLE);
    size_t wanted = hole > data && hole - data < CHUNK ? (size_t)(hole - data) : CHUNK;
    ssize_t got = pread(fd, chunk + kept, wanted, data);
    if (got < 0) fail("cannot be read");
    if (got == 0) break;
    size_t size = kept + (size_t)got;
    search(chunk, size);
    kept = size < seal.longest - 1 ? size : seal.longest - 1;
    memmove(chunk, chunk + size - kept, kept);
    at = data + got;
  }
  close(fd);
}

/* Files with several names whose content was searched. One file may have 65,000 names, and there is nothing new behind them. */
static struct {
  ino_t *slots;
  size_t size, used;
} searched;

static bool is_searched(ino_t inode) {
  if (2 * searched.used >= searched.size) {
    ino_t *old = searched.slots;
    size_t old_size = searched.size;
    searched.size = old_size ? 2 * old_size : 1024;
    searched.slots = calloc(searched.size, sizeof *searched.slots);
    if (!searched.slots) fail("files with several names");
    searched.used = 0;
    for (size_t i = 0; i < old_size; i++)
      if (old[i]) is_searched(old[i]);
    free(old);
  }
  /* Multiplied, so that inodes that follow each other do not lie in a row; zero is the number of no file. */
  size_t at = (size_t)((unsigned long long)inode * 0x9e3779b97f4a7c15ull >> 20) & (searched.size - 1);
  for (; searched.slots[at]; at = (at + 1) & (searched.size - 1))
    if (searched.slots[at] == inode) return true;
  searched.slots[at] = inode;
  searched.used++;
  return false;
}

static bool is_unwanted(const char *name) {
  return !strncmp(name, "user.overlay.", 13) || !strncmp(name, "trusted.overlay.", 16) || !strcmp(name, "security.capability");
}

/* Through the parent's descriptor: a path may be longer than the kernel takes, and a link has attributes of its own. */
static void strip_attributes(int parent, const char *name) {
  char place[512], list[65536];
  snprintf(place, sizeof place, "/proc/self/fd/%d/%s", parent, name);
  ssize_t size = llistxattr(place, list, sizeof list);
  if (size < 0 && errno == EOPNOTSUPP) return;
  if (size < 0) fail("attributes");
  for (char *attribute = list; attribute < list + size; attribute += strlen(attribute) + 1) {
    if (!is_unwanted(attribute)) continue;
    if (seal.strips && lremovexattr(place, attribute)) fail(attribute);
    seal.attributes += seal.strips;
  }
}

static void look_at_link(int parent, const char *name) {
  ssize_t size = readlinkat(parent, name, chunk, CHUNK);
  if (size < 0) fail("link");
  search(chunk, (size_t)size);
}

static void walk(int fd, int depth);

static void visit(int parent, const char *name, int depth) {
  struct stat found;
  if (fstatat(parent, name, &found, AT_SYMLINK_NOFOLLOW)) fail("look");
  if (found.st_uid != seal.owner || found.st_gid != seal.owner) refuse("ForeignOwner");
  if (found.st_dev != seal.device) refuse("NotMovable");
  bool is_device = S_ISCHR(found.st_mode) || S_ISBLK(found.st_mode), is_socket = S_ISSOCK(found.st_mode);
  if (seal.strips && (is_device || is_socket)) {
    if (unlinkat(parent, name, 0)) fail("remove");
    seal.devices += is_device;
    seal.sockets += is_socket;
    return;
  }
  strip_attributes(parent, name);
  if (!seal.strips && seal.secret_count) {
    search(name, strlen(name));
    if (S_ISREG(found.st_mode) && (found.st_nlink == 1 || !is_searched(found.st_ino))) search_file(parent, name);
    if (S_ISLNK(found.st_mode)) look_at_link(parent, name);
  }
  if (seal.strips && S_ISREG(found.st_mode) && (found.st_mode & (S_ISUID | S_ISGID))) {
    if (fchmodat(parent, name, found.st_mode & 01777, 0)) fail("mode");
    seal.setuid++;
  }
  if (seal.strips) {
    seal.files++;
    unsigned long long size = (unsigned long long)found.st_blocks * 512;
    seal.bytes += S_ISDIR(found.st_mode) ? size : size / found.st_nlink;
  }
  if (!S_ISDIR(found.st_mode)) return;
  if (depth == MAX_DEPTH) errno = ELOOP, fail("directories nest too deep");
  int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) fail("cannot be read");
  walk(fd, depth + 1);
}

static void walk(int fd, int depth) {
  DIR *directory = fdopendir(fd);
  if (!directory) fail("read");
  size_t length = strlen(seal.path);
  errno = 0;
  for (struct dirent *entry; (entry = readdir(directory)); errno = 0) {
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    snprintf(seal.path + length, sizeof seal.path - length, "/%s", entry->d_name);
    visit(fd, entry->d_name, depth);
    seal.path[length] = 0;
  }
  if (errno) fail("read");
  closedir(directory);
}

static void look_through(char **trees, int count) {
  for (int i = 0; i < count; i += 2) {
    struct stat found;
    snprintf(seal.path, sizeof seal.path, "%s", trees[i + 1]);
    int parent = open(trees[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (parent < 0 || fstat(parent, &found)) fail("open");
    seal.device = found.st_dev;
    visit(parent, ".", 0);
    close(parent);
  }
}

int seal_main(int argc, char **argv) {
  if (argc < 3 || argc % 2 == 0) return 64;
  struct rlimit files;
  if (!getrlimit(RLIMIT_NOFILE, &files)) files.rlim_cur = files.rlim_max, setrlimit(RLIMIT_NOFILE, &files);
  seal.owner = (uid_t)strtoul(argv[0], NULL, 10);
  read_secrets();
  look_through(argv + 1, argc - 1);
  seal.strips = true;
  look_through(argv + 1, argc - 1);
  printf("files=%llu bytes=%llu setuid=%llu devices=%llu sockets=%llu attributes=%llu\n", seal.files, seal.bytes, seal.setuid,
         seal.devices, seal.sockets, seal.attributes);
  return fflush(stdout) ? 1 : 0;
}
