/* What the parts of the supervisor share: a connection, its process, its bounded buffers. */
#ifndef CORRAL_CELL_H
#define CORRAL_CELL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol.h"

/* Bytes waiting to move on. `limit` bounds it; a full buffer stops its source, never its neighbours. */
struct buffer {
  char *data;
  size_t start, end, capacity, limit;
};

size_t buffer_used(const struct buffer *buffer);
size_t buffer_room(const struct buffer *buffer);
char *buffer_space(struct buffer *buffer, size_t size);
void buffer_add(struct buffer *buffer, const void *bytes, size_t size);
void buffer_take(struct buffer *buffer, size_t size);
void buffer_free(struct buffer *buffer);
/* Moves what it can; -1 when the descriptor is finished with, 0 otherwise. */
int buffer_fill(struct buffer *buffer, int fd, size_t at_most);
int buffer_drain(struct buffer *buffer, int fd);

enum stage { AWAITS_REQUEST, RUNS_PROCESS, CONNECTS, CARRIES_BYTES, SAYS_GOODBYE };

struct connection {
  int fd;
  enum stage stage;
  bool is_control, hung_up;
  struct buffer in, out;
  /* RUNS_PROCESS */
  pid_t pid;
  int child_in, child_out, child_err;
  bool terminal, exited, exit_sent;
  int status;
  int64_t drain_until_ms, goodbye_until_ms;
  struct buffer to_child;
  bool stdin_ended;
  /* CONNECTS, CARRIES_BYTES */
  int peer;
  unsigned short port;
  int candidate;
  char host[64];
  bool client_ended, peer_ended;
  struct connection *next;
};

struct spec {
  bool terminal, keeps_stdin;
  const char *directory, *address;
  char **environment, **arguments;
};

/* What the main process was started with: the default for everything exec'd later. */
struct cell {
  struct connection *connections;
  struct connection *main;
  char *directory, *address;
  char **environment;
  bool ending;
};

bool parse_spec(char *payload, size_t size, struct spec *spec);
char **merge_environment(char **base, char **own);
/* 0, or the error number of what failed; `what` then names the step. */
int start_process(struct connection *connection, const struct spec *spec, char **environment, const char *directory,
                  const char **what);
void kill_everything(void);
int64_t now_ms(void);

void send_frame(struct connection *connection, int type, const void *payload, size_t size);
void send_error(struct connection *connection, const char *code, const char *format, ...);

bool dial_begin(struct cell *cell, struct connection *connection, const char *payload, size_t size);
bool dial_next(struct cell *cell, struct connection *connection);
void dial_connected(struct cell *cell, struct connection *connection);

#endif
