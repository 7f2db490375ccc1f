/**
 * Prints what lies in `$TEMPORARY` and beside the repository `$REPO`, and what is new in the directories of `$ROOT` (empty for `/`)
 * that a sandbox may write to: left there by set-up, no later task gets it. Programs leave their own things there as well; those,
 * and files with nothing in them, such as locks, are not named.
 */
export const strayFilesScript = `for each in "$TEMPORARY"/* "\${REPO%/*}"/*; do
  if [ ! -e "$each" ] || [ "$each" = "$REPO" ]; then continue; fi
  if [ ! -d "$each" ] && [ ! -s "$each" ]; then continue; fi
  case \${each##*/} in node-compile-cache* | v8-compile-cache* | npm-* | pip-* | tmp* | go-build* | hsperfdata* | yarn--* | cargo-* | rustc* | uv-*) continue ;; esac
  echo "$each"
done
for each in "$ROOT"/* "$ROOT"/etc/* "$ROOT"/home/* "$ROOT"/opt/* "$ROOT"/var/*; do
  case $each in "$TEMPORARY" | "\${REPO%/*}" | "$HOME" | "$ROOT"/dev | "$ROOT"/etc | "$ROOT"/home | "$ROOT"/opt | "$ROOT"/proc | "$ROOT"/run | "$ROOT"/sys | "$ROOT"/var) continue ;; esac
  if [ -h "$each" ] || [ ! -O "$each" ] || [ ! "$each" -nt "$REPO/.git/HEAD" ]; then continue; fi
  if [ -d "$each" ] || [ -s "$each" ]; then echo "$each"; fi
done
`
