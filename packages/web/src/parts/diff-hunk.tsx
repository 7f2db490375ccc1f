import { type ComponentChildren, Fragment, type JSX } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { codeOf, type DraftComment, firstLineOf, placeKey, placeOf } from '../model/comments.js'
import { codePieces, hasHidden } from '../model/hidden-characters.js'
import { highlight, type Language } from '../model/highlight.js'
import type { PatchHunk, PatchLine } from '../model/patch.js'
import { blocksOf, type Pair, pairs, type Row, unified } from '../model/patch-rows.js'
import type { Piece } from '../model/word-changes.js'
import { Icon } from './icons.js'
import { LineComment } from './line-comment.js'
import { memo } from './memo.js'

/** What the lines of a file know about remarks on them. */
export interface Remarks {
  readonly path: string
  readonly comments: readonly DraftComment[]
  readonly openAt: string | undefined
  /** Opens the remark at a place; with `isRange` the open one reaches from there on. */
  open(place: string | undefined, isRange?: boolean): void
  /** First line of the range, where one was chosen by a second line. */
  readonly rangeFrom: number | undefined
  save?: ((comment: DraftComment) => void) | undefined
}

/** Rows of one block: few enough that the page answers while the next ones come. */
const blockRows = 200

interface HunkProps {
  readonly hunk: PatchHunk
  readonly isSplit: boolean
  readonly language: Language | undefined
  readonly remarks: Remarks
}

/** Lines that stand together. Those of a long one come block by block, and all of them come: the browser's search finds each. */
export function Hunk({ hunk, isSplit, language, remarks }: HunkProps): JSX.Element {
  const blocks = useMemo(() => blocksIn(hunk, isSplit), [hunk, isSplit])
  const shown = useGrowing(blocks.length)
  return (
    <>
      {blocks.slice(0, shown).map((rows, index) => (
        <div key={index} class={blocks.length > 1 ? 'hunk-block' : ''}>
          <table class={`hunk ${isSplit ? 'is-split' : ''}`}>
            {index === 0 && (
              <thead class="hunk-head">
                <tr>
                  <th scope="col" colSpan={isSplit ? 4 : 3}>
                    {hunk.header || `line ${hunk.afterStart}`}
                  </th>
                </tr>
              </thead>
            )}
            <Rows rows={rows} lines={hunk.lines} language={language} remarks={remarks} />
          </table>
        </div>
      ))}
    </>
  )
}

type Rows = { readonly split: readonly Pair[] } | { readonly unified: readonly Row[] }

function blocksIn({ lines }: PatchHunk, isSplit: boolean): Rows[] {
  const rows = pairs(lines)
  if (isSplit) return blocksOf(rows, blockRows).map((split) => ({ split }))
  return blocksOf(unified(rows), blockRows).map((block) => ({ unified: block }))
}

/** One at once, then one more whenever the browser has nothing better to do. */
function useGrowing(total: number): number {
  const [shown, setShown] = useState(1)
  useEffect(() => {
    if (shown >= total) return
    if (!window.requestIdleCallback) {
      const timer = setTimeout(() => setShown(shown + 1), 20)
      return () => clearTimeout(timer)
    }
    const idle = requestIdleCallback(() => setShown(shown + 1), { timeout: 500 })
    return () => cancelIdleCallback(idle)
  }, [shown, total])
  return shown
}

const Rows = memo(function Rows(props: {
  rows: Rows
  /** All of the hunk, where a range can begin. */
  lines: readonly PatchLine[]
  language: Language | undefined
  remarks: Remarks
}): JSX.Element {
  const { rows, lines, language, remarks } = props
  return (
    <tbody>
      {'split' in rows
        ? rows.split.map(([left, right], index) => (
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
              <CommentRow line={right?.line ?? left?.line} remarks={remarks} columns={4} lines={lines} />
            </Fragment>
          ))
        : rows.unified.map(({ line, pieces }, index) => (
            <Fragment key={index}>
              <tr class={`line is-${line.kind}`}>
                <td class="number">{line.before}</td>
                <td class="number">
                  {line.after}
                  <AddComment line={line} remarks={remarks} />
                </td>
                <Code line={line} pieces={pieces} language={language} />
              </tr>
              <CommentRow line={line} remarks={remarks} columns={3} lines={lines} />
            </Fragment>
          ))}
    </tbody>
  )
})

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

export function RemarksAt(props: {
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
  return isChanged ? <mark key={key}>{plain(text)}</mark> : <span key={key}>{tokens(text, language)}</span>
}

function tokens(text: string, language: Language | undefined): ComponentChildren {
  if (!language || hasHidden(text)) return plain(text)
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

/** Text as it is; a character that cannot be seen shows its name. */
function plain(text: string): ComponentChildren {
  if (!hasHidden(text)) return text
  return codePieces(text).map(({ text: piece, hidden }, index) =>
    hidden ? (
      <span key={index} class="hidden-character" title={`${piece} ${hidden}`}>
        {piece}
      </span>
    ) : (
      piece
    ),
  )
}
