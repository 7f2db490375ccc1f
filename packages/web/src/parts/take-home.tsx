import type { TaskSummary, TaskView } from '@corral/protocol'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { takeHomeLines } from '../model/take-home.js'
import { useKeys } from '../state/keys.js'
import { Button, CopyLine } from './basics.js'
import { Dialog } from './dialog.js'
import { Icon } from './icons.js'

/** The ways of a change to where it is wanted. */
export function TakeHome({ task }: { task: TaskSummary | TaskView }): JSX.Element {
  const [isOpen, setOpen] = useState(false)
  useKeys([{ keys: 'm', title: 'Merge, fetch or download the change', run: () => setOpen(true) }])
  return (
    <>
      <Button icon="branch" keys="M" onClick={() => setOpen(true)}>
        Merge
      </Button>
      {isOpen && (
        <Dialog label="Take the change" class="take-home" onClose={() => setOpen(false)}>
          <h2>Take the change</h2>
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
            <Button onClick={() => setOpen(false)}>Close</Button>
          </p>
        </Dialog>
      )}
    </>
  )
}
