/*
 * supervise: pid 1 of a cell. Inherits a listening unix socket, whose path lies outside the cell's mounts, and the
 * control connection, on which the main process is asked for and reported. One loop, no blocking calls: a client that
 * does not read stops only its own process. The process is not dumpable, so a payload of the same uid can neither
 * trace it nor open its descriptors; being pid 1 it cannot be killed from inside.
 */
#include "cell.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_CONNECTIONS = 512, OUT_HIGH = 256 * 1024, READ_SIZE = 32 * 1024, LAST_WORDS_MS = 2000, TAIL_MS = 100,
       GOODBYE_MS = 2000, CONTROL_WORDS_MS = 60000 };

static struct cell cell;

static struct connection *add_connection(int fd) {
  struct connection *connection = calloc(1, sizeof *connection);
  if (!connection) abort();
  connection->fd = fd;
  connection->child_in = connection->child_out = connection->child_err = connection->peer = -1;
  connection->in.limit = MAX_SPEC + FRAME_HEADER;
  connection->out.limit = OUT_HIGH;
  connection->to_child.limit = 2 * MAX_PAYLOAD;
  connection->next = cell.connections;
  cell.connections = connection;
  return connection;
}

static void close_child(struct connection *c, int *fd) {
  if (*fd >= 0 && !(c->terminal && fd == &c->child_in)) close(*fd);
  if (c->terminal && fd == &c->child_out) c->child_in = -1;
  *fd = -1;
}

static void drop(struct connection *c) {
  if (c->stage == RUNS_PROCESS && !c->exited && c->pid > 0) kill(-c->pid, SIGKILL);
  close_child(c, &c->child_in);
  close_child(c, &c->child_out);
  close_child(c, &c->child_err);
  if (c->peer >= 0) close(c->peer);
  if (c->fd >= 0) close(c->fd);
  buffer_free(&c->in), buffer_free(&c->out), buffer_free(&c->to_child);
  for (struct connection **at = &cell.connections; *at; at = &(*at)->next)
    if (*at == c) {
      *at = c->next;
      break;
    }
  free(c);
}

static void begin_ending(void) {
  cell.ending = true;
  kill_everything();
}

static void start(struct connection *c, char *payload, size_t size, bool is_main) {
  struct spec spec;
  const char *what;
  if (!parse_spec(payload, size, &spec)) {
    send_error(c, "Invalid", "malformed process description");
    return;
  }
  if (is_main) {
    cell.main = c;
    cell.directory = strdup(spec.directory);
    cell.address = strdup(spec.address);
    cell.environment = merge_environment(NULL, spec.environment);
    for (char **at = cell.environment; *at; at++) *at = strdup(*at);
  }
  char **environment = is_main ? cell.environment : merge_environment(cell.environment, spec.environment);
  const char *directory = spec.directory[0] ? spec.directory : cell.directory ? cell.directory : "/";
  int problem = start_process(c, &spec, environment, directory, &what);
  if (problem) {
    send_error(c, problem == ENOENT ? "NotFound" : problem == EACCES ? "NotExecutable" : "StartFailed", "%s \"%s\": %s",
               what, what[1] == 'n' ? directory : spec.arguments[0], strerror(problem));
    if (is_main) begin_ending();
  } else {
    uint32_t pid = (uint32_t)c->pid;
    send_frame(c, FRAME_STARTED, &pid, sizeof pid);
  }
  if (!is_main) free(environment);
  free(spec.environment);
  free(spec.arguments);
}

static void resize(struct connection *c, const unsigned char *payload, size_t size) {
  if (!c->terminal || c->child_out < 0 || size != 4) return;
  struct winsize window = {.ws_col = (unsigned short)(payload[0] | payload[1] << 8),
                           .ws_row = (unsigned short)(payload[2] | payload[3] << 8)};
  ioctl(c->child_out, TIOCSWINSZ, &window);
}

