import type { ConnectionCheck } from '@corral/protocol'
import type { JSX } from 'preact'
import { Button } from '../../parts/basics.js'
import { Icon } from '../../parts/icons.js'
import { attempt, say } from '../../state/toasts.js'

const looks = {
  ok: { tone: 'good', icon: 'check', word: 'passed' },
  warn: { tone: 'attention', icon: 'alert', word: 'needs attention' },
  fail: { tone: 'bad', icon: 'close', word: 'failed' },
  skipped: { tone: 'waiting', icon: undefined, word: 'not looked at' },
} as const

/** Results of a connection test as they come: each by itself, with what to do about it. */
export function CheckList({ results, isBusy }: { results: readonly ConnectionCheck[]; isBusy: boolean }): JSX.Element {
  return (
    <ul class="checks">
      {results.map((result) => (
        <Check key={result.check} result={result} />
      ))}
      {isBusy && (
        <li class="check">
          <span class="spinner" aria-hidden="true" />
          <span class="soft">Looking</span>
        </li>
      )}
    </ul>
  )
}

function Check({ result }: { result: ConnectionCheck }): JSX.Element {
  const { tone, icon, word } = looks[result.state]
  const { remedy, command } = result
  return (
    <li class={`check is-${result.state}`} data-check={result.check}>
      <span class={`state state-${tone}`} role="img" aria-label={word}>
        {icon && <Icon name={icon} size={10} />}
      </span>
      <b>{result.title}</b>
      <span class="check-detail">{result.detail}</span>
      {(remedy || command) && (
        <span class="check-remedy">
          <span>{remedy}</span>
          {command && (
            <Button
              icon="copy"
              title={command}
              onClick={() =>
                void attempt(async () => {
                  await navigator.clipboard.writeText(command)
                  say(`Copied: ${command}`)
                })
              }
            >
              Copy command
            </Button>
          )}
        </span>
      )}
    </li>
  )
}

/** How a test went so far, in words. */
export function testWords(results: readonly ConnectionCheck[], isBusy: boolean): string {
  if (results.length === 0) return ''
  const count = (...states: ConnectionCheck['state'][]): number =>
    results.filter(({ state }) => states.includes(state)).length
  const wrong = count('fail', 'warn')
  const skipped = count('skipped')
  return [
    `${count('ok')} of ${results.length} passed`,
    ...(wrong > 0 && !isBusy ? [`${wrong} ${wrong === 1 ? 'needs' : 'need'} attention`] : []),
    ...(skipped > 0 && !isBusy ? [`${skipped} not looked at`] : []),
  ].join(' · ')
}
