/** One ref per thing the agent made beside the result: branches, stashes, rewritten history. Lives in the extra bundle. */
export const keptRefs = 'refs/corral/kept'

/**
 * A shell function that notes what is in a repository before the agent works there, so that tags, work trees and steps of
 * HEAD that were there before are not taken for its work. In: REPO REFS (the file).
 */
export const noteRefs: string = `note_refs() (
  cd -- "$REPO" && {
    git for-each-ref --format='%(objectname) %(refname)'
    for tree in .git/worktrees/*/; do if [ -d "$tree" ]; then tree=\${tree%/} && echo "- refs/worktrees/\${tree##*/} $(cat "$tree/logs/HEAD" 2> /dev/null | wc -l)"; fi; done
    echo "- log $(cat .git/logs/HEAD 2> /dev/null | wc -l)"
  } > "$REFS"
)`

/**
 * Where the agent may have left commits, which of them become the result, and how the rest is kept. Part of
 * `collectScript`, which has `ours`, `warn`, `usable`, `has_work`, `is_ancestor` and what it says of its environment.
 *
 * WORK/refs has branches as `oid ref` lines, WORK/unnamed the same for commits that no branch leads to: the state of linked
 * work trees, commits a detached HEAD was moved away from. WORK/others has new or moved tags, notes and the like.
 */