static void request(struct connection *c, int type, char *payload, size_t size) {
  char text[128];
  switch (type) {
    case FRAME_MAIN:
      if (c->is_control && !cell.main) start(c, payload, size, true);
      else send_error(c, "Forbidden", "only the control connection starts the main process");
      return;
    case FRAME_EXEC: start(c, payload, size, false); return;
    case FRAME_DIAL:
      if (size) dial_begin(&cell, c, payload, size);
      else send_error(c, "Invalid", "empty dial");
      return;
    case FRAME_SIGNAL: {
      snprintf(text, sizeof text, "%.*s", (int)(size < 8 ? size : 8), payload);
      int number = atoi(text);
      if (!cell.main || cell.main->pid <= 0 || cell.main->exited) send_error(c, "NotRunning", "the main process has ended");
      else if (number < 1 || number >= NSIG || kill(cell.main->pid, number)) send_error(c, "Invalid", "signal %d", number);
      else send_frame(c, FRAME_DONE, NULL, 0), c->stage = SAYS_GOODBYE;
      return;
    }
    case FRAME_KILL:
      begin_ending();
      send_frame(c, FRAME_DONE, NULL, 0);
      c->stage = SAYS_GOODBYE;
      return;
    case FRAME_STAT: {
      int count = 0;
      for (struct connection *each = cell.connections; each; each = each->next) count++;
      int used = snprintf(text, sizeof text, "pid=%d exited=%d connections=%d", cell.main ? (int)cell.main->pid : 0,
                          cell.main && cell.main->exited, count);
      send_frame(c, FRAME_STATE, text, (size_t)used);
      c->stage = SAYS_GOODBYE;
      return;
    }
    default: send_error(c, "Invalid", "frame 0x%02x cannot start a connection", type);
  }
}

/* Consumes whole frames; leaves one that the process cannot take yet, which stops reading from this client. */
static void read_frames(struct connection *c) {
  while ((c->stage == AWAITS_REQUEST || c->stage == RUNS_PROCESS) && buffer_used(&c->in) >= FRAME_HEADER) {
    unsigned char *at = (unsigned char *)c->in.data + c->in.start;
    size_t size = (size_t)at[1] | (size_t)at[2] << 8 | (size_t)at[3] << 16 | (size_t)at[4] << 24;
    if (size > (c->stage == AWAITS_REQUEST ? MAX_SPEC : MAX_PAYLOAD)) {
      send_error(c, "Invalid", "frame of %zu bytes", size);
      return;
    }
    if (buffer_used(&c->in) < FRAME_HEADER + size) return;
    char *payload = (char *)at + FRAME_HEADER;
    int type = at[0];
    if (c->stage == AWAITS_REQUEST) {
      request(c, type, payload, size);
    } else if (type == FRAME_STDIN && c->child_in >= 0 && !c->stdin_ended) {
      if (buffer_room(&c->to_child) < size) return;
      buffer_add(&c->to_child, payload, size);
    } else if (type == FRAME_EOF) {
      if (c->terminal && !c->stdin_ended) buffer_add(&c->to_child, "\004", 1);
      c->stdin_ended = true;
    } else if (type == FRAME_RESIZE) {
      resize(c, (unsigned char *)payload, size);
    } else if (type == FRAME_SIGNAL && c->pid > 0 && !c->exited) {
      kill(c->pid, atoi(payload));
    } else if (type == FRAME_KILL && c->is_control) {
      begin_ending();
    }
    buffer_take(&c->in, FRAME_HEADER + size);
  }
}

/* 1: got bytes, 0: nothing now, -1: finished. */
static int read_output(struct connection *c, int *fd, int type) {
  if (*fd < 0) return -1;
  if (buffer_used(&c->out) >= OUT_HIGH) return 1;
  char *space = buffer_space(&c->out, FRAME_HEADER + READ_SIZE);
  ssize_t got = read(*fd, space + FRAME_HEADER, READ_SIZE);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (got <= 0) {
    close_child(c, fd);
    return -1;
  }
  char header[FRAME_HEADER] = {(char)type, (char)got, (char)(got >> 8), (char)(got >> 16), (char)(got >> 24)};
  memcpy(space, header, sizeof header);
  c->out.end += FRAME_HEADER + (size_t)got;
  return 1;
}

