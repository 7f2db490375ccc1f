/*
 * The wire between a cell's supervisor and its clients: the platform, which dials its socket, and the holder of its control connection
 * (the cradle). Every message is a frame: one byte of type, a length as 32-bit little endian, the payload.
 *
 *   to the supervisor                                        from the supervisor
 *   0x01 MAIN    spec, once, on the control connection       0x21 STDOUT  bytes
 *   0x02 EXEC    spec                                        0x22 STDERR  bytes
 *   0x03 DIAL    port NUL [host] NUL                         0x23 EXIT    i32 exit code, i32 signal or 0, message
 *   0x04 SIGNAL  number in decimal, to the main process      0x24 STARTED u32 pid; after DIAL: raw bytes follow
 *   0x05 STAT    -                                           0x25 ERROR   code, space, message; the connection ends
 *   0x06 KILL    - everything in the cell                    0x26 STATE   text answer to STAT
 *   0x10 STDIN   bytes                                       0x27 DONE    SIGNAL was delivered
 *   0x11 EOF     - stdin is half-closed
 *   0x12 RESIZE  u16 columns, u16 rows
 *
 * A spec is a list of NUL-terminated strings: flags (t = terminal, i = stdin stays open), working directory ("" = the
 * main process's), pod address (MAIN only, else ""), number of environment entries, those entries, the arguments.
 * EXEC inherits the main process's environment; its own entries win.
 *
 * One request per connection. Hanging up kills the process group the connection started; hanging up the control
 * connection ends the cell. Payloads to the supervisor are at most 64 KiB, specs at most 1 MiB.
 */
#ifndef CORRAL_PROTOCOL_H
#define CORRAL_PROTOCOL_H

enum frame_type {
  FRAME_MAIN = 0x01,
  FRAME_EXEC = 0x02,
  FRAME_DIAL = 0x03,
  FRAME_SIGNAL = 0x04,
  FRAME_STAT = 0x05,
  FRAME_KILL = 0x06,
  FRAME_STDIN = 0x10,
  FRAME_EOF = 0x11,
  FRAME_RESIZE = 0x12,
  FRAME_STDOUT = 0x21,
  FRAME_STDERR = 0x22,
  FRAME_EXIT = 0x23,
  FRAME_STARTED = 0x24,
  FRAME_ERROR = 0x25,
  FRAME_STATE = 0x26,
  FRAME_DONE = 0x27,
};

enum {
  FRAME_HEADER = 5,
  MAX_PAYLOAD = 64 * 1024,
  MAX_SPEC = 1024 * 1024,
};

int launch_main(int argc, char **argv);
int netns_main(int argc, char **argv);
int attach_main(int argc, char **argv);
int seal_main(int argc, char **argv);
int attempt_main(int argc, char **argv);
int supervise_main(int argc, char **argv);
int spawn_main(int argc, char **argv);

#endif
