import { nestedHistory } from './nested-history.js'
import { quietGit } from './quiet-git.js'

/**
 * How the files of a work tree become an index: everything git can read of them, repositories and submodules inside it
 * among them. Part of `collectScript`, which has the functions that run git and what it says of its environment.
 *
 * Names are read as lines. A line break in a name stands as the byte 1 until `real_name` turns it back.
 */
export const collectFiles: string = `as_lines() { tr '\\n\\000' '\\001\\n'; }
real_names() { tr '\\n\\001' '\\000\\n'; }
real_name() {
  REAL=$1
  case "$1" in *"$soh"*) REAL=$(printf '%s.' "$1" | tr '\\001' '\\n') && REAL=\${REAL%.} ;; esac
}
# The same for a directory that is there: its name may have the byte 1 itself.
nested_name() { # name, the directory it is in
  real_name "$1"
  if [ ! -d "$2/$REAL" ] && [ -d "$2/$1" ]; then REAL=$1; fi
}

# Fills the index with the files below a directory. $1: the function that runs git there, $2: the directory.
add_files() {
  if ! fits "$1" "$2"; then add_within_room "$1" "$3"; return 0; fi
  broken_links "$2" "$3" > "$INDEX.broken"
  too_large "$1" "$3" > "$INDEX.large"
  add_but_broken "$1"
  if [ -s "$INDEX.errors" ] && grep -q '^fatal: unable to stat' "$INDEX.errors"; then
    # Names in a directory that may be listed but not entered.
    (cd -- "$2" && find . -name .git -prune -o -type d ! -perm -100 -print 2>/dev/null) | sed 's|^\\./||' >> "$INDEX.broken"
    add_but_broken "$1"
  fi
  left_out "$3" < "$INDEX.broken"
  while IFS= read -r path; do warn FileTooLarge "$3$path"; done < "$INDEX.large"
  if [ -s "$INDEX.errors" ]; then
    if grep -qE '^fatal:|No space left|quota exceeded' "$INDEX.errors"; then cat "$INDEX.errors" >&2; return 1; fi
    # git cuts its own line short where the path is longer than a path may be: the beginning has to do.
    sed -n -e "s/^warning: could not open directory '\\(.*\\)': .*/\\1/p" -e t \\
      -e "s/^warning: could not open directory '\\(.\\{1,200\\}\\).*/\\1.../p" "$INDEX.errors" | sort -u | left_out "$3"
    { "$1" ls-files --others --exclude-standard; "$1" diff-files --name-only; } 2>/dev/null | grep -v '/$' |
      grep -vxF -f "$INDEX.large" | sort -u | left_out "$3"
  fi
  plain_nested "$1" "$2" "$3"
}
# Whether what has changed below a directory finds room. Where the disk is full, or the sandbox has taken all it may, what does
# not fit would take everything else with it: the contents are written twice before they are out.
fits() {
  if [ -z "$ROOM" ]; then return 0; fi
  "$1" ls-files --others --modified --exclude-standard -z | as_lines > "$INDEX.changed"
  # Names with a line break cannot be told apart in what \`stat\` answers.
  { grep -v "$soh" "$INDEX.changed" | tr '\\n' '\\000' | (cd -- "$2" && xargs -0 stat -c '%F:%s %n' --) 2>/dev/null |
    sed -n -e 's/^symbolic link:/0:/' -e 's/^regular [a-z ]*file:/0:/' -e 's/^0://p' | sort -n |
    awk -v room="$ROOM" -v names="$ROOM_NAMES" '{ used += $1 + 4096; print (used > room || NR > names ? "no" : "yes") substr($0, length($1) + 1) }'
  } > "$INDEX.sizes"
  if ! grep -q '^no ' "$INDEX.sizes"; then return 0; fi
  grep "$soh" "$INDEX.changed" | sed 's/^/no /' >> "$INDEX.sizes"
  return 1
}
# The smallest files come first.
add_within_room() { # the function that runs git, the path of its directory from the top
  "$1" ls-files --deleted -z | "$1" update-index -z --remove --stdin
  sed -n 's/^yes //p' "$INDEX.sizes" | tr '\\n' '\\000' |
    (export GIT_LITERAL_PATHSPECS=1 && "$1" add --ignore-errors --pathspec-from-file=- --pathspec-file-nul) > /dev/null 2>&1
  sed -n 's/^no //p' "$INDEX.sizes" > "$INDEX.large"
  "$1" ls-files --others --modified --exclude-standard -z | as_lines | grep -v '/$' | grep -vxF -f "$INDEX.large" | left_out "$2"
  no_room "$2" < "$INDEX.large"
}
no_room() { # the path of their directory from the top
  number=0
  while IFS= read -r path; do
    number=$((number + 1))
    if [ "$number" -gt 20 ]; then warn WarningsCut ""; break; fi
    real_name "$path"
    warn NoRoomLeft "$1$REAL"
  done
}
# Bytes that new objects may take, empty where there is enough, and ROOM_NAMES: how many there may be. EVICTED: the node waits for nothing but this.
find_room() {
  ROOM= ROOM_NAMES=1000000000
  names=$(df -Pi -- "$WORK" 2>/dev/null | awk 'NR == 2 && $2 > 0 { print $4 }')
  case "$names" in '' | *[!0-9]*) names=$ROOM_NAMES ;; esac
  free=$(df -Pk -- "$WORK" 2>/dev/null | awk 'NR == 2 { print $4 }')
  case "$free" in '' | *[!0-9]*) return 0 ;; esac
  if [ -n "\${EVICTED:-}" ]; then
    used=$(du -sk -- "$REPO" 2>/dev/null | awk '{ print $1 }')
    ROOM=$(awk -v free="$free" -v used="\${used:-0}" 'BEGIN {
      most = used / 16; if (most < 16384) most = 16384
      room = free / 12; if (room > most) room = most
      printf "%.0f", room * 1024
    }')
  elif [ "$free" -lt 262144 ] || [ "$names" -lt 4096 ]; then ROOM=$((free * 1024 / 6)); fi
  # An object may need a directory of its own, and trees come on top.
  if [ -n "$ROOM" ] && [ "$names" -lt 1000000 ]; then ROOM_NAMES=$((names > 200 ? (names - 200) / 3 : 0)); fi
}
add_but_broken() {
  if [ -s "$INDEX.broken" ] || [ -s "$INDEX.large" ]; then
    { echo .; sed 's/^/:(exclude,literal)/' "$INDEX.broken" "$INDEX.large"; } |
      "$1" add --all --ignore-errors --pathspec-from-file=- > /dev/null 2> "$INDEX.errors"
  else
    "$1" add --all --ignore-errors -- . > /dev/null 2> "$INDEX.errors"
  fi
}
# A linked work tree may have pipes that git would take for files of its own and wait for, too.
remove_pipes() { # directory
  (cd -- "$1" && find . -name node_modules -prune -o -type p -name '.git*' -exec rm -f -- {} +) 2>/dev/null
}
# Files larger than a result may hold, which would take everything else with them. One that git ignores, or that is as
# the base has it, is no work. On the way, pipes go that git would take for files of its own and wait for.
find_large() {
  (
    cd -- "$REPO" && find . \\( -path ./.git -o -name node_modules \\) -prune \\
      -o -type p \\( -name '.git*' -o -path '*/.git/*' \\) -exec rm -f -- {} + \\
      -o -type f -size "+\${MAX_FILE_BYTES}c" ! -path '*/.git/*' -print
  ) 2>/dev/null |
    sed 's|^\\./||' | head -n 20 > "$WORK/too-large"
}
too_large() { # the function that runs git, the path of its directory from the top
  while IFS= read -r path; do
    case "$path" in "$2"*) path=\${path#"$2"} ;; *) continue ;; esac
    if [ -n "$("$1" ls-files --others --modified --exclude-standard -- ":(literal)$path" 2>/dev/null)" ]; then
      printf '%s\\n' "$path"
    fi
  done < "$WORK/too-large"
}
# Names paths, one a line, that are not part of the result.
left_out() { # the path of their directory from the top
  number=0
  while IFS= read -r path; do
    number=$((number + 1))
    note_left_out "$1" "$path"
    if [ "$number" -eq 51 ]; then warn WarningsCut ""; fi
    if [ "$number" -le 50 ]; then warn PathLeftOut "\${INNER_NAME:+worktrees/$INNER_NAME/}$1$path"; fi
  done
}
# Submodules whose repository is gone, which git stumbles over: the link stays, what lies there cannot be told from it.
broken_links() { # directory, its path from the top
  while IFS= read -r path; do
    case "$path" in "$2"*) path=\${path#"$2"} ;; *) continue ;; esac
    if [ -f "$1/$path/.git" ] && ! (cd -- "$1/$path" && git rev-parse --git-dir) > /dev/null 2>&1; then
      printf '%s\\n' "$path"
    fi
  done < "$WORK/links"
}
# A repository inside the work tree would become a link to a commit that exists nowhere else: its files are taken instead.
plain_nested() {
  {
    "$1" ls-files --stage -z | as_lines | sed -n "s/^160000 [0-9a-f]* 0$tab//p" | while IFS= read -r path; do
      nested_name "$path" "$2"
      # A submodule the base already had stays one, unless its repository is gone and files are left in its place.
      own=\${3#"\${INNER_PREFIX:-}"}$REAL
      if grep -qxF -- "$3$path" "$WORK/links"; then was=$(ours rev-parse --verify --quiet "\${PARENT:-$BASE_COMMIT}:$own")
      else was=$(moved_from "$own"); fi
      if [ -n "$was" ]; then
        if [ -e "$2/$REAL/.git" ]; then
          keep_submodule "$1" "$REAL" "$2/$REAL" "$3$REAL" "$own" "$was"
          continue
        fi
        if [ -z "$(ls -A "$2/$REAL" 2>/dev/null)" ]; then continue; fi
      elif is_new_submodule "$2/$REAL" "$own"; then
        continue
      fi
      printf '%s\\n' "$path"
    done
    if [ -s "$INDEX.errors" ]; then
      "$1" ls-files --others --exclude-standard -z | as_lines | sed -n 's|/$||p'
    fi
  } > "$INDEX.nested"
  while IFS= read -r path <&3; do
    nested_name "$path" "$2"
    path=$REAL
    if [ ! -d "$2/$path" ]; then continue; fi
    # What lies in a work tree of this very repository is looked at on its own.
    if is_work_tree "$2/$path"; then "$1" update-index --force-remove -- "$path"; continue; fi
    tree=$(TREE="$2/$path"; INDEX="$INDEX.n"; nested_tree "$3$path/") || { printf '%s' "$path" | tr '\\n' '\\001' | left_out "$3"; continue; }
    "$1" update-index --force-remove -- "$path"
    if [ "$tree" != "$EMPTY_TREE" ]; then "$1" read-tree --prefix="$path/" "$tree"; fi
    keep_nested_history "$2/$path" "$3$path\${INNER_NAME:+@$INNER_NAME}"
    warn NestedRepository "$3$path"
  done 3< "$INDEX.nested"
}
# The repository of a submodule with an index of ours; what it writes goes into our objects.
inner() {
  (
    cd -- "$INNER" && GIT_DIR="$INNER_GIT" GIT_WORK_TREE="$INNER" GIT_OBJECT_DIRECTORY="$G/objects" \\
      GIT_INDEX_FILE="$INDEX" ${quietGit} "$@"
  )
}
# A commit that others can fetch: the agent got it from a remote that is not a directory of the sandbox. Tags that came
# with a clone are packed; one the agent makes is a file of its own.
is_published() {
  git --git-dir="$INNER_GIT" config --get-regexp '^remote\\..*\\.url$' 2>/dev/null |
    grep -qE '^[^ ]* ((https?|ssh|git)://|[^/.:][^/:]*:)' || return 1
  git --git-dir="$INNER_GIT" for-each-ref --format='%(refname)' --contains "$1" refs/remotes refs/tags 2>/dev/null |
    while IFS= read -r name; do
      case $name in refs/tags/*) grep -q " $name$" "$INNER_GIT/packed-refs" 2>/dev/null || continue ;; esac
      printf x
    done | grep -q x
}
# The files of INNER on top of its HEAD where they differ from that: a commit. What lies in it may be a repository again.
state_of_inner() { # its path from the top, a slash behind it; empty for a linked work tree
  (
    INDEX=$INDEX.inner INNER_TOP=$INNER INNER_PREFIX=$1
    if [ -n "$1" ]; then
      PARENT=$INNER_HEAD
      ours ls-tree -r -z "$INNER_HEAD" | as_lines | sed -n "s/^160000 commit [0-9a-f]*$tab//p" |
        while IFS= read -r path; do printf '%s\\n' "$1$path"; done >> "$WORK/links"
    fi
    rm -f "$INDEX"
    if cp -p -- "$INNER_GIT/index" "$INDEX" 2>/dev/null && inner ls-files -v > "$INDEX.flags" 2>/dev/null; then
      look_at_all inner "$INNER" "$INNER_GIT"
    else fresh_index inner "$INNER_GIT" "$INNER_HEAD"; fi
    add_files inner "$INNER" "$1" > /dev/null
    tree=$(inner write-tree 2>/dev/null)
    if [ -n "$tree" ] && [ "$tree" != "$(tree_of "$INNER_HEAD")" ]; then commit_tree "$tree" "$MESSAGE" -p "$INNER_HEAD"
    else printf '%s' "$INNER_HEAD"; fi
  )
}
open_inner() {
  INNER=$1
  INNER_GIT=$(cd -- "$1" && git rev-parse --absolute-git-dir 2>/dev/null) &&
    INNER_HEAD=$(git --git-dir="$INNER_GIT" rev-parse --verify --quiet 'HEAD^{commit}' 2>/dev/null)
}
# The link of a submodule stays where the last commit has it, unless it moved to a commit others can fetch. What was done
# inside is not part of the result: no clone could fetch the commit that the link names. It is kept beside it.
keep_submodule() { # function that runs git, path for it, directory, path from the top, path in its parent, commit of the link
  link=$(state_of_submodule "$3" "$4" "$5" "$6")
  if [ -n "$link" ]; then "$1" update-index --cacheinfo "160000,$link,$2"; fi
}
# Answers the commit that the link has to go back to. Runs in a process of its own: the one around it may have an INNER too.
state_of_submodule() { # directory, path from the top, path in its parent, commit of the link
  open_inner "$1" || return 0
  was=$4 tip=$4
  if [ -z "\${PARENT:-}" ]; then
    tip=$(ours rev-parse --verify --quiet "\${TIP:-$BASE_COMMIT}:$3" || printf '%s' "$was")
  fi
  printf '%s\\n' "$INNER_GIT/objects" >> "$G/objects/info/alternates"
  # No ref can lie below another one: that of a submodule inside a submodule lies beside it.
  KEPT_AS=\${KEPT_AS:+$KEPT_AS+}$(printf '%s' "$3\${INNER_NAME:+@$INNER_NAME}" | LC_ALL=C tr -c 'A-Za-z0-9/@_-' _)
  name=submodules/$KEPT_AS
  state=$(state_of_inner "$2/")
  printf '%s %s\\n' "$(tree_of "$state")" "$INNER_HEAD" >> "$WORK/states"
  keep_branches_of_submodule "$2"
  if [ "$state" = "$was" ]; then return 0; fi
  if [ "$INNER_HEAD" != "$was" ] && is_published "$INNER_HEAD"; then
    if [ "$state" = "$INNER_HEAD" ]; then return 0; fi
  else
    printf '%s' "$tip"
  fi
  printf '%s\\n' "$was" >> "$WORK/not"
  keep "$name" "$state" && warn SubmoduleChanged "$2"
}
# Its branches and stashes that neither its state contains nor others can fetch.
keep_branches_of_submodule() { # path from the top
  {
    git --git-dir="$INNER_GIT" for-each-ref --format='%(objectname) branches/%(refname:lstrip=2)' refs/heads
    git --git-dir="$INNER_GIT" reflog show --format=%H refs/stash -- | awk '{ print $1, "stash/" NR - 1 }'
  } 2>/dev/null | head -n 50 | while read -r oid ref; do
    if [ -z "$(ours rev-list --max-count=1 "$oid" --not "$was" "$state" 2>/dev/null)" ] || is_published "$oid"; then continue; fi
    printf '%s %s\\n' "$oid" "$ref" >> "$WORK/states"
    printf '%s\\n' "$was" >> "$WORK/not"
    keep "$name+$ref" "$oid" && warn SubmoduleChanged "$1"
  done
}
# Submodules as .gitmodules has them: \`name<TAB>path\`. In: options of \`git config\` that name the file.
submodule_paths() {
  git config -z "$@" --get-regexp '^submodule\\..*\\.path$' 2>/dev/null | tr '\\n\\000' '\\t\\n' |
    awk -F "$tab" -v OFS="$tab" '{ print substr($1, 11, length($1) - 15), $2 }'
}
# The commit of a submodule that its parent has elsewhere: a move keeps its name in .gitmodules.
moved_from() { # path in its parent
  name=$(submodule_paths --file "\${INNER_TOP:-$REPO}/.gitmodules" | at="$1" awk -F "$tab" '$2 == ENVIRON["at"] { print $1 }' | head -n 1)
  if [ -z "$name" ]; then return 0; fi
  parent=\${PARENT:-$BASE_COMMIT}
  from=$(export GIT_DIR="$G" && submodule_paths --blob "$parent:.gitmodules" | at="$name" awk -F "$tab" '$1 == ENVIRON["at"] { print $2 }' | head -n 1)
  if [ -n "$from" ]; then ours ls-tree "$parent" -- "$from" 2>/dev/null | sed -n 's/^160000 commit \\([0-9a-f]*\\).*/\\1/p'; fi
}
# A submodule the agent added stays one where .gitmodules names it and its commit can be fetched.
is_new_submodule() ( # directory, path in its parent
  [ -e "$1/.git" ] && open_inner "$1" && is_published "$INNER_HEAD" &&
    submodule_paths --file "\${INNER_TOP:-$REPO}/.gitmodules" | cut -f 2 | grep -qxF -- "$2"
)
nested_tree() {
  rm -f "$INDEX"
  tree_git read-tree --empty && add_files tree_git "$TREE" "$1" 1>&2 && tree_git write-tree
}

${nestedHistory}
# Files the agent told git not to look at are part of its work all the same, and gone where they are gone. The answer of
# \`ls-files -v\` is in $INDEX.flags.
look_at_all() { # the function that runs git, its directory, the repository
  if ! grep -q '^[a-zS]' "$INDEX.flags"; then return 0; fi
  sed -n 's/^[a-z] //p' "$INDEX.flags" | "$1" update-index --no-assume-unchanged --stdin
  "$1" ls-files -v -z | as_lines | sed -n 's/^S //p' | while IFS= read -r path; do
    real_name "$path"
    if [ -e "$2/$REAL" ] || [ -L "$2/$REAL" ]; then printf '%s\\n' "$path"; else printf '%s\\n' "$path" >&4; fi
  done 4> "$INDEX.absent" | real_names | "$1" update-index -z --no-skip-worktree --stdin
  if [ -s "$INDEX.absent" ]; then taken_away "$3" | real_names | "$1" update-index -z --no-skip-worktree --stdin; fi
}
# Which files of $INDEX.absent a sparse checkout did not leave out: git is asked by a checkout of nothing but them, all empty.
taken_away() { # the repository
  if [ "$(sparse_setting "$1" core.sparseCheckout)" != true ]; then cat "$INDEX.absent"; return 0; fi
  cp -- "$1/info/sparse-checkout" "$G/info/sparse-checkout" 2>/dev/null || return 0
  cone=$(sparse_setting "$1" core.sparseCheckoutCone)
  empty=$(ours hash-object -w --stdin < /dev/null) || return 0
  (
    absent=$INDEX.absent TREE=$WORK/sparse INDEX=$WORK/sparse.index
    rm -rf -- "$TREE" "$INDEX"
    mkdir -p -- "$TREE" &&
      sed "s/^/100644 $empty$tab/" "$absent" | real_names | tree_git update-index -z --index-info &&
      tree=$(tree_git write-tree) && rm -f -- "$INDEX" &&
      tree_git -c core.sparseCheckout=true -c "core.sparseCheckoutCone=\${cone:-false}" read-tree -m -u "$tree" &&
      tree_git ls-files -t -z | as_lines | sed -n 's/^H //p'
  )
}

# \`git sparse-checkout\` has its settings in a file of their own, which can be read where the configuration cannot.
sparse_setting() { # the repository, the setting
  git --git-dir="$1" config --type=bool "$2" 2>/dev/null || git config --file "$1/config.worktree" --type=bool "$2" 2>/dev/null
}
# An index of a commit, where that of the repository is of no use. What a sparse checkout leaves out is not deleted.
fresh_index() { # the function that runs git, the repository, the commit
  rm -f "$INDEX"
  "$1" read-tree "$3" || return 1
  if [ "$(sparse_setting "$2" core.sparseCheckout)" != true ]; then return 0; fi
  "$1" ls-files --deleted -z | as_lines > "$INDEX.absent"
  taken_away "$2" > "$INDEX.taken"
  grep -vxF -f "$INDEX.taken" "$INDEX.absent" | real_names | "$1" update-index -z --skip-worktree --stdin
  return 0
}

# An index with the state of the work tree, made from the agent's own where that can be read.
index_of_theirs() {
  # A file that git ignores is only in the index of the commit that has it.
  if usable "$HEAD_COMMIT"; then checked_out=$HEAD_COMMIT; else checked_out=$BASE_COMMIT; fi
  # With its time: git takes a file for unchanged that was written before the index, at the size the index has for it.
  if cp -p -- "$GITDIR/index" "$INDEX" 2>/dev/null && theirs ls-files -v > "$INDEX.flags" 2>/dev/null; then
    look_at_all theirs "$REPO" "$GITDIR"
  else
    if [ -e "$GITDIR/index" ]; then warn IndexRebuilt ""; fi
    fresh_index theirs "$GITDIR" "$checked_out" || return 1
  fi
  if [ -f "$SETUP/tree" ]; then add_setup_files; fi
  if ! add_files theirs "$REPO" ""; then
    warn IndexRebuilt ""
    fresh_index theirs "$GITDIR" "$checked_out" && add_files theirs "$REPO" ""
    return
  fi
  keep_modes
}
# \`git add --chmod=+x\` makes a file executable for git alone. On disk it never was: that is no change of the agent's as long as
# the file is the one that git was told of, by the time of its last change.
keep_modes() {
  if [ ! -e "$GITDIR/index" ]; then return 0; fi
  agents() { (INDEX="$GITDIR/index" && theirs "$@") 2>/dev/null; }
  agents ls-files --stage | grep '^100755' > "$INDEX.executable" || return 0
  theirs ls-files --stage |
    awk -F "$tab" 'FILENAME == ARGV[1] { was[$2] = 1; next } /^100644/ && $2 in was { print $2 }' "$INDEX.executable" - |
    head -n 200 > "$INDEX.modes"
  while IFS= read -r path; do
    told=$(agents ls-files --debug -- ":(literal)$path" | sed -n 's/^ *ctime: //p')
    is=$(stat -c '%Z %z' -- "$REPO/$path" 2>/dev/null | awk '{ split($3, part, "."); printf "%s:%d", $1, part[2] }')
    if [ -n "$is" ] && [ "$told" = "$is" ]; then printf '%s\\n' "$path"; fi
  done < "$INDEX.modes" | theirs update-index --chmod=+x --stdin
  return 0
}
# Files that set-up made are ignored: git is told of each, and gives up at the first it cannot take. What became a directory is
# not ignored any more.
add_setup_files() {
  setup_changes | cut -f 2- | while IFS= read -r path; do
    if [ -L "$REPO/$path" ] || [ ! -e "$REPO/$path" ]; then printf '%s\\n' "$path"
    elif [ -d "$REPO/$path" ]; then continue
    elif [ -r "$REPO/$path" ]; then printf '%s\\n' "$path"
    else printf '%s\\n' "$path" | left_out ""; fi
  done > "$INDEX.setup"
  if (cd "$REPO" && theirs update-index --add --remove --stdin) < "$INDEX.setup" 2>/dev/null; then return 0; fi
  while IFS= read -r path; do
    printf '%s\\n' "$path" | (cd "$REPO" && theirs update-index --add --remove --stdin) 2>/dev/null
  done < "$INDEX.setup"
}
index_of_tree() { # commit
  TREE=$REPO
  fresh_index tree_git "$GITDIR" "$1" && add_files tree_git "$REPO" "" || return 1
  for name in \${LEAVE_OUT:-}; do
    tree_git diff-index --cached --name-only "$BASE_COMMIT" -- ":(glob)**/$name" ":(glob)**/$name/**" | left_out ""
    tree_git reset --quiet "$BASE_COMMIT" -- ":(glob)**/$name" ":(glob)**/$name/**" > /dev/null
  done
}
`