static void feed_child(struct connection *c) {
  if (c->child_in >= 0 && buffer_drain(&c->to_child, c->child_in) < 0) {
    buffer_free(&c->to_child);
    c->to_child.limit = 2 * MAX_PAYLOAD;
    close_child(c, &c->child_in);
  }
  if (c->stdin_ended && !buffer_used(&c->to_child) && !c->terminal) close_child(c, &c->child_in);
}

static void send_exit(struct connection *c);

/* A terminal's last bytes may still be on their way through the kernel when its process is gone, so it gets a moment
 * unless every process has closed it; pipes hold theirs already. The main process's output ends when the cell is empty. */
static void report_exit(struct connection *c) {
  if (!c->exited || c->exit_sent) return;
  int out, err;
  while ((out = read_output(c, &c->child_out, FRAME_STDOUT)) > 0 && buffer_used(&c->out) < OUT_HIGH) continue;
  while ((err = read_output(c, &c->child_err, FRAME_STDERR)) > 0 && buffer_used(&c->out) < OUT_HIGH) continue;
  if (out > 0 || err > 0) return;
  bool waits = c->terminal || c == cell.main;
  if ((out == 0 || err == 0) && waits && now_ms() < c->drain_until_ms) return;
  send_exit(c);
}

static void send_exit(struct connection *c) {
  int32_t code = WIFEXITED(c->status) ? WEXITSTATUS(c->status) : 128 + WTERMSIG(c->status);
  int32_t numbers[2] = {code, WIFSIGNALED(c->status) ? WTERMSIG(c->status) : 0};
  send_frame(c, FRAME_EXIT, numbers, sizeof numbers);
  c->exit_sent = true;
  c->stage = SAYS_GOODBYE;
}

static void reap(void) {
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (struct connection *c = cell.connections; c; c = c->next) {
      if (c->pid != pid || c->exited) continue;
      c->exited = true;
      c->status = status;
      c->drain_until_ms = now_ms() + (c == cell.main ? LAST_WORDS_MS / 2 : TAIL_MS);
      if (c == cell.main) begin_ending();
    }
  }
  if (cell.ending) kill_everything();
}

static void carry(struct connection *c, short peer_events) {
  if (!c->peer_ended && (peer_events & (POLLIN | POLLHUP | POLLERR)) && buffer_used(&c->out) < OUT_HIGH)
    if (buffer_fill(&c->out, c->peer, READ_SIZE) < 0) c->peer_ended = true;
  if (buffer_used(&c->in) && buffer_drain(&c->in, c->peer) < 0) {
    buffer_take(&c->in, buffer_used(&c->in));
    c->client_ended = true;
  }
  if (c->client_ended && !buffer_used(&c->in)) shutdown(c->peer, SHUT_WR);
}

static void read_client(struct connection *c, short events) {
  bool raw = c->stage == CARRIES_BYTES || c->stage == CONNECTS;
  size_t room = raw ? (buffer_used(&c->in) < MAX_PAYLOAD ? MAX_PAYLOAD : 0) : buffer_room(&c->in);
  if ((events & POLLIN) && room && !c->client_ended) {
    if (buffer_fill(&c->in, c->fd, room < READ_SIZE * 2 ? room : READ_SIZE * 2) < 0) {
      if (raw) c->client_ended = true;
      else c->hung_up = true;
    }
  } else if (events & (POLLHUP | POLLERR)) {
    c->hung_up = true;
  }
}

/* The client may be writing at this moment: a connection closed on it would cost it the words it has not read yet. So
 * only our direction ends here; the rest goes when the client closes, or after a while. */
static void say_goodbye(struct connection *c) {
  if (!c->goodbye_until_ms) {
    c->goodbye_until_ms = now_ms() + GOODBYE_MS;
    shutdown(c->fd, SHUT_WR);
  }
  buffer_take(&c->in, buffer_used(&c->in));
  if (now_ms() >= c->goodbye_until_ms) c->hung_up = true;
}

