import type { ApplyHow, TaskSummary, TaskView } from '@corral/protocol'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { isOnMachine, takeHomeLines } from '../model/take-home.js'
import { api, session, wordsOf } from '../state/api.js'
import { useKeys } from '../state/keys.js'
import { isLive } from '../state/stream.js'
import { say } from '../state/toasts.js'
import { Button, CopyLine, Problem } from './basics.js'
import { Dialog } from './dialog.js'
import { Icon } from './icons.js'

/** The ways of a change to where it is wanted. */
export function TakeHome({ task }: { task: TaskSummary | TaskView }): JSX.Element {
  const [isOpen, setOpen] = useState(false)
  const close = (): void => setOpen(false)
  useKeys([{ keys: 'm', title: 'Merge, fetch or download the change', run: () => setOpen(true) }])
  return (
    <>
      <Button icon="branch" keys="M" onClick={() => setOpen(true)}>
        Merge
      </Button>
      {isOpen && (
        <Dialog label="Take the change" class="take-home" onClose={close}>
          <h2>Take the change</h2>
          {session.value?.local_repositories && isOnMachine(task) && <HereAndNow task={task} onDone={close} />}
          {takeHomeLines(task).map(({ title, text }) => (
            <div key={title}>
              <h3>{title}</h3>
              <CopyLine text={text} label={title.toLowerCase()} />
            </div>
          ))}
          <p class="take-home-foot">
            <a class="button plain" href={`/tasks/${encodeURIComponent(task.id)}/diff`} download={`${task.id}.patch`}>
              <Icon name="arrow" />
              <span>Download the patch</span>
            </a>
            <span class="grow" />
            <Button onClick={close}>Close</Button>
          </p>
        </Dialog>
      )}
    </>
  )
}

/** For a repository on the platform's own machine: the platform does it, or says why it does not. */
function HereAndNow({ task, onDone }: { task: TaskSummary | TaskView; onDone: () => void }): JSX.Element {
  const [busy, setBusy] = useState<ApplyHow>()
  const [failure, setFailure] = useState<unknown>()
  const bring = async (how: ApplyHow): Promise<void> => {
    setBusy(how)
    setFailure(undefined)
    try {
      const { branch, work_tree: tree } = await api.apply(task.id, { how })
      say(how === 'merge' ? `Merged into ${branch} of ${tree}` : `Edited in ${tree}, not committed`)
      onDone()
    } catch (error) {
      setFailure(error)
    } finally {
      setBusy(undefined)
    }
  }
  const isOff = busy !== undefined || !isLive.value
  return (
    <section class="here-and-now" aria-label="On this machine">
      <p>
        Into <code>{task.repo}</code>. Refused, and nothing touched, where it has changes of its own.
      </p>
      <div class="here-and-now-ways">
        <Button kind="primary" icon="branch" disabled={isOff} onClick={() => void bring('merge')}>
          {busy === 'merge' ? 'Merging' : `Merge into ${task.base_branch ?? 'its branch'}`}
        </Button>
        <Button icon="file" disabled={isOff} onClick={() => void bring('edits')}>
          {busy === 'edits' ? 'Applying' : 'Apply, not committed'}
        </Button>
      </div>
      {failure !== undefined && <Problem {...wordsOf(failure)} />}
    </section>
  )
}
