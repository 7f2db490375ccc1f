/**
 * Names what a result adds and tools make: directories of dependencies, build products and caches that the base does not
 * have, each once, and compiled files. Needs `ours`, `warn`, WORK, its list `added` and BASE_COMMIT of `collectScript`.
 */
export const generatedFiles: string = `generated_files() {
  sed -n "s/^[^$tab]* A$tab//p" "$WORK/added" |
    awk -F / '
      {
        path = ""
        for (part = 1; part < NF; part++) {
          path = path (part > 1 ? "/" : "") $part
          if ($part ~ /^(node_modules|bower_components|__pycache__|\\.venv|venv|\\.tox|\\.pytest_cache|\\.mypy_cache|\\.ruff_cache|\\.gradle|\\.next|\\.nuxt|\\.cache|dist|build|target|coverage)$/) {
            print path
            next
          }
        }
      }
      /\\.(pyc|pyo|class|o|obj|min\\.js|min\\.css)$/ { print }' |
    awk '!seen[$0]++ && ++count <= 200' > "$WORK/generated"
  while IFS= read -r path; do
    if ! ours cat-file -e "$BASE_COMMIT:$path" 2>/dev/null; then printf '%s\\n' "$path"; fi
  done < "$WORK/generated" > "$WORK/generated-new"
  number=0
  while IFS= read -r path && [ "$number" -lt 20 ]; do
    warn GeneratedFile "$path"
    number=$((number + 1))
  done < "$WORK/generated-new"
}`