static void step(struct connection *c, short client, short peer) {
  if (client) read_client(c, client);
  read_frames(c);
  if (c->stage == CONNECTS && peer) dial_connected(&cell, c);
  if (c->stage == CARRIES_BYTES) carry(c, peer);
  if (c->stage == RUNS_PROCESS) {
    feed_child(c);
    read_frames(c);
    if (!c->exited) {
      read_output(c, &c->child_out, FRAME_STDOUT);
      read_output(c, &c->child_err, FRAME_STDERR);
    }
    report_exit(c);
  }
  if (buffer_used(&c->out) && buffer_drain(&c->out, c->fd) < 0) c->hung_up = true;
  bool flushed = !buffer_used(&c->out);
  if (c->stage == CARRIES_BYTES && c->peer_ended && flushed) {
    shutdown(c->fd, SHUT_WR);
    if (c->client_ended && !buffer_used(&c->in)) c->hung_up = true;
  }
  if (c->stage == SAYS_GOODBYE && flushed && !c->is_control) say_goodbye(c);
}

struct polled {
  struct pollfd *list;
  nfds_t count, capacity;
};

static void watch(struct polled *polled, int fd, short events) {
  if (polled->count == polled->capacity) {
    polled->capacity = polled->capacity ? polled->capacity * 2 : 32;
    polled->list = realloc(polled->list, polled->capacity * sizeof *polled->list);
    if (!polled->list) abort();
  }
  polled->list[polled->count++] = (struct pollfd){.fd = fd, .events = events};
}

/* Five entries per connection, in the order the loop reads them back; a descriptor of -1 is skipped by poll. */
enum { PER_CONNECTION = 5 };

static void watch_connection(struct polled *polled, const struct connection *c) {
  bool has_room = buffer_used(&c->out) < OUT_HIGH, raw = c->stage == CARRIES_BYTES || c->stage == CONNECTS;
  bool reads = c->stage == AWAITS_REQUEST || (c->stage == SAYS_GOODBYE && !c->is_control) ||
               (c->stage == RUNS_PROCESS && buffer_used(&c->in) < 2 * MAX_PAYLOAD) ||
               (raw && !c->client_ended && buffer_used(&c->in) < MAX_PAYLOAD);
  short client = (short)((reads ? POLLIN : 0) | (buffer_used(&c->out) ? POLLOUT : 0));
  bool client_done = raw && c->client_ended && !client;
  watch(polled, client_done ? -1 : c->fd, client);
  bool runs = c->stage == RUNS_PROCESS;
  watch(polled, runs && has_room ? c->child_out : -1, POLLIN);
  watch(polled, runs && has_room ? c->child_err : -1, POLLIN);
  watch(polled, runs && buffer_used(&c->to_child) ? c->child_in : -1, POLLOUT);
  short peer = 0;
  if (c->stage == CONNECTS) peer = POLLOUT;
  if (c->stage == CARRIES_BYTES)
    peer = (short)((!c->peer_ended && has_room ? POLLIN : 0) | (buffer_used(&c->in) ? POLLOUT : 0));
  watch(polled, peer ? c->peer : -1, peer);
}

static int poll_timeout(int64_t ended_at) {
  int64_t nearest = INT64_MAX, now = now_ms();
  if (cell.ending) nearest = ended_at + (now < ended_at + LAST_WORDS_MS ? LAST_WORDS_MS : CONTROL_WORDS_MS);
  for (struct connection *c = cell.connections; c; c = c->next)
    if (c->exited && !c->exit_sent && buffer_used(&c->out) < OUT_HIGH && c->drain_until_ms < nearest)
      nearest = c->drain_until_ms;
  for (struct connection *c = cell.connections; c; c = c->next)
    if (c->goodbye_until_ms && c->goodbye_until_ms < nearest) nearest = c->goodbye_until_ms;
  if (nearest == INT64_MAX) return -1;
  return nearest <= now ? 0 : (int)(nearest - now);
}

static bool has_words_for(const struct connection *c) {
  return buffer_used(&c->out) || (c->stage == RUNS_PROCESS && !c->exit_sent);
}

/* When the cell may go: no message to the clients is pending, or they had LAST_WORDS_MS to take it. The cradle
 * gets longer. It always reads, but on a busy machine it may be without a turn for seconds, and its log must not miss
 * what the container said last. */
