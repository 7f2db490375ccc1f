import { noteRefs } from './collect-refs.js'
import { configureLfs } from './lfs-filter.js'
import { quietGit } from './quiet-git.js'

/**
 * The shell scripts a task runs inside its sandbox. Values reach them through the environment only, never by
 * substitution into the text. Each is safe to repeat.
 */

/** The pack and the tags of a bundle, put into a git directory as they are. */
const placePack = `place_pack() {
  pack=$1/objects/pack/pack-$PACK_NAME
  # The index comes last: with it the pack is whole, and in the tree of a snapshot it may be there already.
  if [ -n "$PACK_NAME" ] && [ ! -f "$pack.idx" ]; then
    tail -c "+$((PACK_OFFSET + 1))" "$BUNDLE" > "$pack.pack"
    mv -- "$PACK_INDEX" "$pack.idx"
  fi
  head -c "$PACK_OFFSET" "$BUNDLE" | LC_ALL=C sed -n '/^[0-9a-f]* refs\\/tags\\//p' > "$1/packed-refs"
}`

/**
 * Who commits, written into a configuration file that has no user yet. A name that needs no quoting is appended without a
 * process for each line.
 */
const writeIdentity = `write_identity() { # file, section, name, email
  case "$3$4" in
    *\\\\* | *'"'* | *'
'*)
      git config --file "$1" "$2.name" "$3"
      git config --file "$1" "$2.email" "$4"
      ;;
    *) printf '[%s]\\n\\tname = "%s"\\n\\temail = "%s"\\n' "$2" "$3" "$4" >> "$1" ;;
  esac
}`

/**
 * Whether a configuration file has one user, as `write_identity` wrote it, no committer and no other file: then there is nothing to
 * set, which takes a process for each value.
 */
export const hasIdentity: string = `has_identity() ( # file, name, email
  tab=$(printf '\\t') section= users=0 name= email=
  while IFS= read -r line; do
    case "$line" in
      '[user]') section=user users=$((users + 1)) ;;
      *'['*[Uu][Ss][Ee][Rr]* | *'['*[Cc][Oo][Mm][Mm][Ii][Tt][Tt][Ee][Rr]* | *'['*[Ii][Nn][Cc][Ll][Uu][Dd][Ee]*) exit 1 ;;
      '['*) section= ;;
      "\${tab}name = \\"$2\\"") if [ "$section" = user ]; then name=\${name}yes; fi ;;
      "\${tab}email = \\"$3\\"") if [ "$section" = user ]; then email=\${email}yes; fi ;;
      *) if [ "$section" = user ]; then exit 1; fi ;;
    esac
  done < "$1"
  [ "$users $name $email" = '1 yes yes' ]
)`

/**
 * In: BUNDLE BASE_COMMIT BASE_REF BASE_BRANCH (empty for a detached HEAD) NEW_BRANCH REPO MARKER SHALLOW (commits at
 * which a shallow history ends) PARTIAL (yes where the pack has contents of files only for the base) USES_LFS (yes where its
 * attributes name Git LFS) LFS_FILTER (`lfsFilterScript` as a file; empty where contents of Git LFS files were not asked for)
 * AUTHOR_NAME AUTHOR_EMAIL; COMMITTER_NAME COMMITTER_EMAIL (where they are another one); PACK_NAME PACK_OFFSET PACK_INDEX (the
 * pack in the bundle, where it begins and a file with its index; empty where there is none); WORK_BUNDLE WORK_REF (earlier
 * work to go on from); REFS (file for `noteRefs`). A marker with this task's uid says it is already done.
 *
 * With its index the pack is put in place as it is. A fetch from the bundle would unpack and check every object of the
 * history once more, which takes seconds for 50 MB.
 *
 * git refuses to fetch into the branch HEAD names, and `init.defaultBranch` decides which one that is: HEAD is moved off
 * every branch first, so that the default of the sandbox's git does not matter. The identity goes into the home directory
 * as well: the agent may commit in other repositories than this one.
 */
