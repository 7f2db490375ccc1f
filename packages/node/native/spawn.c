/*
 * spawn LANES: starts commands for the daemon of a sandbox, a large process whose fork copies page tables for longer than
 * most commands run. Descriptors 3 and up are LANES connected sockets, each of which carries one command after the other:
 * EXEC with the whole environment, then STARTED or ERROR, output, EXIT. SIGNAL takes the number and, for the whole group, a
 * minus before it. A lane that hangs up ends its command; with the last one this process ends. It is not dumpable:
 * environments of commands pass through it.
 */
#include "cell.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A full frame is 64 KiB, what Node reads at once. */
enum { MAX_LANES = 16, FIRST_LANE = 3, OUT_HIGH = 256 * 1024, READ_SIZE = 64 * 1024 - FRAME_HEADER, DRAIN_MS = 1000,
       HOLD_US = 300, HOLD_BYTES = 4096, BULK_BYTES = 128 * 1024, BULK_PIPE = 256 * 1024, GATHER_US = 300 };

struct lane {
  struct connection c;
  /* Until then what a command says first is kept back, so that a short one's output and end go in one message. */
  int64_t hold_until_us;
  bool has_spoken;
  /* One that says much is read a pipe full at a time: each small write of its would otherwise be a frame of its own. */
  size_t said;
  int64_t gather_until_us;
};

static struct lane lanes[MAX_LANES];

static int64_t now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static void close_output(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

static void begin(struct lane *lane, char *payload, size_t size) {
  struct connection *c = &lane->c;
  struct spec spec;
  const char *what;
  if (!parse_spec(payload, size, &spec)) {
    send_error(c, "Invalid", "malformed process description");
    c->stage = AWAITS_REQUEST;
    return;
  }
  c->exited = c->exit_sent = false;
  lane->has_spoken = false;
  lane->said = 0;
  lane->hold_until_us = lane->gather_until_us = 0;
  int problem = start_process(c, &spec, spec.environment, spec.directory, &what);
  uint32_t pid = (uint32_t)c->pid;
  if (!problem) send_frame(c, FRAME_STARTED, &pid, sizeof pid);
  else send_error(c, problem == ENOENT ? "NotFound" : "StartFailed", "%s", strerror(problem)), c->stage = AWAITS_REQUEST;
  free(spec.environment);
  free(spec.arguments);
}

static void read_frames(struct lane *lane) {
  struct connection *c = &lane->c;
  while (buffer_used(&c->in) >= FRAME_HEADER) {
    unsigned char *at = (unsigned char *)c->in.data + c->in.start;
    size_t size = (size_t)at[1] | (size_t)at[2] << 8 | (size_t)at[3] << 16 | (size_t)at[4] << 24;
    if (size > MAX_SPEC) {
      c->hung_up = true;
      return;
    }
    if (buffer_used(&c->in) < FRAME_HEADER + size) return;
    char *payload = (char *)at + FRAME_HEADER;
    if (at[0] == FRAME_EXEC && c->stage == AWAITS_REQUEST) begin(lane, payload, size);
    else if (at[0] == FRAME_SIGNAL && size < 8 && c->stage == RUNS_PROCESS && !c->exited) {
      char text[8] = {0};
      memcpy(text, payload, size);
      int number = atoi(text);
      kill(number < 0 ? -c->pid : c->pid, abs(number));
    }
    buffer_take(&c->in, FRAME_HEADER + size);
  }
}

static void read_output(struct lane *lane, int *fd, int type) {
  struct connection *c = &lane->c;
  while (*fd >= 0 && buffer_used(&c->out) < OUT_HIGH) {
    char *space = buffer_space(&c->out, FRAME_HEADER + READ_SIZE);
    ssize_t got = read(*fd, space + FRAME_HEADER, READ_SIZE);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      if (lane->said >= BULK_BYTES) lane->gather_until_us = now_us() + GATHER_US;
      return;
    }
    if (got <= 0) {
      close_output(fd);
      return;
    }
    char header[FRAME_HEADER] = {(char)type, (char)got, (char)(got >> 8), (char)(got >> 16), (char)(got >> 24)};
    memcpy(space, header, sizeof header);
    c->out.end += FRAME_HEADER + (size_t)got;
    bool was_bulk = lane->said >= BULK_BYTES;
    lane->said += (size_t)got;
    /* Refused where the user's pipes hold much already: then it stays as it was. */
    if (!was_bulk && lane->said >= BULK_BYTES) fcntl(*fd, F_SETPIPE_SZ, BULK_PIPE);
    if (lane->has_spoken) continue;
    lane->has_spoken = true;
    lane->hold_until_us = now_us() + HOLD_US;
  }
}

/* What a background child may still write after the end is waited for a while, longer where the reader holds it up. */
static void report_exit(struct lane *lane) {
  struct connection *c = &lane->c;
  if (!c->exited || c->exit_sent) return;
  bool is_full = buffer_used(&c->out) >= OUT_HIGH;
  if (is_full) c->drain_until_ms = now_ms() + DRAIN_MS;
  if ((c->child_out >= 0 || c->child_err >= 0) && now_ms() < c->drain_until_ms) return;
  close_output(&c->child_out);
  close_output(&c->child_err);
  int32_t code = WIFEXITED(c->status) ? WEXITSTATUS(c->status) : 128 + WTERMSIG(c->status);
  int32_t numbers[2] = {code, WIFSIGNALED(c->status) ? WTERMSIG(c->status) : 0};
  send_frame(c, FRAME_EXIT, numbers, sizeof numbers);
  c->exit_sent = true;
  c->stage = AWAITS_REQUEST;
  lane->hold_until_us = 0;
}

