import type { PoolInfo, SandboxInfo, ShownKind } from '@corral/protocol'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { Age, Button, Empty, Loading, Problem } from '../parts/basics.js'
import { Icon } from '../parts/icons.js'
import { ObjectDrawer } from '../parts/object-drawer.js'
import { api, wordsOf } from '../state/api.js'
import { go } from '../state/location.js'
import { usePolled } from '../state/polled.js'
import { isLive, tasks } from '../state/stream.js'
import { attempt, say } from '../state/toasts.js'

interface Shown {
  kind: ShownKind
  name: string
}

/** Where tasks run: the pools that keep sandboxes warm, and every sandbox with what it is for. */
export function SandboxesPage(): JSX.Element {
  const { value, failure, reload } = usePolled(async (signal) => {
    const [{ pools }, { sandboxes }] = await Promise.all([api.pools({ signal }), api.sandboxes({ signal })])
    return { pools, sandboxes }
  }, 'sandboxes')
  const [shown, setShown] = useState<Shown>()
  return (
    <div class="page">
      <div class="bar">
        <h1>Sandboxes</h1>
        <span class="grow" />
        <span class="soft only-wide">
          <code>kubectl get sandboxes,sandboxwarmpools</code>
        </span>
      </div>
      <div class="scroll">
        {failure !== undefined && <Problem {...wordsOf(failure)} onRetry={reload} />}
        {!value && failure === undefined && <Loading label="Loading sandboxes" />}
        {value && (
          <>
            <h2 class="section-head">Warm pools</h2>
            <div class="pools">
              {value.pools.map((pool) => (
                <PoolCard key={pool.name} pool={pool} onChanged={reload} onShow={setShown} />
              ))}
              {value.pools.length === 0 && (
                <Empty title="There is no pool">Create one: corral pool create default --template default</Empty>
              )}
            </div>
            <h2 class="section-head">
              Sandboxes <span class="count">{value.sandboxes.length}</span>
            </h2>
            <SandboxTable sandboxes={value.sandboxes} onShow={setShown} />
          </>
        )}
      </div>
      {shown && <ObjectDrawer kind={shown.kind} name={shown.name} onClose={() => setShown(undefined)} />}
    </div>
  )
}

/** The page of one pool is the page of all, with that pool's object open. */
export function PoolPage({ name }: { name: string }): JSX.Element {
  return (
    <>
      <SandboxesPage />
      <ObjectDrawer kind="sandboxwarmpool" name={name} onClose={() => go('/sandboxes')} />
    </>
  )
}

function PoolCard(props: { pool: PoolInfo; onChanged: () => void; onShow: (shown: Shown) => void }): JSX.Element {
  const { pool } = props
  const [wanted, setWanted] = useState<string>()
  const replicas = wanted ?? String(pool.replicas)
  const isWrong = !/^\d{1,4}$/.test(replicas) || Number(replicas) > 1000
  const save = async (): Promise<void> => {
    const done = await attempt(() => api.resizePool(pool.name, Number(replicas)))
    if (!done) return
    say(`Pool ${pool.name} keeps ${done.replicas} warm`)
    setWanted(undefined)
    props.onChanged()
  }
  return (
    <article class="pool">
      <header>
        <span class={`state state-${pool.ready >= pool.replicas ? 'good' : 'working'}`} aria-hidden="true">
          {pool.ready >= pool.replicas && <Icon name="check" size={10} />}
        </span>
        <h3>{pool.name}</h3>
        <span class="grow" />
        <Button onClick={() => props.onShow({ kind: 'sandboxwarmpool', name: pool.name })}>YAML</Button>
      </header>
      <p class="pool-ready">
        <b>{pool.ready}</b> of {pool.replicas} ready <span class="soft">template {pool.template}</span>
      </p>
      <div class="meter" aria-hidden="true">
        <span style={{ width: `${pool.replicas === 0 ? 100 : Math.min(100, (100 * pool.ready) / pool.replicas)}%` }} />
      </div>
      <form
        class="pool-size"
        onSubmit={(event) => {
          event.preventDefault()
          void save()
        }}
      >
        <label>
          <span>Keep warm</span>
          <input
            type="number"
            min={0}
            max={1000}
            value={replicas}
            aria-invalid={isWrong}
            onInput={(event) => setWanted(event.currentTarget.value)}
          />
        </label>
        <Button
          type="submit"
          kind="primary"
          disabled={wanted === undefined || isWrong || !isLive.value || Number(replicas) === pool.replicas}
        >
          Apply
        </Button>
      </form>
    </article>
  )
}

const words: Readonly<Record<SandboxInfo['state'], [string, string]>> = {
  ready: ['Ready', 'good'],
  waiting: ['Starting', 'working'],
  failed: ['Failed', 'bad'],
  suspended: ['Paused', 'quiet'],
}

function SandboxTable(props: { sandboxes: readonly SandboxInfo[]; onShow: (shown: Shown) => void }): JSX.Element {
  if (props.sandboxes.length === 0) return <Empty title="There is no sandbox" icon="box" />
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: on a phone it scrolls, and keys must reach that
    <section class="table-box" tabIndex={0} aria-label="Sandboxes, as a table">
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Sandbox</th>
            <th scope="col">State</th>
            <th scope="col">Used by</th>
            <th scope="col">Address</th>
            <th scope="col">Age</th>
            <th scope="col">
              <span class="hidden">Objects</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {props.sandboxes.slice(0, 500).map((sandbox) => {
            const [word, tone] = words[sandbox.state]
            const title = sandbox.task ? tasks.value.get(sandbox.task)?.title : undefined
            return (
              <tr key={sandbox.name}>
                <th scope="row">
                  <code>{sandbox.name}</code>
                  {sandbox.runtime_class && <span class="chip">{sandbox.runtime_class}</span>}
                </th>
                <td>
                  <span class={`tone-text tone-${tone}`}>
                    <span class={`state state-${tone}`} aria-hidden="true">
                      {tone === 'good' && <Icon name="check" size={10} />}
                      {tone === 'bad' && <Icon name="close" size={10} />}
                    </span>
                    {sandbox.state === 'ready' && !sandbox.claim ? 'Warm' : word}
                  </span>
                  {sandbox.reason && <span class="soft state-why">{sandbox.message || sandbox.reason}</span>}
                </td>
                <td>
                  {sandbox.task ? (
                    <a href={`/tasks/${encodeURIComponent(sandbox.task)}`}>{title ?? sandbox.task}</a>
                  ) : sandbox.claim ? (
                    <code>{sandbox.claim}</code>
                  ) : (
                    <span class="soft">{sandbox.pool ? `pool ${sandbox.pool}` : 'not claimed'}</span>
                  )}
                </td>
                <td>
                  <span class="soft mono">{sandbox.addresses?.[0] ?? '–'}</span>
                </td>
                <td>
                  <Age since={sandbox.created_at} />
                </td>
                <td class="table-actions">
                  <Button onClick={() => props.onShow({ kind: 'sandbox', name: sandbox.name })}>YAML</Button>
                  {sandbox.pod && (
                    <Button onClick={() => props.onShow({ kind: 'pod', name: sandbox.pod ?? '' })}>Pod</Button>
                  )}
                </td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </section>
  )
}
