/* Connecting to a port inside the pod on behalf of a connection from outside. */
#include "cell.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Where a server may listen: IPv4 loopback, IPv6 loopback (some bind only that for "localhost"), the pod's address. */
static const char *candidate(const struct cell *cell, const struct connection *connection, int index) {
  if (connection->host[0]) return index == 0 ? connection->host : NULL;
  switch (index) {
    case 0: return "127.0.0.1";
    case 1: return "::1";
    case 2: return cell->address && cell->address[0] ? cell->address : NULL;
    default: return NULL;
  }
}

static int connect_to(const char *host, unsigned short port) {
  struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
  struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
  bool is_v6 = strchr(host, ':') != NULL;
  if (!strcmp(host, "localhost")) host = "127.0.0.1";
  if (is_v6 ? inet_pton(AF_INET6, host, &v6.sin6_addr) != 1 : inet_pton(AF_INET, host, &v4.sin_addr) != 1) {
    errno = EINVAL;
    return -1;
  }
  int fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  /* Without it the second of two small writes waits for the acknowledgement of the first, which the kernel holds back for
     40 ms: a request whose head and body come apart. */
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const struct sockaddr *address = is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
  if (!connect(fd, address, is_v6 ? sizeof v6 : sizeof v4) || errno == EINPROGRESS) return fd;
  int problem = errno;
  close(fd);
  errno = problem;
  return -1;
}

bool dial_next(struct cell *cell, struct connection *connection) {
  int problem = ECONNREFUSED;
  for (const char *host; (host = candidate(cell, connection, connection->candidate)); connection->candidate++) {
    connection->peer = connect_to(host, connection->port);
    if (connection->peer >= 0) {
      connection->stage = CONNECTS;
      return true;
    }
    problem = errno;
  }
  send_error(connection, problem == ECONNREFUSED ? "ConnectionRefused" : "DialFailed", "port %u: %s", connection->port,
             strerror(problem));
  return false;
}

bool dial_begin(struct cell *cell, struct connection *connection, const char *payload, size_t size) {
  const char *host = memchr(payload, 0, size);
  long port = host ? strtol(payload, NULL, 10) : 0;
  if (port < 1 || port > 65535 || payload[size - 1]) {
    send_error(connection, "Invalid", "dial needs a port between 1 and 65535");
    return false;
  }
  connection->port = (unsigned short)port;
  snprintf(connection->host, sizeof connection->host, "%s", host + 1);
  return dial_next(cell, connection);
}

void dial_connected(struct cell *cell, struct connection *connection) {
  int problem = 0;
  socklen_t size = sizeof problem;
  getsockopt(connection->peer, SOL_SOCKET, SO_ERROR, &problem, &size);
  if (!problem) {
    uint32_t none = 0;
    send_frame(connection, FRAME_STARTED, &none, sizeof none);
    connection->stage = CARRIES_BYTES;
    return;
  }
  close(connection->peer);
  connection->peer = -1;
  connection->candidate++;
  if (connection->host[0] || !candidate(cell, connection, connection->candidate)) {
    send_error(connection, problem == ECONNREFUSED ? "ConnectionRefused" : "DialFailed", "port %u: %s",
               connection->port, strerror(problem));
    return;
  }
  dial_next(cell, connection);
}
