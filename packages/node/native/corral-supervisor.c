/* One small program for everything close to the kernel: starting a cell, a pod's network, its snapshots, pid 1 of a cell, probing it, and starting commands for the daemon in it. */
#include <stdio.h>
#include <string.h>

#include "protocol.h"

int main(int argc, char **argv) {
  if (argc >= 2 && !strcmp(argv[1], "launch")) return launch_main(argc - 2, argv + 2);
  if (argc >= 2 && !strcmp(argv[1], "netns")) return netns_main(argc - 2, argv + 2);
  if (argc >= 2 && !strcmp(argv[1], "supervise")) return supervise_main(argc - 2, argv + 2);
  if (argc >= 2 && !strcmp(argv[1], "attach")) return attach_main(argc - 2, argv + 2);
  if (argc >= 2 && !strcmp(argv[1], "seal")) return seal_main(argc - 2, argv + 2);
  if (argc >= 2 && !strcmp(argv[1], "attempt")) return attempt_main(argc - 2, argv + 2);
  if (argc >= 2 && !strcmp(argv[1], "spawn")) return spawn_main(argc - 2, argv + 2);
  if (argc >= 2 && !strcmp(argv[1], "--version")) return puts("corral-supervisor 1") < 0;
  fprintf(stderr, "usage: corral-supervisor launch | netns OPTIONS | supervise LISTEN_FD CONTROL_FD [DEVICE:INODE PATH]... | attach ... | seal ... | attempt WHAT | spawn LANES\n");
  return 64;
}
