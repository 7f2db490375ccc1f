/**
 * A clean and smudge filter for files of Git LFS that needs no git-lfs in the sandbox and asks no server. Contents lie below
 * `lfs/objects` beside the script, by their hash: `smudge` makes a file of a pointer whose content is there, `clean` keeps
 * the content of a file there and answers the pointer. What cannot be resolved passes as it is.
 */
export const lfsFilterScript: string = `set -eu
store=\${0%/*}/lfs/objects
mkdir -p -- "$store"
file=$(mktemp "$store/new-XXXXXX")
trap 'rm -f -- "$file"' EXIT
cat > "$file"
size=$(($(wc -c < "$file")))
oid=
if [ "$size" -lt 1024 ] && head -n 1 "$file" | grep -q '^version https://\\(git-lfs\\|hawser\\)\\.github\\.com/spec/v1$'; then
  oid=$(sed -n 's/^oid sha256:\\([0-9a-f]\\{64\\}\\)$/\\1/p' "$file" | head -n 1)
fi
name() { printf '%s' "$1" | sed 's|^\\(..\\)\\(..\\)|\\1/\\2/&|'; }
case $1 in
  clean)
    # A pointer stays one, and git-lfs makes none for an empty file.
    if [ -n "$oid" ] || [ "$size" -eq 0 ]; then cat "$file"; exit 0; fi
    oid=$(sha256sum < "$file" | cut -c 1-64)
    place=$store/$(name "$oid")
    mkdir -p -- "\${place%/*}"
    mv -f -- "$file" "$place"
    printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize %s\\n' "$oid" "$size"
    ;;
  smudge)
    if [ -n "$oid" ]; then
      for place in "$store" "\${GIT_DIR:-.git}/lfs/objects"; do
        if [ -f "$place/$(name "$oid")" ]; then cat "$place/$(name "$oid")"; exit 0; fi
      done
    fi
    cat "$file"
    ;;
esac
`

/**
 * A shell function that lets a repository use the filter: $1 is the git command. In: LFS_FILTER. Where the sandbox's git is
 * set up for git-lfs, that is used, with the same store: git asks a configured process before any other filter.
 */
export const configureLfs: string = `configure_lfs() {
  "$1" config lfs.storage "\${LFS_FILTER%/*}/lfs"
  if [ -n "$("$1" config --get filter.lfs.process)" ]; then return 0; fi
  "$1" config filter.lfs.clean "sh '$LFS_FILTER' clean"
  "$1" config filter.lfs.smudge "sh '$LFS_FILTER' smudge"
  "$1" config filter.lfs.required true
}`
