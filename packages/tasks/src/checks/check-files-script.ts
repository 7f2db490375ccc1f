import { quietGit } from '../sandbox/quiet-git.js'

/** In: REPO LIST. Writes the files git would take in now, so that those a check makes can be told from them. */
export const listBeforeScript: string = `cd -- "$REPO" || exit 0
${quietGit} -c core.quotePath=false ls-files --others --exclude-standard > "$LIST.new" 2>/dev/null || exit 0
sort -u "$LIST.new" > "$LIST"
`

/**
 * In: REPO LIST EXCLUDE. Files that appeared since \`LIST\` was written are products of checks: they are named on standard
 * output and kept out of commits through patterns, in the repository and in EXCLUDE for a result that is made without it. A name git has to quote stays in.
 */
export const leaveOutScript: string = `cd -- "$REPO" || exit 0
[ -f "$LIST" ] || exit 0
${quietGit} -c core.quotePath=false ls-files --others --exclude-standard > "$LIST.after" 2>/dev/null || exit 0
sort -u "$LIST.after" | comm -13 "$LIST" - | grep -v '^"' > "$LIST.made" || exit 0
sed -e 's/[][*?\\\\]/\\\\&/g' -e 's/ $/\\\\ /' -e 's#^#/#' "$LIST.made" > "$LIST.patterns"
for file in "$EXCLUDE" "$(git rev-parse --git-path info/exclude)"; do
  mkdir -p -- "$(dirname -- "$file")" && cat "$LIST.patterns" >> "$file"
done
head -n 20 "$LIST.made"
`
