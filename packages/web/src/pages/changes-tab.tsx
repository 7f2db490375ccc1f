import type { TaskSummary, TaskView } from '@corral/protocol'
import type { JSX } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { type PatchFile, parsePatch } from '../model/patch.js'
import { hasEnded } from '../model/status-words.js'
import { Button, Empty, Key, Loading, Problem } from '../parts/basics.js'
import { FileDiff } from '../parts/file-diff.js'
import { FileTree } from '../parts/file-tree.js'
import { ReviewBar } from '../parts/review-bar.js'
import { TakeHome } from '../parts/take-home.js'
import { api, wordsOf } from '../state/api.js'
import { useKeys } from '../state/keys.js'
import { isSplit, isStrings, markReviewed, remembered, reviewed } from '../state/preferences.js'
import { commentsOf, setComment } from '../state/review.js'

/** `task commit path` of files that were marked as viewed: another commit asks again. */
const viewed = remembered<string[]>('viewed', [], isStrings)

/** The change of a task, file by file. */
export function Changes({ id, task }: { id: string; task: TaskSummary | TaskView }): JSX.Element {
  const { files, failure, reload } = usePatch(id, task.commit)
  const [at, setAt] = useState(0)
  const box = useRef<HTMLElement>(null)
  const mark = (path: string): string => `${id} ${task.commit ?? ''} ${path}`
  const isViewed = (path: string): boolean => viewed.value.includes(mark(path))
  const setViewed = (path: string, is: boolean): void => {
    const others = viewed.value.filter((other) => other !== mark(path))
    viewed.value = is ? [...others, mark(path)].slice(-5_000) : others
  }
  const show = (index: number): void => {
    const next = Math.max(0, Math.min((files?.length ?? 1) - 1, index))
    setAt(next)
    box.current?.querySelector(`[data-file="${next}"]`)?.scrollIntoView({ block: 'start' })
  }
  const draftKey = `${id} ${task.commit ?? ''}`
  const comments = commentsOf(draftKey)
  const isReviewed = reviewed.value.includes(id)
  const current = files?.[at]
  useKeys([
    { keys: 'n', title: 'Next file', run: () => show(at + 1) },
    { keys: 'p', title: 'Previous file', run: () => show(at - 1) },
    {
      keys: 'v',
      title: 'Mark the file as viewed',
      run: () => {
        if (!current) return
        const wasViewed = isViewed(current.path)
        setViewed(current.path, !wasViewed)
        if (!wasViewed) show(at + 1)
      },
    },
    {
      keys: 's',
      title: isSplit.value ? 'Show one column' : 'Show side by side',
      run: () => {
        isSplit.value = !isSplit.value
      },
    },
    { keys: 'd', title: isReviewed ? 'Back to review' : 'Mark as reviewed', run: () => markReviewed(id, !isReviewed) },
  ])

  if (failure) return <Problem {...wordsOf(failure)} onRetry={reload} />
  if (!files) return <Loading label="Loading the changes" />
  if (files.length === 0)
    return (
      <Empty title={hasEnded(task.status) ? 'No changes' : 'No changes yet'} icon="file">
        {hasEnded(task.status)
          ? 'The agent left the repository as it was.'
          : 'The change is shown here when the agent has ended and its work is accepted.'}
      </Empty>
    )
  const done = files.filter(({ path }) => isViewed(path)).length
  return (
    <div class="review">
      <div class="changes">
        <nav class="files" aria-label="Files">
          <FileTree files={files} at={at} isViewed={isViewed} onChoose={show} comments={comments} />
        </nav>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and keys must reach that */}
        <section class="diffs" ref={box} aria-label="Diff" tabIndex={0}>
          <div class="diff-bar">
            <span class="soft">
              {done} of {files.length} viewed
            </span>
            <span class="grow" />
            <fieldset class="switch">
              <legend class="hidden">Layout</legend>
              <button type="button" aria-pressed={!isSplit.value} onClick={() => (isSplit.value = false)}>
                Unified
              </button>
              <button type="button" aria-pressed={isSplit.value} onClick={() => (isSplit.value = true)}>
                Split
              </button>
            </fieldset>
            <TakeHome task={task} />
            <Button
              kind={isReviewed ? 'plain' : 'primary'}
              icon={isReviewed ? 'retry' : 'check'}
              keys="D"
              onClick={() => markReviewed(id, !isReviewed)}
            >
              {isReviewed ? 'Back to review' : 'Reviewed'}
            </Button>
          </div>
          {files.map((file, index) => (
            <FileDiff
              key={file.path}
              file={file}
              index={index}
              isSplit={isSplit.value}
              isViewed={isViewed(file.path)}
              onViewed={(is) => setViewed(file.path, is)}
              comments={comments.filter(({ path }) => path === file.path)}
              onComment={hasEnded(task.status) ? (comment) => setComment(draftKey, comment) : undefined}
            />
          ))}
          <p class="diff-end soft">
            <Key keys="n" /> <Key keys="p" /> next and previous file, <Key keys="v" /> viewed
          </p>
        </section>
      </div>
      <ReviewBar id={id} draftKey={draftKey} comments={comments} branch={task.branch} />
    </div>
  )
}

function usePatch(id: string, commit: string | undefined) {
  const [patch, setPatch] = useState<string>()
  const [failure, setFailure] = useState<unknown>()
  const [turn, setTurn] = useState(0)
  useEffect(() => {
    const abort = new AbortController()
    setFailure(undefined)
    collect(api.diff(id, { signal: abort.signal })).then(setPatch, (error: unknown) => {
      if (!abort.signal.aborted) setFailure(error)
    })
    return () => abort.abort()
  }, [id, commit, turn])
  const files = useMemo<PatchFile[] | undefined>(() => (patch === undefined ? undefined : parsePatch(patch)), [patch])
  return { files, failure, reload: () => setTurn(turn + 1) }
}

/** A patch holds bytes of files in any encoding: what is not UTF-8 becomes a mark, the rest stays readable. */
async function collect(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of chunks) text += decoder.decode(chunk, { stream: true })
  return text + decoder.decode()
}
