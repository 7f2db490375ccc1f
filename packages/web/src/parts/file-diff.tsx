import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { type DraftComment, placeKey } from '../model/comments.js'
import { hasHidden, revealed } from '../model/hidden-characters.js'
import { languageOf } from '../model/highlight.js'
import type { PatchFile } from '../model/patch.js'
import { Button } from './basics.js'
import { Hunk, type Remarks, RemarksAt } from './diff-hunk.js'
import { Icon } from './icons.js'
import { memo } from './memo.js'

/** Beyond this a file starts folded: it is all there, one press away. */
const foldLines = 500
const generated =
  /(^|\/)(package-lock\.json|yarn\.lock|pnpm-lock\.yaml|Cargo\.lock|go\.sum|poetry\.lock)$|\.(min\.(js|css)|snap|map)$/

interface Props {
  file: PatchFile
  index: number
  isSplit: boolean
  isViewed: boolean
  onViewed: (is: boolean) => void
  comments: readonly DraftComment[]
  /** Absent while the task has not ended: it takes no comments yet. */
  onComment?: ((comment: DraftComment) => void) | undefined
}

/** One file of a change. */
export const FileDiff = memo(function FileDiff(props: Props): JSX.Element {
  const { file, isSplit, isViewed } = props
  const lines = file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0)
  const isLarge = lines > foldLines || generated.test(file.path)
  const [isOpen, setOpen] = useState<boolean>()
  const isHiding = useMemo(() => file.hunks.some((hunk) => hunk.lines.some(({ text }) => hasHidden(text))), [file])
  const isShown = isOpen ?? (!isLarge && !isViewed)
  const language = languageOf(file.path)
  const [{ openAt, rangeFrom }, setOpenPlace] = useState<{ openAt?: string | undefined; rangeFrom?: number }>({})
  const open = (place: string | undefined, isRange = false): void =>
    setOpenPlace((old) => (isRange ? rangeOf(old.openAt, place) : { openAt: place }))
  const remarks: Remarks = {
    path: file.path,
    comments: props.comments,
    openAt,
    open,
    rangeFrom,
    save: props.onComment,
  }
  return (
    <section class={`file-diff ${isViewed ? 'is-viewed' : ''}`} data-file={props.index} aria-label={file.path}>
      <header>
        <button type="button" class="fold" aria-expanded={isShown} onClick={() => setOpen(!isShown)}>
          <Icon name="chevron" size={12} />
          <span class="file-path">
            {file.from && <span class="soft">{revealed(file.from)} → </span>}
            {revealed(file.path)}
          </span>
        </button>
        <span class="diff-stat">
          <b class="added">+{file.insertions}</b> <b class="removed">−{file.deletions}</b>
        </span>
        {note(file) && <span class="chip">{note(file)}</span>}
        {isHiding && (
          <span class="chip is-warning" title="Characters that cannot be seen are shown by their names">
            hidden characters
          </span>
        )}
        <span class="grow" />
        {props.onComment && (
          <Button
            icon="comment"
            aria-label={`Comment on ${file.path}`}
            onClick={() => open(placeKey({ side: 'new' }))}
          />
        )}
        <label class="viewed">
          <input
            type="checkbox"
            checked={isViewed}
            onChange={(event) => {
              props.onViewed(event.currentTarget.checked)
              setOpen(undefined)
            }}
          />
          Viewed
        </label>
      </header>
      <RemarksAt remarks={remarks} place={{ side: 'new' }} lines={[]} />
      {!isShown && isLarge && !isViewed && (
        <button type="button" class="unfold" onClick={() => setOpen(true)}>
          {lines.toLocaleString('en-US')} lines{generated.test(file.path) ? ', generated' : ''}: show them
        </button>
      )}
      {isShown && file.isBinary && <p class="diff-note">A binary file. The patch has it whole.</p>}
      {isShown && !file.isBinary && file.hunks.length === 0 && <p class="diff-note">Its content is the same.</p>}
      {isShown && file.hunks.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: long lines scroll, and keys must reach that
        <div class="hunks" tabIndex={0} role="group" aria-label={`Lines of ${file.path}`}>
          {file.hunks.map((hunk) => (
            <Hunk
              key={`${hunk.beforeStart}.${hunk.afterStart}`}
              hunk={hunk}
              isSplit={isSplit}
              language={language}
              remarks={remarks}
            />
          ))}
        </div>
      )}
    </section>
  )
})

/** Two lines of one side are a range that ends at the later one; a line of the other side starts anew. */
function rangeOf(
  open: string | undefined,
  place: string | undefined,
): { openAt?: string | undefined; rangeFrom?: number } {
  const [side = '', line = ''] = open?.split(' ') ?? []
  const [otherSide, otherLine = ''] = place?.split(' ') ?? []
  if (line === '' || otherLine === '' || side !== otherSide) return { openAt: place }
  const [from, to] = [Number(line), Number(otherLine)].sort((one, other) => one - other)
  return { openAt: `${side} ${to}`, ...(from === undefined ? {} : { rangeFrom: from }) }
}

function note(file: PatchFile): string | undefined {
  const { change, modes } = file
  if (modes?.before && modes.after && modes.before !== modes.after) return `${modes.before} → ${modes.after}`
  return change === 'modified' ? undefined : change
}
