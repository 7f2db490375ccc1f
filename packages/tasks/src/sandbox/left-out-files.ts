/**
 * How files that cannot be part of a result come out of the sandbox all the same: those that nobody may read, those with a name
 * that git refuses. Part of `collectScript`, which has `nested_name` and what it says of its environment.
 */
export const leftOutFiles: string = `# The directory it is below, where that is not REPO, the path from there of what follows, a name; no line breaks.
note_left_out() { printf '%s\\t%s\\t%s\\n' "\${INNER_NAME:+$INNER_TOP}" "$1" "$2" >> "$WORK/left-out"; }
# The sandbox goes, and with it what it alone has: that is packed, with the permissions that reading it takes. Beside a working
# agent nothing of its is touched. Out: WORK/left-out.tar, LEFT_OUT (yes, no, or lost where there is no room for it).
pack_left_out() {
  LEFT_OUT=no
  if [ -n "\${LAST_STATE:-}" ] || [ ! -s "$WORK/left-out" ]; then return 0; fi
  if [ -n "$ROOM" ]; then LEFT_OUT=lost; return 0; fi
  sort -u "$WORK/left-out" | while IFS= read -r line; do
    top=\${line%%"$tab"*} line=\${line#*"$tab"}
    below=\${line%%"$tab"*}
    unquoted "\${line#*"$tab"}"
    nested_name "$below$REAL" "\${top:-$REPO}"
    place=\${top:-$REPO}/$REAL
    # Longer than a path may be: only its beginning is known.
    if [ ! -e "$place" ] && [ ! -L "$place" ]; then
      case "$REAL" in *...) REAL=\${REAL%...} && REAL=\${REAL%%/*} && place=\${top:-$REPO}/$REAL ;; *) continue ;; esac
    fi
    if [ ! -L "$place" ]; then chmod -R u+rwX -- "$place" 2> /dev/null; fi
    printf '%s\\0' "\${top:-.}/$REAL"
  done > "$WORK/left-out.names"
  if [ ! -s "$WORK/left-out.names" ]; then return 0; fi
  LEFT_OUT=lost
  tar -C "$REPO" --ignore-failed-read --null -T "$WORK/left-out.names" -cf "$WORK/left-out.tar" 2> /dev/null
  if [ -s "$WORK/left-out.tar" ]; then LEFT_OUT=yes; fi
}
# A name as git quotes it where it has bytes of other kinds. Out: REAL.
unquoted() {
  REAL=$1
  case "$1" in \\"*\\") ;; *) return 0 ;; esac
  REAL=$(printf '%s' "$1" | sed 's/^"//; s/"$//; s/%/%%/g; s/\\\\"/"/g') && REAL=$(printf "$REAL.") && REAL=\${REAL%.}
}
`
