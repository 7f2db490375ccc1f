import type { TaskSummary, TaskView } from '@corral/protocol'
import type { JSX } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { revealed } from '../model/hidden-characters.js'
import { hasEnded } from '../model/status-words.js'
import { duration } from '../model/time-words.js'
import { Button, Problem } from '../parts/basics.js'
import { Boundary } from '../parts/boundary.js'
import { Composer } from '../parts/composer.js'
import { FeedEntry } from '../parts/feed-entry.js'
import { PlanCard } from '../parts/plan-card.js'
import { QuestionCard } from '../parts/question-card.js'
import { FailureCard, ResultCard } from '../parts/result-card.js'
import { now } from '../state/clock.js'
import { type TaskLog, tasks } from '../state/stream.js'

/** Entries that exist at once; more come when the page is scrolled up to them. */
const pageEntries = 120

/** What happens, as it happens. Follows the end until the page is scrolled up. */
export function Activity(props: {
  id: string
  log: TaskLog
  task: TaskSummary | TaskView
  view: TaskView | undefined
}): JSX.Element {
  const { log, task, view } = props
  const prompt = view?.task
  const plan = task.status === 'WAITING_APPROVAL' ? view?.plan : undefined
  const questions = task.status === 'WAITING_INPUT' ? (view?.questions ?? []).filter(({ outcome }) => !outcome) : []
  const box = useRef<HTMLElement>(null)
  const [follows, setFollows] = useState(true)
  const [shown, setShown] = useState(pageEntries)
  const lastTop = useRef(0)
  // A plan that waits has a card of its own below.
  const items = log.items.filter(
    (item) => item.kind !== 'result' && !(item.kind === 'plan' && item.revision === plan?.revision),
  )
  const from = Math.max(0, items.length - shown)

  useLayoutEffect(() => {
    const element = box.current
    if (element && follows) element.scrollTop = element.scrollHeight
  })
  const content = useRef<HTMLDivElement>(null)
  const isFollowing = useRef(follows)
  isFollowing.current = follows
  useEffect(() => {
    const element = box.current
    if (!element || !content.current) return
    // What is drawn later than its entry (Markdown, whose parser may still be on its way) moves the end as well.
    const observer = new ResizeObserver(() => {
      if (isFollowing.current) element.scrollTop = element.scrollHeight
    })
    for (const each of [element, content.current]) observer.observe(each)
    return () => observer.disconnect()
  }, [])
  useEffect(() => {
    setFollows(true)
    setShown(pageEntries)
  }, [props.id])

  const onScroll = (): void => {
    const element = box.current
    if (!element) return
    const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < 40
    // A feed that grows moves the end away: only a person who scrolls up stops the following.
    if (element.scrollTop < lastTop.current - 2 && !isAtEnd) setFollows(false)
    else if (isAtEnd) setFollows(true)
    lastTop.current = element.scrollTop
  }
  const showEarlier = (): void => {
    const element = box.current
    const before = element ? element.scrollHeight - element.scrollTop : 0
    setFollows(false)
    setShown(shown + pageEntries * 2)
    requestAnimationFrame(() => {
      if (element) element.scrollTop = element.scrollHeight - before
    })
  }
  const isOver = hasEnded(task.status)
  return (
    <div class="activity">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and keys must reach that */}
      <section class="feed" ref={box} onScroll={onScroll} aria-label="Activity" tabIndex={0}>
        <div class="feed-inner" ref={content}>
          {task.continues && from === 0 && (
            <p class="thread-line">
              Goes on from <a href={`/tasks/${encodeURIComponent(task.continues)}`}>{titleFor(task.continues)}</a>
            </p>
          )}
          {prompt !== undefined && from === 0 && (
            <article class="entry entry-prompt">
              <p class="entry-who">You</p>
              <pre>{revealed(prompt)}</pre>
            </article>
          )}
          {from > 0 && (
            <Button class="earlier" onClick={showEarlier}>
              Show earlier ({from})
            </Button>
          )}
          {items.slice(from).map((item) => (
            <Boundary
              key={item.key}
              of={item}
              instead={<p class="entry entry-note soft">This entry cannot be shown</p>}
            >
              <FeedEntry item={item} />
            </Boundary>
          ))}
          {log.failure && <Problem {...log.failure} />}
          {plan && <PlanCard key={plan.revision} task={task} view={view} plan={plan} text={plan.text} />}
          {questions.map((question) => (
            <QuestionCard key={question.id} id={props.id} question={question} />
          ))}
          {!isOver && !task.status.startsWith('WAITING_') && <Waiting task={task} last={log.lastTime} />}
          {isOver && task.status !== 'SUCCEEDED' && <FailureCard task={task} log={log} />}
          {isOver && task.status === 'SUCCEEDED' && <ResultCard task={task} />}
          {followUps(props.id).map((next) => (
            <p key={next.id} class="thread-line">
              Goes on in <a href={`/tasks/${encodeURIComponent(next.id)}`}>{next.title}</a>
            </p>
          ))}
        </div>
      </section>
      {(isOver || task.status === 'RUNNING') && <Composer id={props.id} branch={task.branch} isRunning={!isOver} />}
      {!follows && (
        <Button class="latest" icon="arrow" onClick={() => setFollows(true)}>
          Latest
        </Button>
      )}
    </div>
  )
}

const titleFor = (id: string): string => tasks.value.get(id)?.title ?? id

function followUps(id: string): TaskSummary[] {
  return [...tasks.value.values()].filter((task) => task.continues === id)
}

/** Says that it works, or what it waits for, and since when nothing was heard. */
function Waiting({ task, last }: { task: TaskSummary | TaskView; last: string | undefined }): JSX.Element {
  const quietMs = now.value - Date.parse(last ?? task.created_at)
  const words =
    task.status === 'QUEUED'
      ? task.queue
        ? `In line, place ${task.queue.position}: ${task.queue.reason}`
        : 'In line'
      : task.status === 'PROVISIONING'
        ? 'Preparing the sandbox'
        : `${task.agent.name} is working`
  return (
    <p class="working-line">
      <span class="spinner" aria-hidden="true" />
      {quietMs > 15_000 && task.status === 'RUNNING' ? `${words}, quiet for ${duration(quietMs)}` : words}
    </p>
  )
}
