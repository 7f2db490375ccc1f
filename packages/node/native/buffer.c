/* Bounded byte buffers and the frames written into them. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cell.h"

size_t buffer_used(const struct buffer *buffer) { return buffer->end - buffer->start; }

size_t buffer_room(const struct buffer *buffer) {
  return buffer_used(buffer) < buffer->limit ? buffer->limit - buffer_used(buffer) : 0;
}

char *buffer_space(struct buffer *buffer, size_t size) {
  if (buffer->start && buffer->end + size > buffer->capacity) {
    memmove(buffer->data, buffer->data + buffer->start, buffer_used(buffer));
    buffer->end -= buffer->start;
    buffer->start = 0;
  }
  if (buffer->end + size > buffer->capacity) {
    size_t wanted = buffer->capacity ? buffer->capacity : 4096;
    while (wanted < buffer->end + size) wanted *= 2;
    buffer->data = realloc(buffer->data, wanted);
    if (!buffer->data) abort();
    buffer->capacity = wanted;
  }
  return buffer->data + buffer->end;
}

void buffer_add(struct buffer *buffer, const void *bytes, size_t size) {
  if (!size) return;
  memcpy(buffer_space(buffer, size), bytes, size);
  buffer->end += size;
}

void buffer_take(struct buffer *buffer, size_t size) {
  buffer->start += size;
  if (buffer->start == buffer->end) buffer->start = buffer->end = 0;
}

void buffer_free(struct buffer *buffer) {
  free(buffer->data);
  memset(buffer, 0, sizeof *buffer);
}

int buffer_fill(struct buffer *buffer, int fd, size_t at_most) {
  char *space = buffer_space(buffer, at_most);
  ssize_t got = read(fd, space, at_most);
  if (got > 0) buffer->end += (size_t)got;
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  return got > 0 ? 0 : -1;
}

int buffer_drain(struct buffer *buffer, int fd) {
  while (buffer_used(buffer)) {
    ssize_t put = write(fd, buffer->data + buffer->start, buffer_used(buffer));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno == EAGAIN ? 0 : -1;
    buffer_take(buffer, (size_t)put);
  }
  return 0;
}

void send_frame(struct connection *connection, int type, const void *payload, size_t size) {
  uint32_t length = (uint32_t)size;
  char header[FRAME_HEADER] = {(char)type, (char)length, (char)(length >> 8), (char)(length >> 16), (char)(length >> 24)};
  buffer_add(&connection->out, header, sizeof header);
  buffer_add(&connection->out, payload, size);
}

void send_error(struct connection *connection, const char *code, const char *format, ...) {
  char text[512];
  int used = snprintf(text, sizeof text, "%s ", code);
  va_list values;
  va_start(values, format);
  vsnprintf(text + used, sizeof text - (size_t)used, format, values);
  va_end(values);
  send_frame(connection, FRAME_ERROR, text, strlen(text));
  connection->stage = SAYS_GOODBYE;
}
