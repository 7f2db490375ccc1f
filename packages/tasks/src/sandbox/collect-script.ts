import { collectFiles } from './collect-files.js'
import { collectRefs, keptRefs } from './collect-refs.js'
import { generatedFiles } from './generated-files.js'
import { leftOutFiles } from './left-out-files.js'
import { configureLfs } from './lfs-filter.js'
import { quietGit } from './quiet-git.js'

/** Exit code of `collectScript` when no way it was allowed to try worked; the reasons are among its warnings. */
export const nothingCollected = 75

/** What the scripts below share. */
const functions: string = `set -u
umask 077
export GIT_AUTHOR_NAME="$AUTHOR_NAME" GIT_AUTHOR_EMAIL="$AUTHOR_EMAIL"
export GIT_COMMITTER_NAME="\${COMMITTER_NAME:-$AUTHOR_NAME}" GIT_COMMITTER_EMAIL="\${COMMITTER_EMAIL:-$AUTHOR_EMAIL}" LC_ALL=C
export GIT_CEILING_DIRECTORIES="\${REPO%/*}"
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
tab=$(printf '\\t') soh=$(printf '\\001') nl='
'
G="$WORK/git"
# The agent may have closed or replaced the place beside its checkout.
if [ ! -w "\${WORK%/*}" ] || [ ! -d "\${WORK%/*}" ]; then
  for place in "\${REPO%/*}" "\${WORK%/*}"; do chmod u+rwx -- "$place" 2>/dev/null; done
  if [ ! -d "\${WORK%/*}" ]; then rm -f -- "\${WORK%/*}"; fi
fi
rm -rf -- "$WORK"
mkdir -p -- "$WORK" || exit 1
# A pipe where git expects a file would make it wait until the time is over. No commit can hold one. \`find_large\` takes
# those of the work tree away.
# A link to one is as bad.
remove_waiting() { find "$@" \\( -type p -o -type l -exec test -p {} \\; \\) -exec rm -f -- {} + 2>/dev/null; }
remove_waiting "$REPO/.git/"
if [ -f "$REPO/.git" ]; then
  (cd -- "$REPO" && elsewhere=$(sed -n '1s/^gitdir: //p' .git) && remove_waiting "$elsewhere/") 2>/dev/null
fi
if [ -n "\${HOME:-}" ]; then remove_waiting "$HOME/.gitconfig" "\${XDG_CONFIG_HOME:-$HOME/.config}/git/" -maxdepth 1; fi
# A file of the configuration may include any other, a pipe or a device without end as well.
within_time() { if command -v timeout > /dev/null; then timeout 60 "$@"; else "$@"; fi; }
waits='git waits for a file that its configuration includes'
# The files with patterns and attributes that the configuration names.
is_waiting() {
  git config --type=path --get-regexp '^core\\.(excludes|attributes)file$' 2>/dev/null | while read -r key file; do
    if [ -p "$file" ]; then echo "$file"; fi
  done | grep -q .
}

warn() {
  about=$2
  case "$about" in *"$nl"*) about=\\"$(printf '%s' "$about" | sed 's/[\\\\"]/\\\\&/g' | awk '{ printf "%s%s", sep, $0; sep = "\\\\n" }')\\" ;; esac
  printf '%s\\t%s\\n' "$1" "$about" >> "$WORK/warnings"
}
# Our own repository: result, kept refs, new objects. It sees the agent's objects where that is wanted.
# It knows no filter: one would put what it takes into a store of its own and leave a pointer.
ours() { GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_DIR="$G" ${quietGit} "$@"; }
# The agent's repository with an index of ours; what it writes goes into our objects.
theirs() {
  GIT_DIR="$GITDIR" GIT_WORK_TREE="$REPO" GIT_OBJECT_DIRECTORY="$G/objects" GIT_INDEX_FILE="$INDEX" ${quietGit} "$@"
}
# Any directory as work tree of our repository.
tree_git() {
  (
    cd -- "$TREE" &&
      GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_DIR="$G" GIT_WORK_TREE="$TREE" \\
        GIT_INDEX_FILE="$INDEX" ${quietGit} "$@"
  )
}

${configureLfs}
begin() { # objects of the agent's repository, or nothing
  # Written by hand: there is nothing in an empty repository that git would have to decide.
  rm -rf -- "$G"
  mkdir -p "$G/info" "$G/objects/info" "$G/objects/pack" "$G/refs/heads" || return 1
  echo 'ref: refs/heads/main' > "$G/HEAD"
  if [ \${#BASE_COMMIT} -eq 64 ]; then
    printf '[core]\\n\\trepositoryFormatVersion = 1\\n\\tbare = true\\n[extensions]\\n\\tobjectFormat = sha256\\n'
  else printf '[core]\\n\\trepositoryFormatVersion = 0\\n\\tbare = true\\n'; fi > "$G/config" || return 1
  if [ -n "$1" ]; then printf '%s\\n' "$1" > "$G/objects/info/alternates"; fi
  if [ -d "$SETUP/git/objects" ]; then printf '%s\\n' "$SETUP/git/objects" >> "$G/objects/info/alternates"; fi
  if [ -n "\${SHALLOW:-}" ]; then printf '%s\\n' "$SHALLOW" > "$G/shallow"; fi
  if [ -f "$EXCLUDE" ]; then cat -- "$EXCLUDE" > "$G/info/exclude"; fi
  if [ -n "\${LFS_FILTER:-}" ]; then configure_lfs ours; fi
}

# Every object of a commit beyond the base can be read.
is_readable() { ours rev-list --objects --quiet "$1" --not "$BASE_COMMIT" 2>/dev/null; }
usable() {
  # The base was found to be readable before anything else.
  if [ -n "\${IS_AT_BASE:-}" ] && [ "$1" = "$BASE_COMMIT" ]; then return 0; fi
  [ -n "$1" ] && { grep -qxF -- "$1" "$WORK/usable" 2>/dev/null || is_readable "$1"; }
}
is_ancestor() { [ "$1" = "$2" ] || ours merge-base --is-ancestor "$1" "$2" 2>/dev/null; }
# It has commits that the base has not.
has_work() {
  [ -n "$1" ] && [ "$1" != "$BASE_COMMIT" ] && usable "$1" &&
    { grep -qxF -- "$1" "$WORK/beyond" 2>/dev/null || ! is_ancestor "$1" "$BASE_COMMIT"; }
}

${collectRefs}
${collectFiles}
${leftOutFiles}
# What set-up made or changed, as it was when set-up ended. Work of an earlier task that lay there before is none of it.
setup_changes() {
  if [ -f "$SETUP/files" ]; then cat "$SETUP/files"
  else ours diff-tree -r --no-renames "$BASE_COMMIT" "$(cat "$SETUP/tree")" 2>/dev/null; fi
}
# What set-up left and the agent did not touch is not the agent's work: back to the base, unless it was committed.
leave_setup_out() { # the function that runs git, the tip
  if [ ! -f "$SETUP/tree" ]; then return 0; fi
  setup=$(cat "$SETUP/tree")
  ours cat-file -e "$setup^{tree}" 2>/dev/null || return 0
  now=$("$1" write-tree)
  ours diff-tree -r --no-renames "$setup" "$now" > "$WORK/since-setup"
  ours diff-tree -r --no-renames "$BASE_COMMIT" "$2" > "$WORK/committed"
  # A follow-up has another base than set-up had: what differs from that base by more than set-up is work.
  setup_changes > "$WORK/set-up"
  ours diff-tree -r --no-renames "$BASE_COMMIT" "$setup" | grep -xF -f "$WORK/set-up" > "$WORK/by-setup"
  cut -f 2- "$WORK/since-setup" "$WORK/committed" > "$WORK/touched"
  awk -F "$tab" 'FILENAME == ARGV[1] { touched[$0] = 1; next } !($2 in touched)' "$WORK/touched" "$WORK/by-setup" > "$WORK/left"
  sed "s/^:\\([0-7]*\\) [0-7]* \\([0-9a-f]*\\) [0-9a-f]* [A-Z]*$tab/\\1 \\2$tab/" "$WORK/left" |
    "$1" update-index --index-info
  if [ ! -s "$WORK/left" ]; then return 0; fi
  # A directory that the base has not is named once, however much set-up put into it.
  ours ls-tree -r -d --name-only "$BASE_COMMIT" > "$WORK/base-directories"
  cut -f 2- "$WORK/left" | awk 'FILENAME == ARGV[1] { base[$0] = 1; next }
    /^"/ { print; next }
    { count = split($0, part, "/"); directory = part[1]
      for (i = 1; i < count; i++) { if (!(directory in base)) { print directory "/"; next } directory = directory "/" part[i + 1] }
      print }' "$WORK/base-directories" - | awk '!seen[$0]++' | head -n 50 | while IFS= read -r path; do warn SetupFileLeftOut "$path"; done
}

commit_tree() { # tree, message; then parents
  tree=$1 text=$2
  shift 2
  printf '%s' "$text" | ours commit-tree "$tree" "$@" -F -
}
tree_of() {
  if [ -n "\${BASE_TREE:-}" ] && [ "$1" = "$BASE_COMMIT" ]; then printf '%s\\n' "$BASE_TREE"
  else ours rev-parse --verify "$1^{tree}"; fi
}
# The base is there, with its tree.
find_base() {
  BASE_TREE=$(printf '%s^{tree}\\n' "$BASE_COMMIT" | ours cat-file --batch-check='%(objectname) %(objecttype)')
  case "$BASE_TREE" in *' tree') BASE_TREE=\${BASE_TREE% tree} ;; *) BASE_TREE= && return 1 ;; esac
}

# $1: the function that runs git on the index, $2: the commit the work tree was checked out from.
make_result() {
  leave_setup_out "$1" "$TIP"
  work=$("$1" write-tree) || return 1
  from=$2
  if ! usable "$from"; then from=$BASE_COMMIT; fi
  tip_tree=$(tree_of "$TIP")
  final=$tip_tree
  if [ "$from" = "$TIP" ]; then from_tree=$tip_tree; else from_tree=$(tree_of "$from"); fi
  if [ "$work" != "$from_tree" ]; then
    if [ "$from" = "$TIP" ]; then
      final=$work
    else
      loose=$(commit_tree "$work" "$MESSAGE" -p "$from")
      if both=$(ours merge-tree --write-tree "$TIP" "$loose" 2>/dev/null); then
        final=$(printf '%s\\n' "$both" | head -n 1)
      elif ! is_ancestor "$BASE_COMMIT" "$TIP" && is_ancestor "$BASE_COMMIT" "$from"; then
        # Commits without the base lie elsewhere, such as pages on a branch of their own: what builds on the base is the work.
        TIP=$from TIP_NAME=HEAD final=$work
        tip_tree=$from_tree
        grep -v '^WorkOnOtherBranch' "$WORK/warnings" > "$WORK/warnings.now"
        mv -- "$WORK/warnings.now" "$WORK/warnings"
      elif [ "$TIP" = "$BASE_COMMIT" ]; then
        final=$work
        if is_ancestor "$from" "$BASE_COMMIT"; then warn NewerCommitsUndone "$from"; fi
      else
        keep uncommitted "$loose" && warn UncommittedKept ""
      fi
    fi
  fi
  if is_ancestor "$BASE_COMMIT" "$TIP"; then
    RESULT=$TIP
    if [ "$final" != "$tip_tree" ]; then
      RESULT=$(commit_tree "$final" "$MESSAGE" -p "$TIP" $(merge_parents "$from"))
    fi
  else
    warn HistoryRewritten "$TIP_NAME"
    if has_work "$TIP"; then keep rewritten "$TIP"; fi
    RESULT=$BASE_COMMIT
    if [ "$final" != "$(tree_of "$BASE_COMMIT")" ]; then
      RESULT=$(commit_tree "$final" "$(rewritten_message)" -p "$BASE_COMMIT")
    fi
  fi
  [ -n "$RESULT" ]
}
# A merge the agent had begun is finished as one.
merge_parents() {
  if [ "$1" != "$TIP" ] || [ ! -f "\${GITDIR:-}/MERGE_HEAD" ]; then return 0; fi
  while read -r oid; do if usable "$oid"; then printf ' -p %s' "$oid"; fi; done < "$GITDIR/MERGE_HEAD"
}
rewritten_message() {
  fork=$(ours merge-base "$BASE_COMMIT" "$TIP" 2>/dev/null)
  printf '%s\\n' "$MESSAGE" | head -n 1
  printf '\\nThe agent replaced commits this work was to build on. Its files are kept here on top of\\n%s; the messages of its commits:\\n\\n' "$BASE_COMMIT"
  ours log --reverse --max-count=100 --format='%B' "$TIP" --not $fork | head -c 32768
  printf '%s\\n' "$MESSAGE" | tail -n +2
}

finish() {
  keep_the_rest "$RESULT"
  keep_lfs_objects
  pack_left_out
  changed=no
  if [ "$RESULT" != "$BASE_COMMIT" ]; then
    ours diff-tree -r --no-renames --diff-filter=AM "$BASE_COMMIT" "$RESULT" > "$WORK/added"
    large_files
    generated_files
    conflict_markers
    changed=yes
    # Only where the sandbox goes in any case: else it is kept, with its commits, until there is room.
    if [ -n "\${EVICTED:-}" ] && [ -n "$ROOM" ]; then
      size=$(ours rev-list --objects --disk-usage "$RESULT" --not "$BASE_COMMIT")
      if [ "\${size:-0}" -gt $((ROOM * 2)) ]; then echo 'error: there is no room left for the commits' >&2; return 1; fi
    fi
    printf '%s\\n' "$RESULT" > "$G/$RESULT_REF"
    ours bundle create --quiet "$WORK/out.bundle" "$BASE_COMMIT..$RESULT_REF" || return 1
  fi
  kept=no
  if [ -d "$G/${keptRefs}" ] && [ -n "$(ours for-each-ref --count=1 ${keptRefs})" ]; then
    if bundle_kept $(known_outside) || { [ -f "$WORK/not" ] && bundle_kept $(cat "$WORK/not"); }; then kept=yes
    # A bundle cannot be empty: refs at commits the base has, such as a tag on it, are named by their warning.
    elif [ -n "$(ours for-each-ref --count=1 --no-merged="$BASE_COMMIT" ${keptRefs})" ]; then warn KeptRefsLost ""; fi
  fi
  printf 'commit=%s\\nchanged=%s\\nkept=%s\\nleft_out=%s\\n' "$RESULT" "$changed" "$kept" "$LEFT_OUT" > "$WORK/answer"
}
bundle_kept() { # commits that are known where it will be fetched
  ours bundle create --quiet "$WORK/kept.bundle" --glob='${keptRefs}/*' --not "$BASE_COMMIT" "$@" 2>/dev/null
}
# Nobody could fetch from a bundle that needs commits of two repositories: changes of one submodule and nothing else may do
# without its history.
known_outside() {
  if [ ! -f "$WORK/not" ] || [ "$(sort -u "$WORK/not" | wc -l)" -gt 1 ]; then return 0; fi
  if ours for-each-ref --format='%(refname)' ${keptRefs} | grep -qv '^${keptRefs}/submodules/'; then return 0; fi
  sort -u "$WORK/not"
}
# An agent that uses Git LFS by itself commits pointers; what they stand for is nowhere but in its repository. That of what is
# kept beside the result is kept with it.
keep_lfs_objects() {
  if [ -z "\${LFS_FILTER:-}" ] && [ ! -d "\${GITDIR:-}/lfs/objects" ]; then return 0; fi
  lfs_pointers "$RESULT" --not "$BASE_COMMIT" | while read -r oid; do
    if [ -n "\${LFS_FILTER:-}" ]; then printf '%s\\n' "$oid" >> "$WORK/lfs"; else keep_lfs_object "$oid"; fi
  done
  lfs_pointers --glob='${keptRefs}/*' --not "$BASE_COMMIT" "$RESULT" | while read -r oid; do keep_lfs_object "$oid"; done
  return 0
}
lfs_pointers() { # what to look at, as \`git rev-list\` takes it
  ours rev-list --objects "$@" 2>/dev/null | cut -d ' ' -f 1 |
    ours cat-file --batch-check='%(objecttype) %(objectsize) %(objectname)' |
    awk '$1 == "blob" && $2 >= 120 && $2 < 1024 { print $3 }' | head -n 1000 | while read -r blob; do
      ours cat-file blob "$blob" | sed -n 's/^oid sha256:\\([0-9a-f]\\{64\\}\\)$/\\1/p' | head -n 1
    done
}
keep_lfs_object() { # oid
  file=$(printf '%s' "$1" | sed 's|^\\(..\\)\\(..\\)|\\1/\\2/&|')
  for store in "\${LFS_FILTER:+\${LFS_FILTER%/*}/lfs/objects}" "\${GITDIR:-}/lfs/objects"; do
    if [ -z "$store" ] || [ ! -f "$store/$file" ]; then continue; fi
    content=$(ours hash-object -w --no-filters --stdin < "$store/$file") &&
      keep "lfs/$1" "$content" && warn LfsObjectKept "$1"
    return
  done
}
large_files() {
  sed "/^:[0-7]* 160000 /d; s/^:[0-7]* [0-7]* [0-9a-f]* \\([0-9a-f]*\\) [A-Z]*$tab/\\1 /" "$WORK/added" |
    ours cat-file --batch-check='%(objectsize) %(rest)' 2>/dev/null |
    awk -v limit="\${LARGE_FILE_BYTES:-10485760}" '$1 + 0 > limit + 0 && ++count <= 20' > "$WORK/large"
  while read -r size path; do warn LargeFile "$path"; done < "$WORK/large"
}

${generatedFiles}

# Files of the result in which a merge was left half done.
conflict_markers() {
  ours diff-tree -r --no-renames --check "$BASE_COMMIT" "$RESULT" 2>/dev/null |
    awk 'sub(/:[0-9]*: leftover conflict marker\\.*$/, "") && !seen[$0]++ && ++count <= 20' > "$WORK/markers"
  while IFS= read -r path; do warn ConflictMarkers "$path"; done < "$WORK/markers"
}

# Commits at which the agent's history ends, such as one it fetched a part of. git calls a commit that as well where what it
# builds on is there; the history of the base would seem to be another one.
ends_of_history() {
  if [ ! -f "$GITDIR/shallow" ]; then return 0; fi
  rm -f -- "$G/shallow"
  head -n 1000 "$GITDIR/shallow" | while read -r oid; do
    parents=$(ours cat-file commit "$oid" 2>/dev/null | sed -n '/^$/q; s/^parent //p')
    for parent in $parents; do
      if ! ours cat-file -e "$parent" 2>/dev/null; then printf '%s\\n' "$oid"; break; fi
    done
  done > "$WORK/shallow"
  if [ -s "$WORK/shallow" ]; then mv -- "$WORK/shallow" "$G/shallow"; fi
}
base_from_bundle() {
  ours fetch --quiet --no-tags "$BASE_BUNDLE" "$BASE_REF:refs/corral/base" && usable "$BASE_COMMIT" &&
    ours cat-file -e "$BASE_COMMIT^{tree}"
}
# What a crash leaves: indexes of packs that are none.
mend_packs() {
  rm -f -- "$GITDIR/objects/pack/multi-pack-index"
  for pack in "$GITDIR"/objects/pack/*.pack; do
    index=\${pack%.pack}.idx
    if [ ! -f "$pack" ] || git show-index < "$index" > /dev/null 2>&1; then continue; fi
    rm -f -- "$index"
    ours index-pack -o "$index" "$pack" > /dev/null 2>&1
  done
}
# Objects without content. Contents that are still among the files of the work tree are written again.
mend_objects() {
  if [ -z "$(find "$GITDIR/objects" -type f -size 0 -print -exec rm -f -- {} + 2>/dev/null)" ]; then return 0; fi
  index_of_tree "$BASE_COMMIT" 2>/dev/null
}
# Whether files, branches and stashes are as they were when LAST_STATE was written; it is written anew.
unchanged() {
  state=$({ theirs write-tree; cat "$WORK/refs" "$WORK/others" "$WORK/states"; wc -l < "$WORK/head-log"; printf '%s\\n' "$HEAD_COMMIT" "$STASHES"; } | ours hash-object --stdin)
  if [ "$state" = "$(cat "$LAST_STATE" 2>/dev/null)" ]; then printf 'unchanged=yes\\n' > "$WORK/answer"; return 0; fi
  printf '%s' "$state" > "$WORK/state"
  return 1
}
list_links() {
  EMPTY_TREE=4b825dc642cb6eb9a060e54bf8d69288fbee4904
  if [ \${#BASE_COMMIT} -eq 64 ]; then EMPTY_TREE=6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321; fi
  ours ls-tree -r -z "$BASE_COMMIT" | as_lines | sed -n "s/^160000 commit [0-9a-f]*$tab//p" > "$WORK/links"
}

try() {
  : > "$WORK/warnings"
  rm -f -- "$WORK/left-out"
  INDEX="$WORK/index"
  GITDIR="$REPO/.git" STASHES= HEAD_COMMIT= TIP_NAME= IS_AT_BASE= BASE_TREE=
  if [ ! -d "$REPO" ]; then echo 'fatal: the work tree is gone' >&2; return 1; fi
  # Beside a working agent nothing of its is touched.
  if [ -z "\${LAST_STATE:-}" ]; then
    if [ ! -r "$REPO" ] || [ ! -w "$REPO" ] || [ ! -x "$REPO" ]; then chmod u+rwx -- "$REPO" 2>/dev/null; fi
    # Closed, not damaged: with its permissions back the history is there.
    find "$REPO/.git" \\( -type d ! -perm -700 -o -type f ! -perm -400 \\) -exec chmod u+rwX -- {} \\; 2>/dev/null
  fi
  # A link to the root directory, say: what lies there is the sandbox, not the work.
  if top=$(cd -- "$REPO" 2>/dev/null && pwd -P); then
    case "$(cd -- "$WORK" && pwd -P)/" in
      "\${top%/}/"*) echo 'fatal: the work tree is gone: its name leads to a directory around it' >&2; return 1 ;;
    esac
  fi
  find_large
  find_room
  # From the second way on nothing of the agent's own configuration counts.
  if [ "$1" != 1 ]; then export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1; fi
  case "$1" in
    1)
      cd -- "$REPO" || return 1
      GITDIR=$(within_time git rev-parse --absolute-git-dir --git-path objects)
      case $? in 0) ;; 124) echo "error: $waits" >&2; return 1 ;; *) return 1 ;; esac
      if is_waiting; then echo "error: $waits" >&2; return 1; fi
      objects=\${GITDIR##*"$nl"} GITDIR=\${GITDIR%%"$nl"*}
      objects=$(cd -- "$objects" && pwd) || return 1
      begin "$objects" || return 1
      ends_of_history
      find_base || return 1
      list_links && read_refs && choose_tip || return 1
      index_of_theirs || return 1
      if [ -n "\${LAST_STATE:-}" ] && unchanged; then return 0; fi
      make_result theirs "$HEAD_COMMIT" && finish
      ;;
    2)
      warn RepositoryDamaged "$(reason)"
      if [ -d "$GITDIR" ]; then chmod -R u+rwX -- "$GITDIR" 2>/dev/null; fi
      if [ ! -d "$GITDIR/objects" ]; then return 1; fi
      begin "$GITDIR/objects" || return 1
      case "\${FAILURE:-}" in *"$waits"*) rm -f -- "$GITDIR/config" && cp -- "$G/config" "$GITDIR/config" ;; esac
      mend_packs
      base_from_bundle && list_links || return 1
      mend_objects
      read_refs && choose_tip || return 1
      if usable "$HEAD_COMMIT"; then from=$HEAD_COMMIT; else from=$BASE_COMMIT; fi
      index_of_tree "$from" && make_result tree_git "$from" && finish
      ;;
    3 | 4)
      if [ -n "\${REJECTED:-}" ]; then warn CommitsNotAccepted "$REJECTED"
      else
        warn RepositoryDamaged "$(reason)"
        warn HistoryLost ""
      fi
      begin "" && base_from_bundle && list_links || return 1
      if [ "$1" = 4 ]; then
        warn AttributesIgnored ""
        printf '* -text -ident !filter !working-tree-encoding\\n' > "$G/info/attributes"
      fi
      for name in refs all unnamed others places dropped usable types beyond; do : > "$WORK/$name"; done
      TIP=$BASE_COMMIT
      index_of_tree "$BASE_COMMIT" && make_result tree_git "$BASE_COMMIT" && finish
      ;;
  esac
}
reason() {
  { printf '%s\\n' "\${FAILURE:-}"; cat "$WORK"/errors.* 2>/dev/null; } | grep -E '^(fatal|error):' | head -n 1 | head -c 300
}

`

