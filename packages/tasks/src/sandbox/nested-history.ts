/**
 * What a repository inside the work tree has beside the files that were taken from it: its branches, tags and stashes. Part of
 * `collectScript`, which has `ours`, `keep`, `is_published`, `is_readable` and what it says of its environment.
 */
export const nestedHistory: string = `# What others can fetch is left out, and what cannot be read whole, such as a part of a history. With little room the files
# come first.
keep_nested_history() { # directory, path from the top
  if [ -n "$ROOM" ] || [ ! -e "$1/.git" ]; then return 0; fi
  (
    INNER_GIT=$(cd -- "$1" && git rev-parse --absolute-git-dir 2>/dev/null) && [ "$INNER_GIT" != "$GITDIR" ] || exit 0
    objects=$(cd -- "$1" && cd -- "$(git rev-parse --git-path objects)" && pwd) || exit 0
    # A repository of other hashes cannot be read from ours.
    format=$(git --git-dir="$INNER_GIT" rev-parse --show-object-format 2>/dev/null)
    case "\${#BASE_COMMIT} $format" in '40 sha1' | '64 sha256') ;; *) exit 0 ;; esac
    printf '%s\\n' "$objects" >> "$G/objects/info/alternates"
    name=nested/$(printf '%s' "$2" | LC_ALL=C tr -c 'A-Za-z0-9/@_-' _)
    nested_refs | head -n 50 | while IFS= read -r line; do
      oid=\${line%% *} ref=\${line#* }
      printf '%s %s\\n' "$oid" "$ref" >> "$WORK/states"
      if is_published "$oid" || ! is_readable "$oid"; then continue; fi
      if [ -z "$(ours rev-list --max-count=1 "$oid" --not "$BASE_COMMIT" \${TIP:+"$TIP"} 2>/dev/null)" ]; then continue; fi
      keep "$name+$ref" "$oid"
    done
  )
}
nested_refs() {
  {
    if ! git --git-dir="$INNER_GIT" symbolic-ref --quiet HEAD > /dev/null; then
      git --git-dir="$INNER_GIT" rev-parse --verify --quiet 'HEAD^{commit}' | sed 's/$/ head/'
    fi
    git --git-dir="$INNER_GIT" for-each-ref --format='%(objectname) branches/%(refname:lstrip=2)' refs/heads
    git --git-dir="$INNER_GIT" for-each-ref --format='%(objectname) tags/%(refname:lstrip=2)' refs/tags
    git --git-dir="$INNER_GIT" reflog show --format=%H refs/stash -- | awk '{ print $1, "stash/" NR - 1 }'
  } 2>/dev/null
}
`
