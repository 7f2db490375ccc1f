import { type ComponentChildren, Fragment, type JSX } from 'preact'
import { useState } from 'preact/hooks'
import { codeOf, type DraftComment, firstLineOf, placeKey, placeOf } from '../model/comments.js'
import { highlight, type Language, languageOf } from '../model/highlight.js'
import type { PatchFile, PatchHunk, PatchLine } from '../model/patch.js'
import { type Piece, wordChanges } from '../model/word-changes.js'
import { Button } from './basics.js'
import { Icon } from './icons.js'
import { LineComment } from './line-comment.js'
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
  /** Absent where nobody can be told: the task has not ended. */
  onComment?: ((comment: DraftComment) => void) | undefined
}

/** What the lines of a file know about remarks on them. */
interface Remarks {
  readonly path: string
  readonly comments: readonly DraftComment[]
  readonly openAt: string | undefined
  /** Opens the remark at a place; with `isRange` the open one reaches from there on. */
  open(place: string | undefined, isRange?: boolean): void
  /** First line of the range, where one was chosen by a second line. */
  readonly rangeFrom: number | undefined
  save?: ((comment: DraftComment) => void) | undefined
}

/** One file of a change. */
export const FileDiff = memo(function FileDiff(props: Props): JSX.Element {
  const { file, isSplit, isViewed } = props
  const lines = file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0)
  const isLarge = lines > foldLines || generated.test(file.path)
  const [isOpen, setOpen] = useState<boolean>()
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
            {file.from && <span class="soft">{file.from} → </span>}
            {file.path}
          </span>
        </button>
        <span class="diff-stat">
          <b class="added">+{file.insertions}</b> <b class="removed">−{file.deletions}</b>
        </span>
        {note(file) && <span class="chip">{note(file)}</span>}
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

function Hunk(props: {
  hunk: PatchHunk
  isSplit: boolean
  language: Language | undefined
  remarks: Remarks
}): JSX.Element {
  const { hunk, isSplit, language, remarks } = props
  const rows = pairs(hunk.lines)
  return (
    <table class={`hunk ${isSplit ? 'is-split' : ''}`}>
      <thead class="hunk-head">
        <tr>
          <th scope="col" colSpan={isSplit ? 4 : 3}>
            {hunk.header || `line ${hunk.afterStart}`}
          </th>
        </tr>
      </thead>
      <tbody>
        {isSplit
          ? rows.map(([left, right], index) => (
              <Fragment key={index}>
                <tr>
                  <Side line={left?.line} pieces={left?.pieces} number={left?.line.before} language={language} />
                  <Side
                    line={right?.line}
                    pieces={right?.pieces}
                    number={right?.line.after}
                    language={language}
                    remarks={remarks}
                  />
                </tr>
                <CommentRow line={right?.line ?? left?.line} remarks={remarks} columns={4} lines={hunk.lines} />
              </Fragment>
            ))
          : unified(rows).map(({ line, pieces }, index) => (
              <Fragment key={index}>
                <tr class={`line is-${line.kind}`}>
                  <td class="number">{line.before}</td>
                  <td class="number">
                    {line.after}
                    <AddComment line={line} remarks={remarks} />
                  </td>
                  <Code line={line} pieces={pieces} language={language} />
                </tr>
                <CommentRow line={line} remarks={remarks} columns={3} lines={hunk.lines} />
              </Fragment>
            ))}
      </tbody>
    </table>
  )
}

/** Beside the number of a line. By keyboard the button of the file does it: a stop at every line would be too many. */
function AddComment({ line, remarks }: { line: PatchLine; remarks: Remarks }): JSX.Element | null {
  const place = placeOf(line)
  if (!remarks.save || !place) return null
  return (
    <button
      type="button"
      class="add-comment"
      tabIndex={-1}
      aria-label={`Comment on line ${place.line}`}
      title="Comment; with Shift up to the line that is open"
      onClick={(event) => remarks.open(placeKey(place), event.shiftKey)}
    >
      <Icon name="plus" size={12} />
    </button>
  )
}

function CommentRow(props: {
  line: PatchLine | undefined
  remarks: Remarks
  columns: number
  lines: readonly PatchLine[]
}): JSX.Element | null {
  const { line, remarks } = props
  const place = line && placeOf(line)
  if (!place || !isRemarked(remarks, placeKey(place))) return null
  return (
    <tr class="comment-row">
      <td colSpan={props.columns}>
        <RemarksAt remarks={remarks} place={place} lines={props.lines} />
      </td>
    </tr>
  )
}

const isRemarked = ({ comments, openAt }: Remarks, key: string): boolean =>
  openAt === key || comments.some((comment) => placeKey(comment) === key)

function RemarksAt(props: {
  remarks: Remarks
  place: { side: 'old' | 'new'; line?: number }
  /** Those of its hunk, where a range can begin. */
  lines: readonly PatchLine[]
}): JSX.Element | null {
  const { remarks, place, lines } = props
  const key = placeKey(place)
  if (!isRemarked(remarks, key)) return null
  const comment = remarks.comments.find((one) => placeKey(one) === key)
  const isOpen = remarks.openAt === key
  const { line } = place
  return (
    <LineComment
      key={isOpen ? `open ${remarks.rangeFrom ?? ''}` : 'shown'}
      text={comment?.text ?? ''}
      path={remarks.path}
      line={line}
      startLine={(isOpen ? remarks.rangeFrom : undefined) ?? comment?.startLine}
      firstLine={firstLineOf(lines, place.side)}
      isOpen={isOpen}
      onSave={(text, startLine) =>
        remarks.save?.({
          path: remarks.path,
          ...place,
          ...(startLine === undefined ? {} : { startLine }),
          code: line === undefined ? '' : codeOf(lines, place.side, startLine ?? line, line),
          text,
        })
      }
      onClose={() => remarks.open(undefined)}
    />
  )
}

interface Row {
  line: PatchLine
  pieces?: readonly Piece[] | undefined
}

/** Removed and added lines that stand together, side by side; the words that differ are marked. */
function pairs(lines: readonly PatchLine[]): [Row | undefined, Row | undefined][] {
  const rows: [Row | undefined, Row | undefined][] = []
  for (let at = 0; at < lines.length; ) {
    const line = lines[at]
    if (line?.kind === 'removed' || line?.kind === 'added') {
      const removed = run(lines, at, 'removed')
      const added = run(lines, at + removed.length, 'added')
      for (let index = 0; index < Math.max(removed.length, added.length); index += 1) {
        const [left, right] = [removed[index], added[index]]
        const words = left && right ? wordChanges(left.text, right.text) : undefined
        rows.push([left && { line: left, pieces: words?.before }, right && { line: right, pieces: words?.after }])
      }
      at += Math.max(1, removed.length + added.length)
    } else if (line) {
      rows.push([{ line }, { line }])
      at += 1
    } else at += 1
  }
  return rows
}

function run(lines: readonly PatchLine[], from: number, kind: PatchLine['kind']): PatchLine[] {
  let to = from
  while (lines[to]?.kind === kind) to += 1
  return lines.slice(from, to)
}

/** The same rows as one column: all that is removed before all that is added. */
function unified(rows: readonly [Row | undefined, Row | undefined][]): Row[] {
  const all: Row[] = []
  let added: Row[] = []
  for (const [left, right] of rows) {
    const isChange = left?.line.kind === 'removed' || right?.line.kind === 'added'
    if (!isChange) {
      all.push(...added)
      added = []
      if (left) all.push(left)
      continue
    }
    if (left) all.push(left)
    if (right) added.push(right)
  }
  return [...all, ...added]
}

function Side(props: {
  line: PatchLine | undefined
  pieces: readonly Piece[] | undefined
  number: number | undefined
  language: Language | undefined
  remarks?: Remarks
}): JSX.Element {
  const { line, remarks } = props
  if (!line)
    return (
      <>
        <td class="number is-none" />
        <td class="code is-none" />
      </>
    )
  return (
    <>
      <td class={`number line is-${line.kind}`}>
        {props.number}
        {remarks && <AddComment line={line} remarks={remarks} />}
      </td>
      <Code line={line} pieces={props.pieces} language={props.language} />
    </>
  )
}

const signs = { added: '+', removed: '−', context: ' ', note: '\\' } as const

function Code(props: {
  line: PatchLine
  pieces: readonly Piece[] | undefined
  language: Language | undefined
}): JSX.Element {
  const { line, pieces, language } = props
  return (
    <td class={`code line is-${line.kind}`}>
      <span class="sign">{signs[line.kind]}</span>
      {pieces ? pieces.map((piece, index) => wordPiece(piece, index, language)) : tokens(line.text, language)}
    </td>
  )
}

function wordPiece({ text, isChanged }: Piece, key: number, language: Language | undefined): ComponentChildren {
  return isChanged ? <mark key={key}>{text}</mark> : <span key={key}>{tokens(text, language)}</span>
}

function tokens(text: string, language: Language | undefined): ComponentChildren {
  if (!language) return text
  return highlight(text, language).map(({ kind, text: piece }, index) =>
    kind === 'plain' ? (
      piece
    ) : (
      <span key={index} class={`token-${kind}`}>
        {piece}
      </span>
    ),
  )
}
