/**
 * The shell scripts a task runs inside its sandbox. Values reach them through the environment only, never by
 * substitution into the text. Each is safe to repeat.
 */

const quiet = 'git -c core.hooksPath=/dev/null -c advice.detachedHead=false -c commit.gpgsign=false -c gc.auto=0'

/** In: BUNDLE BASE_REF BASE_BRANCH NEW_BRANCH REPO MARKER. A marker with this task's uid says it is already done. */
export const checkoutScript: string = `set -eu
if [ -f "$MARKER" ]; then exit 0; fi
rm -rf -- "$REPO"
mkdir -p -- "$REPO"
cd -- "$REPO"
${quiet} init --quiet
git config user.name "$AUTHOR_NAME"
git config user.email "$AUTHOR_EMAIL"
${quiet} fetch --quiet --no-tags "$BUNDLE" "$BASE_REF:refs/heads/$BASE_BRANCH"
if [ "$NEW_BRANCH" = "$BASE_BRANCH" ]; then ${quiet} checkout --quiet "$BASE_BRANCH"
else ${quiet} checkout --quiet -b "$NEW_BRANCH" "$BASE_BRANCH"; fi
rm -f -- "$BUNDLE"
: > "$MARKER.new"
mv -- "$MARKER.new" "$MARKER"
`

/** In: REPO EXCLUDED (newline-separated paths). Keeps injected files that the repository does not track out of commits. */
export const excludeScript: string = `set -eu
cd -- "$REPO"
mkdir -p .git/info
printf '%s\\n' "$EXCLUDED" | while IFS= read -r path; do
  if [ -z "$path" ] || git ls-files --error-unmatch -- "$path" >/dev/null 2>&1; then continue; fi
  grep -qxF -- "/$path" .git/info/exclude 2>/dev/null || printf '/%s\\n' "$path" >> .git/info/exclude
done
`

/** In: REPO BASE_COMMIT RESULT_REF BUNDLE MESSAGE. Out: \`commit=<id>\`, and \`changed=yes|no\`. */
export const collectScript: string = `set -eu
cd -- "$REPO"
rm -f .git/index.lock .git/HEAD.lock .git/config.lock
find .git/refs -name '*.lock' -delete 2>/dev/null || true
${quiet} add --all
if ! ${quiet} diff --cached --quiet; then
  ${quiet} commit --quiet --no-verify -m "$MESSAGE"
fi
commit=$(git rev-parse --verify HEAD)
echo "commit=$commit"
if [ "$commit" = "$BASE_COMMIT" ]; then echo "changed=no"; exit 0; fi
${quiet} update-ref "$RESULT_REF" "$commit"
rm -f -- "$BUNDLE"
${quiet} bundle create --quiet "$BUNDLE" "$BASE_COMMIT..$RESULT_REF"
echo "changed=yes"
`

/** In: REPO SETUP. The request's command wins over the repository's own file. 79: there is nothing to run. */
export const setupScript: string = `cd -- "$REPO" || exit 1
if [ -n "$SETUP" ]; then exec /bin/sh -c "$SETUP"; fi
if [ -x .corral/setup ]; then exec ./.corral/setup; fi
if [ -f .corral/setup ]; then exec /bin/sh .corral/setup; fi
exit 79
`

export const nothingToSetUp = 79