/**
 * Takes the state of a work tree, and the commits the agent made wherever they are, out as bundles.
 *
 * It reads the agent's repository and writes only below WORK: index and objects are its own, HEAD, refs and the index of
 * the repository stay as they are. So it may run beside a working agent as well: a checkpoint is this script with WAYS=1
 * and a WORK directory of its own.
 *
 * In: REPO (work tree), WORK (directory of its own, emptied first), BASE_COMMIT, TASK_BRANCH, RESULT_REF, MESSAGE,
 * AUTHOR_NAME, AUTHOR_EMAIL, COMMITTER_NAME, COMMITTER_EMAIL (the author where unset), EXCLUDE (file of patterns, may be missing),
 * REFS (file `noteRefs` wrote, may be missing), SETUP (directory `markSetupScript` wrote, may be
 * missing), WAYS: which of these to try, in order, until one works:
 *   1  the agent's repository as it is
 *   2  its objects and commits, on top of the base from BASE_BUNDLE (BASE_REF in it), with a fresh index
 *   3  only the files of the work tree compared with the base from BASE_BUNDLE
 *   4  the same without the attributes of the work tree: bytes as they are on disk
 * FAILURE: what git said in an earlier run that had no result. REJECTED: why a result of the first two ways was not accepted, empty where none was made; LEAVE_OUT: names of files whose
 * changes are left out then. MAX_FILE_BYTES: the largest file a result may hold; larger ones are left out.
 * EVICTED: set where the node ended the agent for what it took of the disk; then, and where the disk is nearly full, files that find no
 * room are left out, the largest first. LFS_FILTER: `lfsFilterScript` as a file where files go to Git LFS, else empty. SHALLOW: commits at which a shallow base ends. LAST_STATE (a file, may be missing): when files, branches and stashes are
 * as it says, nothing is made and the answer is `unchanged=yes`; else WORK/state holds what it should say next.
 *
 * Out: `commit=<id>`, `changed=yes|no`, `kept=yes|no`, `left_out=yes|no|lost`, `lfs=<oid>` for contents of Git LFS it needs, then `warning=<code><TAB><path or detail>` lines. WORK/out.bundle
 * has the result on RESULT_REF when changed, WORK/kept.bundle everything else below `refs/corral/kept` when kept,
 * WORK/left-out.tar the files that are in neither where left_out is yes.
 */
