import { noteRefs } from '../sandbox/collect-refs.js'
import { quietGit } from '../sandbox/quiet-git.js'

/** Exit code of `inPlaceScript` where the work tree is not what the former task left: it has to be checked out anew. */
export const notInPlace = 76

/**
 * Makes the work tree of an ended task that of its follow-up, as it lies there: the task's branch at the commit that was
 * accepted of it, and nothing in the tree touched.
 *
 * In: REPO SCRATCH FORMER (marker of the former task) MARKER BASE_COMMIT NEW_BRANCH RESULT (bundle with the accepted commit;
 * may be missing) RESULT_REF REFS (file for `noteRefs`).
 *
 * Files that differ from the accepted commit are fine where they were left out of the result, as those that set-up changes
 * are. A file that differs although the result has it changed means that the result is not what lies here: an agent may
 * end on another branch than its work. Taken as it is, the follow-up would undo that work.
 *
 * Branches with commits beyond the accepted one were kept with the former task. They make way, or they would be taken for
 * work of the follow-up.
 */
export const inPlaceScript: string = `set -u
if [ -f "$MARKER" ]; then exit 0; fi
${noteRefs}
no() { echo "not in place: $1"; exit ${notInPlace}; }
[ -f "$FORMER" ] || no "the former task was not here"
cd -- "$REPO" || no "there is no work tree"
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
[ "$(git rev-parse --show-toplevel 2> /dev/null)" = "$(pwd -P)" ] || no "the repository cannot be read"
rm -f .git/index.lock .git/HEAD.lock
if ! git cat-file -e "$BASE_COMMIT^{commit}" 2> /dev/null; then
  [ -f "$RESULT" ] || no "the result is not here"
  ${quietGit} fetch --quiet --no-tags "$RESULT" "$RESULT_REF:refs/corral/held" || no "the result cannot be read"
  git update-ref -d refs/corral/held
  git cat-file -e "$BASE_COMMIT^{commit}" || no "the result is another one"
fi
before=$(git rev-parse --verify --quiet 'HEAD^{commit}') || no "HEAD is no commit"
# An index of its own, which knows the files the result added and what the agent's index knows of the others.
index=$SCRATCH/in-place-index
cp -- "$(git rev-parse --git-path index)" "$index" || no "there is no index"
looks() { GIT_INDEX_FILE="$index" ${quietGit} "$@"; }
looks read-tree --reset "$BASE_COMMIT" || no "the index cannot be read"
differs=$(looks diff --name-only --no-renames --no-ext-diff --ignore-submodules=all) || no "the work tree cannot be read"
rm -f -- "$index"
if [ -n "$differs" ]; then
  result=$(${quietGit} diff --name-only --no-renames --ignore-submodules=all "$before" "$BASE_COMMIT" --) || no "HEAD cannot be read"
  if [ -n "$result" ] && printf '%s\\n' "$result" | grep -qxF -- "$differs"; then no "the work tree is not the result"; fi
fi
git for-each-ref --format='%(objectname) %(refname)' --no-merged "$BASE_COMMIT" refs/heads | while read -r oid name; do
  git update-ref "refs/corral/former/\${name#refs/heads/}" "$oid" && git update-ref -d "$name"
done
git update-ref "refs/heads/$NEW_BRANCH" "$BASE_COMMIT" || no "the branch cannot be made"
git symbolic-ref HEAD "refs/heads/$NEW_BRANCH" || no "HEAD cannot be set"
${quietGit} reset --quiet --mixed || no "the index cannot be written"
note_refs
rm -f -- "$SCRATCH/checkpoint-state"
: > "$MARKER.new"
mv -- "$MARKER.new" "$MARKER"
`
