import type { ShownKind } from '@corral/protocol'
import type { JSX } from 'preact'
import { api, wordsOf } from '../state/api.js'
import { usePolled } from '../state/polled.js'
import { Age, CopyLine, Loading, Problem } from './basics.js'
import { Dialog } from './dialog.js'
import { Icon } from './icons.js'

/** The Kubernetes object behind something, as kubectl shows it, with what was reported about it. */
export function ObjectDrawer(props: { kind: ShownKind; name: string; onClose: () => void }): JSX.Element {
  const { kind, name } = props
  const { value, failure } = usePolled((signal) => api.object(kind, name, { signal }), `${kind}/${name}`)
  return (
    <Dialog label={`${kind} ${name}`} class="drawer" onClose={props.onClose}>
      <header class="drawer-head">
        <div>
          <p class="soft">{value?.kind ?? kind}</p>
          <h2>{name}</h2>
        </div>
        <button type="button" class="icon-button" aria-label="Close" onClick={props.onClose}>
          <Icon name="close" />
        </button>
      </header>
      <CopyLine
        text={`kubectl -n ${value?.namespace ?? 'corral'} get ${kind} ${name} -o yaml`}
        label="the kubectl command"
      />
      {failure !== undefined && <Problem {...wordsOf(failure)} />}
      {!value && failure === undefined && <Loading rows={5} />}
      {value && (
        <>
          <h3>Events</h3>
          {value.events.length === 0 && <p class="soft">None were reported.</p>}
          <ul class="object-events">
            {value.events.slice(0, 20).map((event) => (
              <li key={`${event.reason} ${event.message}`} class={event.type === 'Warning' ? 'is-warning' : ''}>
                <b>{event.reason}</b> {event.message}
                <span class="soft">
                  {event.count > 1 && ` ×${event.count}`} {event.last_seen && <Age since={event.last_seen} />}
                </span>
              </li>
            ))}
          </ul>
          <h3>Object</h3>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and keys must reach that */}
          <pre class="yaml" tabIndex={0}>
            {value.yaml}
          </pre>
        </>
      )}
    </Dialog>
  )
}