export const collectScript: string = `${functions}for way in $WAYS; do
  if (try "$way") 2> "$WORK/errors.$way"; then
    cat "$WORK/answer"
    if [ -f "$WORK/lfs" ]; then sort -u "$WORK/lfs" | sed 's/^/lfs=/'; fi
    if [ -s "$WORK/warnings" ]; then sort -u "$WORK/warnings" | sed 's/^/warning=/' | head -c 49152; fi
    exit 0
  fi
done
cat "$WORK"/errors.* >&2
exit ${nothingCollected}
`

/** Files of set-up that git is told to ignore at most: git looks at every pattern for every file. */
const maxIgnoredSetupFiles = 500

/**
 * Whether git itself sees nothing but the base: on the task's branch at BASE_COMMIT, no file changed, none new that is not
 * ignored, none it was told not to look at. One look in place of the dozen that `mark` takes to be sure of what an agent left.
 */
const isCleanFunction = `is_clean() (
  cd -- "$REPO" || exit 1
  unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
  seen=$(${quietGit} \\
    status --porcelain=v2 --branch --untracked-files=normal --ignore-submodules=none) || exit 1
  [ "$seen" = "# branch.oid $BASE_COMMIT
# branch.head $TASK_BRANCH" ] || exit 1
  ! ${quietGit} ls-files -v | grep -q '^[a-zS]'
)`