export const checkoutScript: string = `set -eu
${placePack}
${writeIdentity}
${configureLfs}
${noteRefs}
if [ -f "$MARKER" ]; then exit 0; fi
# In a sandbox that was held for this task the tree of a snapshot may be mounted here: it can be emptied, not removed.
rm -rf -- "$REPO" 2> /dev/null || find "$REPO" -mindepth 1 -delete
mkdir -p -- "$REPO"
cd -- "$REPO"
format=
if [ \${#BASE_COMMIT} -eq 64 ]; then format=--object-format=sha256; fi
${quietGit} init --quiet $format
git symbolic-ref HEAD refs/corral/unborn
write_identity .git/config user "$AUTHOR_NAME" "$AUTHOR_EMAIL"
if [ -n "\${COMMITTER_NAME:-}" ]; then write_identity .git/config committer "$COMMITTER_NAME" "$COMMITTER_EMAIL"; fi
# Where the sandbox has git-lfs, a checkout would ask a server for every file and fail, and a commit would leave the content
# of new files behind. Our own filter contacts no server; without one pointers stay pointers and new files are stored in git.
if [ -n "\${LFS_FILTER:-}" ]; then configure_lfs git
elif [ "\${USES_LFS:-}" = yes ]; then mkdir -p .git/info && echo '* !filter' >> .git/info/attributes; fi
if [ -z "\${GIT_CONFIG_GLOBAL:-}" ] && [ ! -e "$HOME/.gitconfig" ] && [ ! -e "\${XDG_CONFIG_HOME:-$HOME/.config}/git/config" ]; then
  (write_identity "$HOME/.gitconfig" user "$AUTHOR_NAME" "$AUTHOR_EMAIL") 2> /dev/null || true
else
  for key in name email; do
    git config --global "user.$key" > /dev/null 2>&1 && continue
    if [ $key = name ]; then value=$AUTHOR_NAME; else value=$AUTHOR_EMAIL; fi
    git config --global "user.$key" "$value" 2> /dev/null || true
  done
fi
if [ -n "$SHALLOW" ]; then printf '%s\\n' "$SHALLOW" > .git/shallow; fi
if [ -n "\${PACK_INDEX:-}" ]; then
  place_pack .git
  # The pack lacks contents of earlier versions of files. git has to know, or its housekeeping would call that damage.
  if [ "\${PARTIAL:-}" = yes ]; then
    : > ".git/objects/pack/pack-$PACK_NAME.promisor"
    git config core.repositoryFormatVersion 1
    git config extensions.partialClone not-in-the-sandbox
    git config remote.not-in-the-sandbox.promisor true
  fi
  git update-ref refs/corral/base "$BASE_COMMIT"
else
  ${quietGit} fetch --quiet --no-tags "$BUNDLE" "$BASE_REF:refs/corral/base" 'refs/tags/*:refs/tags/*'
fi
if [ -n "$BASE_BRANCH" ]; then git update-ref "refs/heads/$BASE_BRANCH" refs/corral/base; fi
if [ "$NEW_BRANCH" = "$BASE_BRANCH" ]; then ${quietGit} checkout --quiet "$BASE_BRANCH" --
else ${quietGit} checkout --quiet --no-track -b "$NEW_BRANCH" refs/corral/base; fi
git update-ref -d refs/corral/base
if [ -n "\${WORK_BUNDLE:-}" ]; then
  ${quietGit} fetch --quiet --no-tags "$WORK_BUNDLE" "$WORK_REF:refs/corral/work"
  ${quietGit} reset --quiet --hard refs/corral/work
  git update-ref -d refs/corral/work
  rm -f -- "$WORK_BUNDLE"
fi
note_refs
rm -f -- "$BUNDLE"
: > "$MARKER.new"
mv -- "$MARKER.new" "$MARKER"
`

/**
 * Checks the base out on the tree of a snapshot. Environment as for `checkoutScript`. Files that git ignores and those that
 * set-up left stay; every tracked file is the base's afterwards, and no branch or stash of the build is left. Nothing is removed
 * that does not have to be: a removed directory of the snapshot would have to be written anew.
 */