static void drop(struct lane *lane) {
  struct connection *c = &lane->c;
  if (c->stage == RUNS_PROCESS && !c->exited) kill(-c->pid, SIGKILL);
  close_output(&c->child_out);
  close_output(&c->child_err);
  close(c->fd);
  c->fd = -1;
}

static void reap(int count) {
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
    for (int i = 0; i < count; i++) {
      struct connection *c = &lanes[i].c;
      if (c->stage != RUNS_PROCESS || c->pid != pid || c->exited) continue;
      c->exited = true;
      c->status = status;
      c->drain_until_ms = now_ms() + DRAIN_MS;
    }
}

static void step(struct lane *lane, short events) {
  struct connection *c = &lane->c;
  if (events & POLLIN) {
    if (buffer_fill(&c->in, c->fd, READ_SIZE) < 0) c->hung_up = true;
  } else if (events & (POLLHUP | POLLERR)) c->hung_up = true;
  read_frames(lane);
  if (c->stage == RUNS_PROCESS) {
    if (lane->gather_until_us <= now_us()) {
      lane->gather_until_us = 0;
      read_output(lane, &c->child_out, FRAME_STDOUT);
      read_output(lane, &c->child_err, FRAME_STDERR);
    }
    report_exit(lane);
  }
  /* Over for good: what the reader does not take after that waits for room, not for a time that has passed. */
  if (lane->hold_until_us && (lane->hold_until_us <= now_us() || buffer_used(&c->out) >= HOLD_BYTES)) lane->hold_until_us = 0;
  if (!lane->hold_until_us && buffer_used(&c->out) && buffer_drain(&c->out, c->fd) < 0) c->hung_up = true;
}

/* Microseconds until a lane wants another look without an event; -1 for never. */
static int64_t nearest_us(int count) {
  int64_t nearest = -1;
  for (int i = 0; i < count; i++) {
    struct connection *c = &lanes[i].c;
    if (c->fd < 0) continue;
    int64_t left = -1;
    if (lanes[i].hold_until_us && buffer_used(&c->out)) left = lanes[i].hold_until_us - now_us();
    else if (lanes[i].gather_until_us && c->stage == RUNS_PROCESS) left = lanes[i].gather_until_us - now_us();
    else if (c->stage == RUNS_PROCESS && c->exited && buffer_used(&c->out) < OUT_HIGH)
      left = (c->drain_until_ms - now_ms()) * 1000;
    else continue;
    if (left < 0) left = 0;
    if (nearest < 0 || left < nearest) nearest = left;
  }
  return nearest;
}

int spawn_main(int argc, char **argv) {
  int count = argc == 1 ? atoi(argv[0]) : 0;
  if (count < 1 || count > MAX_LANES) return 64;
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  prctl(PR_SET_NAME, "corral-spawn", 0, 0, 0);
  syscall(SYS_close_range, (unsigned)(FIRST_LANE + count), ~0U, 0);
  for (int number = 1; number < NSIG; number++)
    if (number != SIGCHLD) signal(number, SIG_IGN);
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, NULL);
  int deaths = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
  if (deaths < 0) return 71;
  for (int i = 0; i < count; i++) {
    struct connection *c = &lanes[i].c;
    c->fd = FIRST_LANE + i;
    c->child_in = c->child_out = c->child_err = c->peer = -1;
    c->in.limit = MAX_SPEC + FRAME_HEADER;
    c->out.limit = OUT_HIGH;
    fcntl(c->fd, F_SETFD, FD_CLOEXEC);
    fcntl(c->fd, F_SETFL, fcntl(c->fd, F_GETFL) | O_NONBLOCK);
  }
  struct pollfd polled[1 + 3 * MAX_LANES];
  for (int open = count; open > 0;) {
    polled[0] = (struct pollfd){.fd = deaths, .events = POLLIN};
    for (int i = 0; i < count; i++) {
      struct connection *c = &lanes[i].c;
      bool reads = c->fd >= 0 && buffer_used(&c->out) < OUT_HIGH && !lanes[i].gather_until_us;
      short wants = (short)(POLLIN | (buffer_used(&c->out) && !lanes[i].hold_until_us ? POLLOUT : 0));
      polled[1 + 3 * i] = (struct pollfd){.fd = c->fd, .events = wants};
      polled[2 + 3 * i] = (struct pollfd){.fd = reads ? c->child_out : -1, .events = POLLIN};
      polled[3 + 3 * i] = (struct pollfd){.fd = reads ? c->child_err : -1, .events = POLLIN};
    }
    int64_t left = nearest_us(count);
    struct timespec limit = {.tv_sec = left / 1000000, .tv_nsec = left % 1000000 * 1000};
    if (ppoll(polled, (nfds_t)(1 + 3 * count), left < 0 ? NULL : &limit, NULL) < 0 && errno != EINTR) return 71;
    struct signalfd_siginfo info;
    while (read(deaths, &info, sizeof info) > 0) continue;
    reap(count);
    for (int i = 0; i < count; i++) {
      if (lanes[i].c.fd < 0) continue;
      step(&lanes[i], polled[1 + 3 * i].revents);
      if (lanes[i].c.hung_up) drop(&lanes[i]), open--;
    }
  }
  return 0;
}