/**
 * Remembers what set-up left in the work tree, so that it is not taken for work of the agent, and lets git ignore its new
 * files. Environment as for `collectScript`; writes SETUP/tree and SETUP/git when set-up changed anything. FROM_SNAPSHOT: `yes` where
 * the work tree is a sealed snapshot's, which has no pipes that git would wait for.
 */
export const markSetupScript: string = `${isCleanFunction}
if [ "\${FROM_SNAPSHOT:-}" = yes ] && is_clean 2> /dev/null; then
  rm -rf -- "$SETUP"
  exit 0
fi
${functions}
mark() {
  : > "$WORK/warnings"
  INDEX="$WORK/index"
  cd -- "$REPO" || return 1
  GITDIR=$(git rev-parse --absolute-git-dir) || return 1
  objects=$(git rev-parse --git-path objects) && objects=$(cd -- "$objects" && pwd) || return 1
  rm -rf -- "$SETUP"
  : > "$WORK/places"
  ROOM=
  find_large
  begin "$objects" && list_links || return 1
  # Where set-up began: at the base, or at work of an earlier task on top of it.
  HEAD_COMMIT=$(awk -v name="refs/heads/$TASK_BRANCH" '$2 == name { print $1 }' "$REFS" 2>/dev/null)
  if ! usable "$HEAD_COMMIT"; then HEAD_COMMIT=$BASE_COMMIT; fi
  index_of_theirs || return 1
  tree=$(theirs write-tree) || return 1
  if [ "$tree" = "$(tree_of "$HEAD_COMMIT")" ]; then return 0; fi
  mkdir -p -- "$SETUP"
  rm -f "$G/objects/info/alternates"
  cp -R -- "$G" "$SETUP/git"
  printf '%s\\n' "$objects" > "$G/objects/info/alternates"
  ours diff-tree -r --no-renames "$HEAD_COMMIT" "$tree" > "$SETUP/files"
  # A directory that takes the place of one of these files is not ignored.
  ours diff-tree -r --no-renames --diff-filter=A --name-only -z "$HEAD_COMMIT" "$tree" | tr '\\0' '\\n' |
    sed 's/[][*?!#\\\\ ]/\\\\&/g; s|.*|/&\\n!/&/|' > "$WORK/patterns"
  mkdir -p "$GITDIR/info"
  if [ "$(wc -l < "$WORK/patterns")" -le ${2 * maxIgnoredSetupFiles} ]; then cat "$WORK/patterns" >> "$GITDIR/info/exclude"; fi
  printf '%s\\n' "$tree" > "$SETUP/tree"
}
mark
`
