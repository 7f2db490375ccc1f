/** One ref per thing the agent made beside the result: branches, stashes, rewritten history. Lives in the extra bundle. */
export const keptRefs = 'refs/corral/kept'

/**
 * A shell function that notes what is in a repository before the agent works there, so that tags, work trees and steps of
 * HEAD that were there before are not taken for its work. In: REPO REFS (the file).
 */
export const noteRefs: string = `note_refs() (
  cd -- "$REPO" && {
    git for-each-ref --format='%(objectname) %(refname)'
    for tree in .git/worktrees/*/; do if [ -d "$tree" ]; then tree=\${tree%/} && echo "- refs/worktrees/\${tree##*/}"; fi; done
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
  git --git-dir="$GITDIR" for-each-ref --format='%(objectname) %(refname)' > "$WORK/all" 2>/dev/null || read_loose_refs
  grep -E '^[0-9a-f]+ refs/heads/' "$WORK/all" > "$WORK/refs"
  HEAD_COMMIT=$(git --git-dir="$GITDIR" rev-parse --verify --quiet 'HEAD^{commit}' 2>/dev/null || loose_head)
  STASHES=$(read_stashes)
  if [ -s "$REFS" ]; then
    grep -vE '^[0-9a-f]+ refs/((heads|remotes|bisect|rewritten|worktree|corral|original)/|stash$)' "$WORK/all" |
      grep -vxF -f "$REFS" > "$WORK/others"
  fi
  read_work_trees
  head_log | sed -n "s/^\\([0-9a-f]*\\) .*$tab"'checkout: moving from [0-9a-f]\\{40,64\\} to .*/\\1/p' |
    awk '!seen[$0]++' | tail -n 20 | awk '{ print $1, "refs/left-behind/" NR }' >> "$WORK/unnamed"
  return 0
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
  {
    git --git-dir="$GITDIR" reflog show --format=%H refs/stash -- 2>/dev/null ||
      cut -d ' ' -f 2 "$GITDIR/logs/refs/stash" 2>/dev/null | sed -n '1!G;h;$p'
    ref_of refs/stash
    for name in rebase-merge/autostash rebase-apply/autostash MERGE_AUTOSTASH; do cat "$GITDIR/$name" 2>/dev/null; done
  } | grep -E '^[0-9a-f]{40,64}$' | awk '!seen[$0]++'
}
# What HEAD went through since the agent began.
head_log() {
  before=$(sed -n 's/^- log //p' "$REFS" 2>/dev/null)
  tail -n "+$((\${before:-0} + 1))" "$GITDIR/logs/HEAD" 2>/dev/null
}
# Linked work trees share the branches of the repository, not their files: those are a commit on top of their HEAD.
read_work_trees() {
  : > "$WORK/places"
  : > "$WORK/states"
  for INNER_GIT in "$GITDIR"/worktrees/*/; do
    INNER_GIT=\${INNER_GIT%/}
    INNER=$(head -n 1 "$INNER_GIT/gitdir" 2>/dev/null)
    INNER=\${INNER%/.git}
    INNER_HEAD=$(git --git-dir="$INNER_GIT" rev-parse --verify --quiet 'HEAD^{commit}' 2>/dev/null) || INNER_HEAD=$BASE_COMMIT
    if [ ! -f "$INNER/.git" ]; then continue; fi
    (cd -- "$INNER" && pwd -P) >> "$WORK/places"
    commit=$(state_of_inner)
    printf '%s %s\\n' "$(tree_of "$commit")" "$INNER_HEAD" >> "$WORK/states"
    printf '%s refs/worktrees/%s\\n' "$commit" "\${INNER_GIT##*/}" >> "$WORK/unnamed"
  done
}
is_work_tree() { [ -f "$1/.git" ] && grep -qxF -- "$(cd -- "$1" && pwd -P)" "$WORK/places" 2>/dev/null; }

# The commit the result builds on: the task's branch, HEAD where it goes beyond that, else the newest commits elsewhere.
choose_tip() {
  task=$(ref_of "refs/heads/$TASK_BRANCH")
  TIP= TIP_NAME=
  if has_work "$task"; then
    TIP=$task TIP_NAME="refs/heads/$TASK_BRANCH"
    if has_work "$HEAD_COMMIT" && is_ancestor "$task" "$HEAD_COMMIT"; then TIP=$HEAD_COMMIT TIP_NAME=HEAD; fi
  elif has_work "$HEAD_COMMIT"; then
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
newest_of() {
  cat "$WORK/refs" "$WORK/unnamed" "$WORK/others" | grep -E "^[0-9a-f]+ refs/($1)/" > "$WORK/candidates"
  newest=
  while read -r oid name; do
    if grep -qxF -- "- $name" "$REFS" 2>/dev/null; then continue; fi
    oid=$(ours rev-parse --verify --quiet "$oid^{commit}" 2>/dev/null)
    if has_work "$oid"; then
      time=$(ours show --no-patch --format=%ct "$oid")
      # What builds on the choice so far is newer whatever the clock says: both may be of the same second.
      if [ -z "$TIP" ] || [ "$time" -gt "$newest" ] || is_ancestor "$TIP" "$oid"; then
        newest=$time TIP=$oid TIP_NAME=$name
      fi
    fi
  done < "$WORK/candidates"
}

keep() { ours update-ref "${keptRefs}/$1" "$2" || { warn KeptRefsLost "$1"; return 1; }; }
is_kept() { [ -n "$(ours for-each-ref --count=1 --contains "$1" ${keptRefs} 2>/dev/null)" ]; }
# Everything the result does not contain stays available as a ref of its own.
keep_the_rest() { # result
  while read -r oid name; do
    if has_work "$oid" && ! is_ancestor "$oid" "$1" && [ "$oid" != "$TIP" ]; then
      keep "branches/\${name#refs/heads/}" "$oid" && warn BranchKept "\${name#refs/heads/}"
    elif ! usable "$oid"; then
      warn BranchUnreadable "\${name#refs/heads/}"
    fi
  done < "$WORK/refs"
  if has_work "$HEAD_COMMIT" && ! is_ancestor "$HEAD_COMMIT" "$1" && [ "$HEAD_COMMIT" != "$TIP" ] &&
    ! grep -q "^$HEAD_COMMIT " "$WORK/refs"; then
    keep head "$HEAD_COMMIT" && warn BranchKept HEAD
  fi
  while read -r oid name; do
    if has_work "$oid" && ! is_ancestor "$oid" "$1" && [ "$oid" != "$TIP" ] && ! is_kept "$oid"; then
      keep "\${name#refs/}" "$oid" && warn CommitsKept "\${name#refs/}"
    fi
  done < "$WORK/unnamed"
  keep_stashes
  if [ "$1" = "$BASE_COMMIT" ]; then keep_dropped; fi
  head -n 200 "$WORK/others" | while read -r oid name; do
    if usable "$oid"; then keep "\${name#refs/}" "$oid" && warn RefNotPushed "$name at $oid"
    else warn BranchUnreadable "$name"; fi
  done
  if [ "$(wc -l < "$WORK/others")" -gt 200 ]; then warn WarningsCut ""; fi
}
keep_stashes() {
  number=0
  for oid in $STASHES; do
    if usable "$oid" && keep "stash/$number" "$oid"; then
      if [ "$number" -lt 50 ]; then warn StashKept "stash@{$number}"; else warn WarningsCut ""; fi
    fi
    number=$((number + 1))
    if [ "$number" -ge 500 ]; then break; fi
  done
}
# Nothing is left of commits the agent made: they were reset, or their branch was deleted. It may have been a mistake.
keep_dropped() {
  number=0
  head_log | cut -d ' ' -f 2 | sed -n '1!G;h;$p' | awk '!seen[$0]++' | head -n 50 > "$WORK/dropped"
  while read -r oid; do
    if has_work "$oid" && ! is_kept "$oid"; then
      number=$((number + 1))
      keep "dropped/$number" "$oid" && warn CommitsKept "dropped/$number"
    fi
  done < "$WORK/dropped"
}
`
