/**
 * Reads a process's parent and when it began into `parent` and `start`; fails where it has ended. The name of a process may
 * hold anything, line ends and brackets included: what counts begins behind the last bracket.
 */
const lookScript = `look() {
  text=; line=
  [ -r "/proc/$1/stat" ] || return 1
  while read -r line || [ -n "$line" ]; do text="$text $line"; line=; done 2> /dev/null < "/proc/$1/stat"
  [ -n "$text" ] || return 1
  set -- "$1" \${text##*) }
  state=$2; parent=$3; shift 3; start=\${18}
}
`

/** Prints every process there is, each as number and time of its start. */
export const listProcessesScript: string = `${lookScript}
for entry in /proc/[0-9]*; do
  pid=\${entry#/proc/}
  if look "$pid"; then echo "$pid:$start"; fi
done
`

/**
 * In: CORRAL_KEPT, what `listProcessesScript` printed before set-up. Ends what set-up has left running, whatever it made of its
 * environment, its name and its parent: it was given secrets, and the agent, who is the same user, could read them there. What
 * ran before goes on, and so does what that has started since: services have workers. Repeated until nothing is left; fails
 * where something starts processes faster than they are ended.
 *
 * Everything set-up starts lies below the daemon, or below what takes over from a parent that has ended: the daemon's own
 * parent, or with the Node supervisor the shell above that. Without a pid namespace of its own (isolation `process`) other
 * programs of the user are seen too; they lie elsewhere.
 */
export const endSetupScript: string = `${lookScript}
look "$PPID" || exit 4
daemon=$parent
look "$daemon" || exit 4
root=$parent
if [ "$root" -gt 1 ] && look "$root" && [ "$parent" = 1 ] && tr '\\0' '\\n' < /proc/1/cmdline | grep -qx corral-first; then root=1; fi
is_left() {
  each=$1
  while look "$each"; do
    case " $CORRAL_KEPT " in *" $each:$start "*) return 1;; esac
    # This script, and the pipes of its output.
    if [ "$each" = $$ ] || [ "$each" = "$PPID" ]; then return 1; fi
    if [ "$parent" = "$daemon" ] || [ "$parent" = "$root" ]; then return 0; fi
    each=$parent
  done
  return 1
}
# The first thread of a process may have ended while others go on.
is_dead() {
  [ "$state" = Z ] || return 1
  set -- "/proc/$1/task/"*
  [ $# -le 1 ]
}
round=0
while [ $round -lt 200 ]; do
  found=; round=$((round + 1))
  for entry in /proc/[0-9]*; do
    pid=\${entry#/proc/}
    if ! is_left "$pid" || ! look "$pid" || is_dead "$pid"; then continue; fi
    found=$pid
    kill -9 "$pid" 2> /dev/null
  done
  [ -n "$found" ] || exit 0
done
echo 'what set-up has left running starts processes faster than they can be ended' >&2
exit 3
`
