/** With names of any length they fit what is kept of a command's output. */
export const maxStrays = 100

/**
 * Prints what lies in `$TEMPORARY` and beside the repository `$REPO`, and what is new in the directories of `$ROOT` (empty for `/`)
 * that a sandbox may write to: left there by set-up, no later task gets it. Programs leave their own things there as well; those,
 * and files with nothing in them, such as locks, are not named. It ends after `maxStrays`: what a set-up leaves has no bound.
 */
export const strayFilesScript: string = `told=0
tell() {
  echo "$1"
  told=$((told + 1))
  if [ "$told" -ge ${maxStrays} ]; then exit 0; fi
}
for each in "$TEMPORARY"/* "\${REPO%/*}"/*; do
  if [ ! -e "$each" ] || [ "$each" = "$REPO" ]; then continue; fi
  if [ ! -d "$each" ] && [ ! -s "$each" ]; then continue; fi
  case \${each##*/} in node-compile-cache* | v8-compile-cache* | npm-* | pip-* | tmp* | go-build* | hsperfdata* | yarn--* | cargo-* | rustc* | uv-*) continue ;; esac
  tell "$each"
done
for each in "$ROOT"/* "$ROOT"/etc/* "$ROOT"/home/* "$ROOT"/opt/* "$ROOT"/var/*; do
  case $each in "$TEMPORARY" | "\${REPO%/*}" | "$HOME" | "$ROOT"/dev | "$ROOT"/etc | "$ROOT"/home | "$ROOT"/opt | "$ROOT"/proc | "$ROOT"/run | "$ROOT"/sys | "$ROOT"/var) continue ;; esac
  if [ -h "$each" ] || [ ! -O "$each" ] || [ ! "$each" -nt "$REPO/.git/HEAD" ]; then continue; fi
  if [ -d "$each" ] || [ -s "$each" ]; then tell "$each"; fi
done
`
