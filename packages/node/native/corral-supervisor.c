/* One small program with three jobs: start a cell, prepare a pod's network, and be pid 1 inside a cell. */
#include <stdio.h>
#include <string.h>

#include "protocol.h"

int main(int argc, char **argv) {
  if (argc >= 2 && !strcmp(argv[1], "launch")) return launch_main(argc - 2, argv + 2);
  if (argc >= 2 && !strcmp(argv[1], "netns")) return netns_main(argc - 2, argv + 2);
  if (argc >= 2 && !strcmp(argv[1], "supervise")) return supervise_main(argc - 2, argv + 2);
  if (argc >= 2 && !strcmp(argv[1], "--version")) return puts("corral-supervisor 1") < 0;
  fprintf(stderr, "usage: corral-supervisor launch | netns | supervise LISTEN_FD CONTROL_FD\n");
  return 64;
}
