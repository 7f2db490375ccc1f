/**
 * Prints what lies in `$TEMPORARY` and beside the repository `$REPO`: left there by set-up, no later task gets it. Programs leave
 * their own things there as well; those, and files with nothing in them, such as locks, are not named.
 */
export const strayFilesScript = `for each in "$TEMPORARY"/* "\${REPO%/*}"/*; do
  if [ ! -e "$each" ] || [ "$each" = "$REPO" ]; then continue; fi
  if [ ! -d "$each" ] && [ ! -s "$each" ]; then continue; fi
  case \${each##*/} in node-compile-cache* | v8-compile-cache* | npm-* | pip-* | tmp* | go-build* | hsperfdata* | yarn--* | cargo-* | rustc* | uv-*) continue ;; esac
  echo "$each"
done
`