export const checkoutOntoScript: string = `set -eu
${placePack}
${writeIdentity}
${hasIdentity}
${configureLfs}
${noteRefs}
if [ -f "$MARKER" ]; then exit 0; fi
cd -- "$REPO"
rm -rf .git/index.lock .git/HEAD.lock .git/config.lock .git/shallow \\
  .git/rebase-merge .git/rebase-apply .git/MERGE_HEAD .git/CHERRY_PICK_HEAD
if [ -n "$SHALLOW" ]; then printf '%s\\n' "$SHALLOW" > .git/shallow; fi
place_pack .git
if [ "\${PARTIAL:-}" = yes ]; then
  : > ".git/objects/pack/pack-$PACK_NAME.promisor"
  git config core.repositoryFormatVersion 1
  git config extensions.partialClone not-in-the-sandbox
  git config remote.not-in-the-sandbox.promisor true
fi
if [ -n "\${LFS_FILTER:-}" ]; then configure_lfs git
elif [ "\${USES_LFS:-}" = yes ]; then
  mkdir -p .git/info && { grep -qxF '* !filter' .git/info/attributes 2> /dev/null || echo '* !filter' >> .git/info/attributes; }
fi
# HEAD leaves its branch without a look at the files, which follow below: no branch may be deleted that is checked out.
git update-ref --no-deref HEAD "$BASE_COMMIT"
git for-each-ref --format='delete %(refname)' refs/heads refs/remotes refs/stash refs/corral | git update-ref --stdin
rm -rf .git/logs
if [ -n "$BASE_BRANCH" ] && [ "$BASE_BRANCH" != "$NEW_BRANCH" ]; then git update-ref "refs/heads/$BASE_BRANCH" "$BASE_COMMIT"; fi
${quietGit} checkout --quiet --force --no-track -B "$NEW_BRANCH" "$BASE_COMMIT" --
# Replaced, not appended: git refuses to set a value that is there twice, which the agent may want to.
if ! has_identity .git/config "$AUTHOR_NAME" "$AUTHOR_EMAIL"; then
  git config user.name "$AUTHOR_NAME"
  git config user.email "$AUTHOR_EMAIL"
  if grep -q committer .git/config; then git config --remove-section committer || true; fi
fi
if [ -n "\${COMMITTER_NAME:-}" ]; then write_identity .git/config committer "$COMMITTER_NAME" "$COMMITTER_EMAIL"; fi
if [ -e "$HOME/.gitconfig" ]; then
  git config --global user.name "$AUTHOR_NAME"
  git config --global user.email "$AUTHOR_EMAIL"
else (write_identity "$HOME/.gitconfig" user "$AUTHOR_NAME" "$AUTHOR_EMAIL") 2> /dev/null || true; fi
if [ -n "\${WORK_BUNDLE:-}" ]; then
  ${quietGit} fetch --quiet --no-tags "$WORK_BUNDLE" "$WORK_REF:refs/corral/work"
  ${quietGit} reset --quiet --hard refs/corral/work
  git update-ref -d refs/corral/work
  rm -f -- "$WORK_BUNDLE"
fi
note_refs
rm -f -- "$BUNDLE" "$PACK_INDEX"
: > "$MARKER.new"
mv -- "$MARKER.new" "$MARKER"
`

/**
 * Lets git trust the index of a checkout without reading every file again. In: REPO. Files of the second in which the index was
 * written may have changed after it; git reads them anew each time until the index is of a later second, and in a snapshot that
 * never comes. Where a file did change, the index stays as it is.
 */
export const settleIndexScript: string = `set -eu
cd -- "$REPO"
looks=0
while [ "$(date +%s)" -le "$(stat -c %Y .git/index)" ]; do
  # Its time lies in the future: set-up has changed that.
  if [ $looks -ge 60 ]; then exit 0; fi
  looks=$((looks + 1))
  sleep 0.05
done
${quietGit} update-index -q --refresh || exit 0
if ${quietGit} diff-files --quiet; then touch .git/index; fi
`

/**
 * Checks a submodule out as `git submodule update --init` would, from a bundle.
 *
 * In: REPO PARENT_PATH (work tree it belongs to, from REPO; empty for REPO itself) NAME MODULE_PATH (from its parent) URL
 * COMMIT BUNDLE PACK_NAME PACK_OFFSET PACK_INDEX AUTHOR_NAME AUTHOR_EMAIL MARKER.
 */
