/* Starting processes for connections, on pipes or on a terminal of their own. */
#include "cell.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

int64_t now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

bool parse_spec(char *payload, size_t size, struct spec *spec) {
  if (!size || payload[size - 1]) return false;
  size_t strings = 0;
  for (size_t i = 0; i < size; i++) strings += payload[i] == 0;
  char **list = calloc(strings + 2, sizeof *list);
  if (!list) abort();
  size_t filled = 0;
  for (char *at = payload; at < payload + size; at += strlen(at) + 1) list[filled++] = at;
  size_t variables = filled > 3 ? strtoul(list[3], NULL, 10) : 0;
  if (filled < 5 || variables > filled - 5) {
    free(list);
    return false;
  }
  spec->terminal = strchr(list[0], 't') != NULL;
  spec->keeps_stdin = strchr(list[0], 'i') != NULL;
  spec->directory = list[1];
  spec->address = list[2];
  spec->environment = calloc(variables + 1, sizeof(char *));
  spec->arguments = calloc(filled - 4 - variables + 1, sizeof(char *));
  if (!spec->environment || !spec->arguments) abort();
  memcpy(spec->environment, list + 4, variables * sizeof(char *));
  memcpy(spec->arguments, list + 4 + variables, (filled - 4 - variables) * sizeof(char *));
  free(list);
  return true;
}

char **merge_environment(char **base, char **own) {
  size_t count = 0;
  for (char **at = base; at && *at; at++) count++;
  for (char **at = own; at && *at; at++) count++;
  char **merged = calloc(count + 1, sizeof *merged);
  if (!merged) abort();
  size_t filled = 0;
  for (char **at = own; at && *at; at++) merged[filled++] = *at;
  for (char **at = base; at && *at; at++) {
    const char *equals = strchr(*at, '=');
    size_t name = equals ? (size_t)(equals - *at) + 1 : strlen(*at);
    bool replaced = false;
    for (char **mine = own; mine && *mine && !replaced; mine++) replaced = !strncmp(*mine, *at, name);
    if (!replaced) merged[filled++] = *at;
  }
  return merged;
}

/* A container's working directory comes into being with it, as it does elsewhere. */
static bool enter_directory(const char *path) {
  if (!path[0]) path = "/";
  if (!chdir(path)) return true;
  if (errno != ENOENT) return false;
  char *copy = strdup(path);
  for (char *at = copy + 1; *at; at++)
    if (*at == '/') {
      *at = 0;
      mkdir(copy, 0755);
      *at = '/';
    }
  mkdir(copy, 0755);
  free(copy);
  return !chdir(path);
}

static _Noreturn void run_child(const int stdio[3], bool terminal, const struct spec *spec, char **environment,
                                const char *directory, int report) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  setsid();
  if (terminal) ioctl(stdio[0], TIOCSCTTY, 0);
  for (int i = 0; i < 3; i++) dup2(stdio[i], i);
  char step = 'd';
  if (enter_directory(directory)) {
    step = 'x';
    environ = environment;
    execvpe(spec->arguments[0], spec->arguments, environment);
  }
  int problem = errno;
  if (write(report, &step, 1) == 1) (void)!write(report, &problem, sizeof problem);
  _exit(127);
}

static int open_terminal(int *master, int *slave) {
  *master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (*master < 0 || grantpt(*master) || unlockpt(*master)) return errno;
  char name[64];
  if (ptsname_r(*master, name, sizeof name)) return errno;
  *slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (*slave < 0) return errno;
  struct winsize size = {.ws_row = 24, .ws_col = 80};
  ioctl(*master, TIOCSWINSZ, &size);
  return 0;
}

static void close_pair(int pair[2]) {
  if (pair[0] >= 0) close(pair[0]);
  if (pair[1] >= 0 && pair[1] != pair[0]) close(pair[1]);
}

int start_process(struct connection *connection, const struct spec *spec, char **environment, const char *directory,
                  const char **what) {
  int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1}, report[2] = {-1, -1}, stdio[3];
  int problem = 0;
  *what = "prepare";
  if (pipe2(report, O_CLOEXEC)) return errno;
  if (spec->terminal) {
    problem = open_terminal(&out[0], &out[1]);
    stdio[0] = stdio[1] = stdio[2] = out[1];
  } else {
    if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)) problem = errno;
    if (spec->keeps_stdin ? pipe2(in, O_CLOEXEC) != 0 : (in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
      problem = errno;
    stdio[0] = in[0], stdio[1] = out[1], stdio[2] = err[1];
  }
  pid_t pid = problem ? -1 : fork();
  if (pid == 0) run_child(stdio, spec->terminal, spec, environment, directory, report[1]);
  if (pid < 0) {
    if (!problem) problem = errno, *what = "fork";
    close_pair(in), close_pair(out), close_pair(err), close_pair(report);
    return problem;
  }
  close(report[1]);
  char step = 0;
  /* End of file here means that exec succeeded: the descriptor closes with it. */
  if (read(report[0], &step, 1) == 1 && read(report[0], &problem, sizeof problem) < 0) problem = EIO;
  close(report[0]);
  *what = step == 'd' ? "enter working directory" : "execute";
  if (in[0] >= 0) close(in[0]);
  if (err[1] >= 0) close(err[1]);
  close(out[1]);
  if (problem) {
    if (in[1] >= 0) close(in[1]);
    if (err[0] >= 0) close(err[0]);
    close(out[0]);
    waitpid(pid, NULL, 0);
    return problem;
  }
  connection->pid = pid;
  connection->terminal = spec->terminal;
  connection->child_out = out[0];
  connection->child_err = err[0];
  connection->child_in = spec->terminal ? out[0] : in[1];
  fcntl(out[0], F_SETFL, O_NONBLOCK);
  if (err[0] >= 0) fcntl(err[0], F_SETFL, O_NONBLOCK);
  if (in[1] >= 0) fcntl(in[1], F_SETFL, O_NONBLOCK);
  connection->stage = RUNS_PROCESS;
  return 0;
}

/* As pid 1 of a namespace one call reaches every other process. Without a namespace orphans come back to us as children, so
 * the caller repeats this until there are none left. */
void kill_everything(void) {
  if (getpid() == 1) {
    kill(-1, SIGKILL);
    return;
  }
  char path[64], text[8192];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
  FILE *file = fopen(path, "re");
  size_t got = file ? fread(text, 1, sizeof text - 1, file) : 0;
  if (file) fclose(file);
  text[got] = 0;
  for (char *at = text, *end; *at; at = end) {
    long pid = strtol(at, &end, 10);
    if (end == at) break;
    if (pid > 1) kill((pid_t)pid, SIGKILL);
  }
}
