import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Button, Problem } from '../parts/basics.js'
import { Mark } from '../parts/icons.js'
import { signIn, wordsOf } from '../state/api.js'
import { go } from '../state/location.js'
import { startStream } from '../state/stream.js'

/** Signs in by the link of `corral open`, whose code is in the fragment, or by the token. */
export function LoginPage(): JSX.Element {
  const [token, setToken] = useState('')
  const [failure, setFailure] = useState<{ message: string; hint?: string | undefined }>()
  const [isBusy, setBusy] = useState(false)

  const enter = async (proof: { token: string } | { code: string }, to: string): Promise<void> => {
    setBusy(true)
    setFailure(undefined)
    try {
      await signIn(proof)
      startStream()
      go(to, { replace: true })
    } catch (error) {
      setFailure(wordsOf(error))
    } finally {
      setBusy(false)
    }
  }

  useEffect(() => {
    const [code = '', to = ''] = window.location.hash.slice(1).split(',', 2)
    if (window.location.pathname !== '/login' || !code) return
    // The code goes out of the address at once: it must not stay in the history.
    history.replaceState(null, '', '/login')
    void enter({ code }, to.startsWith('/') && !to.startsWith('//') ? to : '/')
  }, [])

  const here = window.location.pathname === '/login' ? '/' : window.location.pathname + window.location.search
  return (
    <main class="login" id="main">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void enter({ token: token.trim() }, here)
        }}
      >
        <div class="login-brand">
          <Mark />
          <h1>Corral</h1>
        </div>
        <p>
          Run <code>corral open</code> on the machine of the platform for a link that signs you in, or give the token
          that <code>corral up</code> prints.
        </p>
        {failure && <Problem {...failure} />}
        <label class="field">
          <span>Token</span>
          <input
            type="password"
            name="token"
            autofocus
            autocomplete="current-password"
            required
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        <Button kind="primary" type="submit" disabled={isBusy || token.trim() === ''}>
          {isBusy ? 'Signing in' : 'Sign in'}
        </Button>
      </form>
    </main>
  )
}