export const submoduleScript: string = `set -eu
${placePack}
if [ -f "$MARKER" ]; then exit 0; fi
parent=$REPO\${PARENT_PATH:+/$PARENT_PATH}
cd -- "$parent"
home=$(git rev-parse --absolute-git-dir)/modules/$NAME
rm -rf -- "$home" "$MODULE_PATH/.git"
mkdir -p -- "\${home%/*}" "$MODULE_PATH"
format=
if [ \${#COMMIT} -eq 64 ]; then format=--object-format=sha256; fi
${quietGit} init --quiet $format --separate-git-dir "$home" -- "$MODULE_PATH"
git config "submodule.$NAME.url" "$URL"
git config "submodule.$NAME.active" true
cd -- "$MODULE_PATH"
git config core.worktree "$(pwd)"
git config user.name "$AUTHOR_NAME"
git config user.email "$AUTHOR_EMAIL"
case "$URL" in
  ./* | ../*) ;;
  *) git config remote.origin.url "$URL" && git config remote.origin.fetch '+refs/heads/*:refs/remotes/origin/*' ;;
esac
place_pack "$home"
${quietGit} checkout --quiet --force --detach "$COMMIT" --
rm -f -- "$BUNDLE"
: > "$MARKER"
`

/**
 * In: REPO EXCLUDED (newline-separated paths) KEPT (file). Keeps injected files that the repository does not track out of
 * commits; the patterns are also written to KEPT, for a result that is made without the agent's repository.
 */
export const excludeScript: string = `set -eu
cd -- "$REPO"
mkdir -p .git/info
printf '%s\\n' "$EXCLUDED" | while IFS= read -r path; do
  if [ -z "$path" ] || git ls-files --error-unmatch -- "$path" >/dev/null 2>&1; then continue; fi
  grep -qxF -- "/$path" .git/info/exclude 2>/dev/null || printf '/%s\\n' "$path" >> .git/info/exclude
done
cp .git/info/exclude "$KEPT"
`

/** In: REPO ARCHIVE. The work tree as a tar file; what cannot be read is left out. */
export const archiveScript: string = `set -u
tar -C "$REPO" -cf "$ARCHIVE" --ignore-failed-read . || [ -s "$ARCHIVE" ]
`

/**
 * Before the command of set-up, on its first line, so that its lines keep their numbers: the line of it that fails is said, since
 * `test -f x` says nothing of its own. Not for what a sourced file or a shell of its own does.
 */
const tellFailedLine = `set_up_failed() { local lines at; [ -z "\${FUNCNAME[1]-}" ] || return 0; mapfile -t lines <<< "\${SETUP-}"; at="\${lines[$1 - 1]-}"; case $at in "" | "(" | ")") ;; *) printf "set-up ended at line %s: %s\\n" "$1" "$at" >&2 ;; esac; }; trap "set_up_failed \\$LINENO" ERR; `

/**
 * In: REPO SETUP CORRAL_PATH (directories for PATH; may be empty). The command wins over the repository's own file. 79:
 * there is nothing to run. With pipefail a failed `npm ci | tail` is a failure.
 */
export const setupScript: string = `cd -- "$REPO" || exit 1
if [ -n "\${CORRAL_PATH:-}" ]; then PATH=$CORRAL_PATH:$PATH; export PATH; fi
unset CORRAL_PATH
for scope in \${CORRAL_NPM_SCOPES:-}; do set -- "$@" "npm_config_$scope:registry=$npm_config_registry"; done
unset CORRAL_NPM_SCOPES
if [ -n "\${CORRAL_PYTHON:-}" ] && ! command -v python > /dev/null && command -v python3 > /dev/null; then
  mkdir -p "$HOME/.local/bin" && ln -sf "$(command -v python3)" "$HOME/.local/bin/python"
fi
unset CORRAL_PYTHON
if command -v bash > /dev/null; then strict='bash -euo pipefail' told='${tellFailedLine}'; else strict='/bin/sh -eu' told=; fi
if [ -n "$SETUP" ]; then exec env "$@" $strict -c "$told$SETUP"; fi
if [ -x .corral/setup ]; then exec env "$@" ./.corral/setup; fi
if [ -f .corral/setup ]; then exec env "$@" $strict .corral/setup; fi
exit 79
`

export const nothingToSetUp = 79