export const collectRefs: string = `read_refs() {
  : > "$WORK/unnamed"
  : > "$WORK/others"
  grep '^- ' "$REFS" > "$WORK/before" 2>/dev/null
  git --git-dir="$GITDIR" for-each-ref --format='%(objectname) %(refname)' > "$WORK/all" 2>/dev/null || read_loose_refs
  grep -E '^[0-9a-f]+ refs/heads/' "$WORK/all" > "$WORK/refs"
  HEAD_COMMIT=$(git --git-dir="$GITDIR" rev-parse --verify --quiet 'HEAD^{commit}' 2>/dev/null || loose_head)
  STASHES=$(read_stashes)
  if [ -s "$REFS" ]; then
    grep -vE '^[0-9a-f]+ refs/((heads|remotes|bisect|rewritten|worktree|corral|original)/|stash$)' "$WORK/all" |
      grep -vxF -f "$REFS" > "$WORK/others"
  fi
  read_work_trees
  : > "$WORK/dropped"
  head_log > "$WORK/head-log"
  if [ -s "$WORK/head-log" ]; then
    sed -n "s/^\\([0-9a-f]*\\) .*$tab"'checkout: moving from [0-9a-f]\\{40,64\\} to .*/\\1/p' "$WORK/head-log" |
      awk '!seen[$0]++' | tail -n 20 | awk '{ print $1, "refs/left-behind/" NR }' >> "$WORK/unnamed"
    cut -d ' ' -f 2 "$WORK/head-log" | sed -n '1!G;h;$p' | awk '!seen[$0]++' | head -n 50 > "$WORK/dropped"
  fi
  survey
}
# Which of all these objects can be read whole (WORK/usable), of what type they are (WORK/types), and every commit that
# they have and the base has not (WORK/beyond). An agent may leave hundreds of branches: git is asked once, not for each.
survey() {
  {
    cut -d ' ' -f 1 "$WORK/refs" "$WORK/unnamed" "$WORK/others"
    cat "$WORK/dropped"
    printf '%s\\n' "$HEAD_COMMIT" "$STASHES"
  } | grep . | sort -u > "$WORK/seen"
  # Nothing was committed: every ref stands at the base, which was found to be readable.
  if [ "$(cat "$WORK/seen")" = "$BASE_COMMIT" ]; then
    printf '%s\\n' "$BASE_COMMIT" > "$WORK/usable"
    printf '%s commit\\n' "$BASE_COMMIT" > "$WORK/types"
    : > "$WORK/beyond"
    IS_AT_BASE=yes
    return 0
  fi
  ours cat-file --batch-check='%(objectname) %(objecttype)' < "$WORK/seen" > "$WORK/checked" 2>/dev/null ||
    sed 's/$/ commit/' "$WORK/seen" > "$WORK/checked"
  awk '$2 != "missing" && $2 != "ambiguous"' "$WORK/checked" > "$WORK/types"
  cut -d ' ' -f 1 "$WORK/types" > "$WORK/usable"
  if ! beyond "$BASE_COMMIT" --objects --quiet; then
    while read -r oid; do if is_readable "$oid"; then echo "$oid"; fi; done < "$WORK/seen" > "$WORK/whole"
    mv "$WORK/whole" "$WORK/usable"
  fi
  beyond "$BASE_COMMIT" > "$WORK/beyond"
  return 0
}
# What the usable objects lead to and a commit does not.
beyond() { # commit; then options
  commit=$1
  shift
  { cat "$WORK/usable"; printf '^%s\\n' "$commit"; } | ours rev-list "$@" --stdin 2>/dev/null
}
# What can be told of a repository that git itself does not read any more.
read_loose_refs() {
  grep -E '^[0-9a-f]{40,64} refs/' "$GITDIR/packed-refs" > "$WORK/all" 2>/dev/null
  (cd "$GITDIR" 2>/dev/null && find refs -type f 2>/dev/null) | head -n 500 | while IFS= read -r name; do
    oid=$(head -c 64 "$GITDIR/$name" | tr -cd '0-9a-f')
    if [ -n "$oid" ]; then printf '%s %s\\n' "$oid" "$name" >> "$WORK/all"; fi
  done
  return 0
}
loose_head() {
  line=$(head -c 300 "$GITDIR/HEAD" 2>/dev/null | head -n 1)
  case "$line" in
    'ref: '*) oid=$(ref_of "\${line#ref: }") ;;
    *) oid=$(printf '%s' "$line" | tr -cd '0-9a-f') ;;
  esac
  # The last step of HEAD outlives the branch it was on.
  printf '%s' "\${oid:-$(tail -n 1 "$GITDIR/logs/HEAD" 2>/dev/null | cut -d ' ' -f 2)}"
}
ref_of() { awk -v name="$1" '$2 == name { oid = $1 } END { print oid }' "$WORK/all"; }
# Newest first; and what a rebase or a merge that stopped half way had put aside.
read_stashes() {
  if ! has_stashes; then return 0; fi
  {
    git --git-dir="$GITDIR" reflog show --format=%H refs/stash -- 2>/dev/null ||
      cut -d ' ' -f 2 "$GITDIR/logs/refs/stash" 2>/dev/null | sed -n '1!G;h;$p'
    ref_of refs/stash
    for name in rebase-merge/autostash rebase-apply/autostash MERGE_AUTOSTASH; do cat "$GITDIR/$name" 2>/dev/null; done
  } | grep -E '^[0-9a-f]{40,64}$' | awk '!seen[$0]++'
}
has_stashes() {
  for name in logs/refs/stash refs/stash rebase-merge/autostash rebase-apply/autostash MERGE_AUTOSTASH; do
    if [ -e "$GITDIR/$name" ]; then return 0; fi
  done
  grep -q ' refs/stash$' "$WORK/all"
}
# What HEAD went through since the agent began, and that of every linked work tree.
head_log() {
  log_since "$GITDIR" log
  for tree in "$GITDIR"/worktrees/*/; do
    tree=\${tree%/}
    log_since "$tree" "refs/worktrees/\${tree##*/}"
  done
}
log_since() { # where the log is, its name in WORK/before
  before=
  while read -r mark kind count; do if [ "$kind" = "$2" ]; then before=$count; fi; done < "$WORK/before"
  tail -n "+$((\${before:-0} + 1))" "$1/logs/HEAD" 2>/dev/null
}
# Linked work trees share the branches of the repository, not their files: those are a commit on top of their HEAD.
read_work_trees() {
  : > "$WORK/places"
  : > "$WORK/states"
  for INNER_GIT in "$GITDIR"/worktrees/*/; do
    if find_work_tree; then (cd -- "$INNER" && pwd -P) >> "$WORK/places"; fi
  done
  for INNER_GIT in "$GITDIR"/worktrees/*/; do
    if [ ! -d "$INNER_GIT" ]; then continue; fi
    INNER_GIT=\${INNER_GIT%/}
    INNER_NAME=\${INNER_GIT##*/}
    INNER_HEAD=$(git --git-dir="$INNER_GIT" rev-parse --verify --quiet 'HEAD^{commit}' 2>/dev/null) || INNER_HEAD=$BASE_COMMIT
    # Deleted or moved by hand: its files are out of reach, what it has committed is not.
    commit=$INNER_HEAD
    if find_work_tree; then
      remove_pipes "$INNER"
      commit=$(state_of_inner "")
      printf '%s %s\\n' "$(tree_of "$commit")" "$INNER_HEAD" >> "$WORK/states"
    fi
    printf '%s refs/worktrees/%s\\n' "$commit" "$INNER_NAME" >> "$WORK/unnamed"
  done
  INNER_NAME=
}
find_work_tree() { # git writes its place as a path from INNER_GIT where it is told so
  INNER=$(head -n 1 "$INNER_GIT/gitdir" 2>/dev/null)
  INNER=\${INNER%/.git}
  case "$INNER" in /*) ;; *) INNER=$(cd -- "$INNER_GIT/$INNER" 2>/dev/null && pwd) ;; esac
  if [ ! -e "$INNER" ]; then moved_work_tree; fi
  if [ -z "\${LAST_STATE:-}" ] && [ -d "$INNER" ] && [ ! -x "$INNER" ]; then chmod u+rwx -- "$INNER" 2>/dev/null; fi
  [ -f "$INNER/.git" ] || has_lost_link
}
# With \`mv\` git does not learn where it is now. The tree itself still names the repository: it is looked for beside the
# checkout, where it was, and in the usual places of an agent.
moved_work_tree() {
  own=$(cd -- "$INNER_GIT" 2>/dev/null && pwd -P) || return 0
  for place in "$REPO" "\${REPO%/*}" "\${INNER%/*}" "\${HOME:-}" "\${TMPDIR:-/tmp}"; do
    if [ ! -d "$place" ]; then continue; fi
    (cd -- "$place" && find . -maxdepth 4 \\( -name node_modules -o -type d -name .git \\) -prune -o -type f -name .git -print 2>/dev/null) |
      head -n 1000 | while IFS= read -r link; do
        there=$(cd -- "$place/\${link%/.git}" && cd -- "$(sed -n '1s/^gitdir: //p' .git)" 2>/dev/null && pwd -P) || continue
        if [ "$there" = "$own" ]; then cd -- "$place/\${link%/.git}" && pwd -P; break; fi
      done
  done > "$WORK/moved"
  if [ -s "$WORK/moved" ]; then INNER=$(head -n 1 "$WORK/moved"); fi
}
# Its \`.git\` was deleted or replaced: its index still tells which files are its own. What lies inside the checkout and is not
# ignored is taken with the files there.
has_lost_link() (
  cd -- "$INNER" 2>/dev/null || exit 1
  top=$(pwd -P)
  for place in "$REPO" "$WORK"; do case "$(cd -- "$place" && pwd -P)/" in "\${top%/}/"*) exit 1 ;; esac; done
  case "$top/" in
    "$(cd -- "$REPO" && pwd -P)"/*)
      (cd -- "$REPO" && GIT_DIR="$GITDIR" GIT_WORK_TREE="$REPO" git check-ignore -q -- "$top") 2>/dev/null || exit 1
      ;;
  esac
  export GIT_DIR="$INNER_GIT" GIT_WORK_TREE="$INNER"
  [ "$(git ls-files --deleted 2>/dev/null | wc -l)" -lt "$(git ls-files 2>/dev/null | wc -l)" ]
)
is_work_tree() { [ -f "$1/.git" ] && grep -qxF -- "$(cd -- "$1" && pwd -P)" "$WORK/places" 2>/dev/null; }

# The commit the result builds on: the task's branch, HEAD where it goes beyond that, else the newest commits elsewhere.
choose_tip() {
  task=$(ref_of "refs/heads/$TASK_BRANCH")
  TIP= TIP_NAME=
  if has_work "$task"; then
    TIP=$task TIP_NAME="refs/heads/$TASK_BRANCH"
    if has_work "$HEAD_COMMIT" && is_ancestor "$task" "$HEAD_COMMIT"; then TIP=$HEAD_COMMIT TIP_NAME=HEAD; fi
  elif has_work "$HEAD_COMMIT" || { [ -f "$GITDIR/MERGE_HEAD" ] && [ "$HEAD_COMMIT" = "$BASE_COMMIT" ]; }; then
    # A merge that was begun on the base is the work, not one of the branches that go into it.
    TIP=$HEAD_COMMIT TIP_NAME=HEAD
  else
    for kind in 'heads|worktrees' tags left-behind; do if [ -z "$TIP" ]; then newest_of "$kind"; fi; done
    if [ -n "$TIP" ]; then
      name=\${TIP_NAME#refs/heads/}
      warn WorkOnOtherBranch "\${name#refs/}"
    elif [ -n "$task" ] && [ "$task" = "$HEAD_COMMIT" ] && usable "$task"; then
      TIP=$task TIP_NAME="refs/heads/$TASK_BRANCH"
    fi
  fi
  if [ -z "$TIP" ]; then TIP=$BASE_COMMIT; fi
}
# The newest by its date, but nothing that another of them builds on: both may be of the same second.
newest_of() {
  if [ ! -s "$WORK/beyond" ]; then return 0; fi
  cat "$WORK/refs" "$WORK/unnamed" "$WORK/others" | grep -E "^[0-9a-f]+ refs/($1)/" |
    awk 'FILENAME == ARGV[1] { before[$2] = 1; next } !($2 in before)' "$WORK/before" - |
    sed 's/ /^{commit} /' | ours cat-file --batch-check='%(objectname) %(rest)' 2>/dev/null |
    awk 'FILENAME == ARGV[1] { beyond[$1] = 1; next } $1 in beyond' "$WORK/beyond" - > "$WORK/candidates"
  if [ ! -s "$WORK/candidates" ]; then return 0; fi
  TIP=$({ cut -d ' ' -f 1 "$WORK/candidates"; printf '^%s\\n' "$BASE_COMMIT"; } |
    ours rev-list --date-order --stdin 2>/dev/null | head -n 1)
  TIP_NAME=$(awk -v tip="$TIP" '$1 == tip { name = $2 } END { print name }' "$WORK/candidates")
}

keep() { ours update-ref "${keptRefs}/$1" "$2" || { warn KeptRefsLost "$1"; return 1; }; }
is_kept() { [ -n "$(ours for-each-ref --count=1 --contains "$1" ${keptRefs} 2>/dev/null)" ]; }
# The same for many at once: git writes all of them or none, and then each is tried alone.
keep_all() { # warning; in: \`oid<TAB>name<TAB>what the warning names\`
  cat > "$WORK/keeping"
  if [ ! -s "$WORK/keeping" ]; then return 0; fi
  if awk -F "$tab" '{ print "update ${keptRefs}/" $2 " " $1 }' "$WORK/keeping" | ours update-ref --stdin 2>/dev/null; then
    awk -F "$tab" -v code="$1" '{ print code FS $3 }' "$WORK/keeping" >> "$WORK/warnings"
  else
    while IFS="$tab" read -r oid name about; do keep "$name" "$oid" && warn "$1" "$about"; done < "$WORK/keeping"
  fi
}
# In: \`oid name\` lines. Out: \`oid<TAB>name<TAB>fate\`: the result has it, it has work of its own, it cannot be read.
fates() {
  awk -v OFS="$tab" -v tip="$TIP" '
    FILENAME == ARGV[1] { usable[$1] = 1; next }
    FILENAME == ARGV[2] { isOther[$1] = $2 != "commit"; next }
    FILENAME == ARGV[3] { isOutside[$1] = 1; next }
    {
      fate = !($1 in usable) ? "unreadable" : $1 != tip && ($1 in isOutside || isOther[$1]) ? "work" : "there"
      oid = $1
      sub(/^[^ ]* /, "")
      print oid, $0, fate
    }' "$WORK/usable" "$WORK/types" "$WORK/outside" -
}
# Everything the result does not contain stays available as a ref of its own.
keep_the_rest() { # result
  if [ -n "$IS_AT_BASE" ] && [ ! -s "$WORK/unnamed" ] && [ ! -s "$WORK/others" ]; then
    if [ "$1" = "$BASE_COMMIT" ]; then keep_dropped "$1"; fi
    return 0
  fi
  # Dates that go backwards let git name commits of the base as well: those are part of every result.
  beyond "$1" | grep -xF -f "$WORK/beyond" > "$WORK/outside"
  fates < "$WORK/refs" | sed 's|refs/heads/||' > "$WORK/fates"
  awk -F "$tab" -v OFS="$tab" '$3 == "work" { print $1, "branches/" $2, $2 }' "$WORK/fates" | keep_all BranchKept
  awk -F "$tab" -v OFS="$tab" '$3 == "unreadable" { print "BranchUnreadable", $2 }' "$WORK/fates" >> "$WORK/warnings"
  if has_work "$HEAD_COMMIT" && ! is_ancestor "$HEAD_COMMIT" "$1" && [ "$HEAD_COMMIT" != "$TIP" ] &&
    ! grep -q "^$HEAD_COMMIT " "$WORK/refs"; then
    keep head "$HEAD_COMMIT" && warn BranchKept HEAD
  fi
  fates < "$WORK/unnamed" | while IFS="$tab" read -r oid name fate; do
    if [ "$fate" = work ] && ! is_kept "$oid"; then
      keep "\${name#refs/}" "$oid" && warn CommitsKept "\${name#refs/}"
    fi
  done
  keep_stashes
  if [ "$1" = "$BASE_COMMIT" ] || grep -q '^BranchUnreadable' "$WORK/warnings"; then keep_dropped "$1"; fi
  head -n 200 "$WORK/others" | fates | sed 's|refs/||' > "$WORK/fates"
  # The names that other things are kept under are not free.
  awk -F "$tab" -v OFS="$tab" '$3 != "unreadable" {
    isTaken = $2 ~ /^(branches|stash|dropped|submodules|nested|lfs|worktrees|left-behind|head|uncommitted|rewritten)(\\/|$)/
    print $1, (isTaken ? "refs/" : "") $2, "refs/" $2 " at " $1
  }' "$WORK/fates" | keep_all RefNotPushed
  awk -F "$tab" -v OFS="$tab" '$3 == "unreadable" { print "BranchUnreadable", "refs/" $2 }' "$WORK/fates" >> "$WORK/warnings"
  if [ "$(wc -l < "$WORK/others")" -gt 200 ]; then warn WarningsCut ""; fi
}
keep_stashes() {
  printf '%s\\n' "$STASHES" | head -n 500 | awk -v OFS="$tab" '
    FILENAME == ARGV[1] { usable[$1] = 1; next }
    { number = total++ }
    $1 in usable { print $1, "stash/" number, "stash@{" number "}" }' "$WORK/usable" - > "$WORK/stashes"
  head -n 50 "$WORK/stashes" | keep_all StashKept
  if [ "$(wc -l < "$WORK/stashes")" -gt 50 ]; then
    tail -n +51 "$WORK/stashes" | sed 's/[^'"$tab"']*$//' | keep_all WarningsCut
  fi
}
# Nothing is left of commits the agent made: they were reset, or their branch was deleted or damaged. It may have been a mistake.
keep_dropped() { # result
  number=0
  { cat "$WORK/dropped"; loose_commits; } | while read -r oid; do
    if has_work "$oid" && ! is_kept "$oid" && ! is_ancestor "$oid" "$1"; then
      number=$((number + 1))
      keep "dropped/$number" "$oid" && warn CommitsKept "dropped/$number"
    fi
  done
}
# Commits that were made since the agent began, newest first, while they are not packed: the log of a linked work tree goes with it.
loose_commits() {
  if [ ! -f "$REFS" ]; then return 0; fi
  (cd -- "$GITDIR/objects" 2>/dev/null && find ?? -type f -newer "$REFS" 2>/dev/null) | tr -d / | grep -E '^[0-9a-f]{40,64}$' |
    ours cat-file --batch-check='%(objecttype) %(objectname)' 2>/dev/null | sed -n 's/^commit //p' > "$WORK/loose"
  if [ ! -s "$WORK/loose" ]; then return 0; fi
  { cat "$WORK/loose"; printf '^%s\\n' "$BASE_COMMIT"; } | ours rev-list --topo-order --ignore-missing --stdin 2>/dev/null |
    grep -xF -f "$WORK/loose" | head -n 50
}
`