static bool may_leave(int64_t ending_ms) {
  if (cell.main && has_words_for(cell.main)) return ending_ms >= CONTROL_WORDS_MS;
  for (struct connection *c = cell.connections; c; c = c->next)
    if (has_words_for(c)) return ending_ms >= LAST_WORDS_MS;
  return true;
}

/* Whatever happens to the others, the cradle hears how the main process ended. */
static void say_how_main_ended(void) {
  struct connection *c = cell.main;
  if (!c) return;
  if (c->exited && !c->exit_sent) send_exit(c);
  struct timeval patience = {.tv_sec = 5};
  fcntl(c->fd, F_SETFL, fcntl(c->fd, F_GETFL) & ~O_NONBLOCK);
  setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  buffer_drain(&c->out, c->fd);
}

static void accept_all(int listener) {
  for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) add_connection(fd);
}

static void protect(int listener, int control) {
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (getpid() != 1) prctl(PR_SET_NAME, "corral-cell", 0, 0, 0);
  int low = listener < control ? listener : control, high = listener < control ? control : listener;
  if (low > 3) syscall(SYS_close_range, 3U, (unsigned)low - 1, 0);
  if (high > low + 1) syscall(SYS_close_range, (unsigned)low + 1, (unsigned)high - 1, 0);
  syscall(SYS_close_range, (unsigned)high + 1, ~0U, 0);
  for (int fd = low; fd <= high; fd += high - low > 0 ? high - low : 1) {
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
  for (int number = 1; number < NSIG; number++)
    if (number != SIGCHLD) signal(number, SIG_IGN);
}

/* Whether the path is the file with this device and inode, written "device:inode". */
static bool is_still(const char *identity, const char *path) {
  struct stat found;
  char text[64];
  if (stat(path, &found)) return false;
  snprintf(text, sizeof text, "%llu:%llu", (unsigned long long)found.st_dev, (unsigned long long)found.st_ino);
  return !strcmp(text, identity);
}

/* supervise LISTEN_FD CONTROL_FD [DEVICE:INODE PATH]...: with pairs, nothing starts unless each path is that file. A
 * pod can exchange what lies in its volumes for a link between the platform's look at it and the mount. */
int supervise_main(int argc, char **argv) {
  if (argc < 2 || argc % 2) return 64;
  for (int i = 2; i < argc; i += 2)
    if (!is_still(argv[i], argv[i + 1])) {
      fprintf(stderr, "supervise: %s was exchanged while it was mounted\n", argv[i + 1]);
      return 69;
    }
  int listener = atoi(argv[0]), control = atoi(argv[1]);
  protect(listener, control);
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, NULL);
  int deaths = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
  if (deaths < 0) return 71;
  struct connection *master = add_connection(control);
  master->is_control = true;

  struct polled polled = {0};
  for (int64_t ended_at = 0;;) {
    if (cell.ending && !ended_at) ended_at = now_ms();
    if (cell.ending && may_leave(now_ms() - ended_at)) break;
    polled.count = 0;
    int open = 0;
    for (struct connection *c = cell.connections; c; c = c->next) open++;
    watch(&polled, deaths, POLLIN);
    watch(&polled, open < MAX_CONNECTIONS ? listener : -1, POLLIN);
    for (struct connection *c = cell.connections; c; c = c->next) watch_connection(&polled, c);
    if (poll(polled.list, polled.count, poll_timeout(ended_at)) < 0 && errno != EINTR) return 71;

    struct signalfd_siginfo info;
    while (read(deaths, &info, sizeof info) > 0) continue;
    reap();
    nfds_t at = 2;
    for (struct connection *c = cell.connections, *next; c; c = next, at += PER_CONNECTION) {
      next = c->next;
      step(c, polled.list[at].revents, polled.list[at + 4].revents);
      if (!c->hung_up) continue;
      if (c->is_control) {
        kill_everything();
        return 70;
      }
      drop(c);
    }
    if (polled.list[1].revents & POLLIN) accept_all(listener);
  }
  kill_everything();
  reap();
  say_how_main_ended();
  return 0;
}
