import { describe, expect, it } from 'vitest'
import { createBrowserSessions, loginCode, loginLink } from './browser-session.js'
import { createGate } from './request-gate.js'

const token = 'platform-token'
const sessions = createBrowserSessions(token)
const cookie = `${sessions.cookieName}=${sessions.open({ token })}`
const gate = createGate({ token, sessions, hosts: ['corral.example', 'fd00::1'] })

interface Row {
  when: string
  method?: string
  path?: string
  headers: Record<string, string>
  refuses?: RegExp
}

describe('who may ask', () => {
  it.each<Row>([
    { when: 'a program sends the token', headers: { host: '127.0.0.1:7080', authorization: `Bearer ${token}` } },
    { when: 'a browser of this machine has a session', headers: { host: 'localhost:7080', cookie } },
    { when: 'the name was allowed', headers: { host: 'corral.example', cookie } },
    { when: 'the address was allowed', headers: { host: '[fd00::1]:7080', cookie } },
    { when: 'a probe asks by any name', path: '/healthz', headers: { host: '10.0.0.7:8080' } },
    {
      when: 'a page of ours changes something',
      method: 'POST',
      headers: { host: 'localhost:1', origin: 'http://localhost:1', cookie },
    },
    {
      when: 'a page of ours changes something without an Origin',
      method: 'DELETE',
      headers: { host: 'localhost:1', 'sec-fetch-site': 'same-origin', cookie },
    },
    { when: 'somebody signs in', method: 'POST', path: '/session', headers: { host: 'localhost' } },
    {
      when: 'a name of somebody else points at this machine',
      headers: { host: 'evil.example:7080', authorization: `Bearer ${token}` },
      refuses: /"evil.example:7080" is not a host name/,
    },
    { when: 'there is no Host', headers: { cookie }, refuses: /is not a host name/ },
    {
      when: 'an address nobody allowed is the Host',
      headers: { host: '10.0.0.7', cookie },
      refuses: /is not a host name/,
    },
    {
      when: 'a page of another site asks with our cookie',
      method: 'POST',
      headers: { host: 'localhost:1', origin: 'https://evil.example', cookie },
      refuses: /from https:\/\/evil.example/,
    },
    {
      when: 'a page of another port asks',
      headers: { host: 'localhost:1', origin: 'http://localhost:2', cookie },
      refuses: /from http:\/\/localhost:2/,
    },
    {
      when: 'a page without an origin asks',
      headers: { host: 'localhost:1', origin: 'null', cookie },
      refuses: /from null/,
    },
    {
      when: 'a session changes something and nothing says from which page',
      method: 'POST',
      headers: { host: 'localhost:1', cookie },
      refuses: /from no page of this platform/,
    },
    {
      when: 'the token is wrong',
      headers: { host: 'localhost', authorization: 'Bearer wrong' },
      refuses: /needs the platform token/,
    },
    {
      when: 'the token is wrong and a session is there',
      headers: { host: 'localhost', authorization: 'Bearer wrong', cookie },
      refuses: /needs the platform token/,
    },
    { when: 'there is neither', headers: { host: 'localhost' }, refuses: /needs the platform token/ },
    {
      when: 'the cookie is of another token',
      headers: {
        host: 'localhost',
        cookie: `${sessions.cookieName}=${createBrowserSessions('x').open({ token: 'x' })}`,
      },
      refuses: /needs the platform token/,
    },
  ])('when $when', ({ method = 'GET', path = '/tasks', headers, refuses }) => {
    const answer = gate({ method, path, header: (name) => headers[name] })
    if (refuses) expect(answer.refusal?.body.error.message).toMatch(refuses)
    else expect(answer.refusal).toBeUndefined()
  })

  it('takes any address as a host where the server listens on all of them, and still no name', () => {
    const everywhere = createGate({ token, sessions, anyAddress: true })
    const asked = (host: string) => everywhere({ method: 'GET', path: '/tasks', header: (n) => ({ host, cookie })[n] })
    expect(asked('10.0.0.7:8080').refusal).toBeUndefined()
    expect(asked('[2001:db8::1]').refusal).toBeUndefined()
    expect(asked('evil.example').refusal).toMatchObject({
      status: 403,
      body: { error: { message: expect.stringContaining('evil.example') } },
    })
  })
})

describe('a browser session', () => {
  it('opens with a login code once, and not after five minutes', () => {
    let now = 1_000_000
    const timed = createBrowserSessions(token, () => now)
    const code = loginCode(token, now)
    expect(timed.open({ code })).toBeDefined()
    // The same code in other spellings is the same code.
    for (const again of [code, `${code}.`, `${code}.x`, ` ${code}`, `${code}=`])
      expect(timed.open({ code: again }), again).toBeUndefined()
    const late = loginCode(token, now)
    now += 5 * 60_000 + 1
    expect(timed.open({ code: late })).toBeUndefined()
    expect(timed.open({ code: loginCode('another token', now) })).toBeUndefined()
    expect(timed.open({ token: 'wrong' })).toBeUndefined()
  })

  it('is not opened by a session cookie shown as a code', () => {
    expect(sessions.open({ code: sessions.open({ token }) ?? '' })).toBeUndefined()
  })

  it('holds over a restart, is renewed while it is used, and ends after twelve idle hours', () => {
    let now = 0
    const first = createBrowserSessions(token, () => now)
    const value = first.open({ token })
    const restarted = createBrowserSessions(token, () => now)
    const check = () => restarted.check(`other=1; ${restarted.cookieName}=${value}`)
    expect(check()).toEqual({ isValid: true })
    now = 60 * 60_000
    expect(check()).toMatchObject({ isValid: true, renewed: expect.any(String) })
    now = 12 * 60 * 60_000 + 1
    expect(check()).toEqual({ isValid: false })
  })
})

describe('the cookie of a session', () => {
  it('is renewed after half an hour and not before', () => {
    let now = 0
    const timed = createBrowserSessions(token, () => now)
    const value = timed.open({ token })
    now = 30 * 60_000
    expect(timed.check(`${timed.cookieName}=${value}`)).toEqual({ isValid: true })
    now += 1
    expect(timed.check(`${timed.cookieName}=${value}`)).toMatchObject({ renewed: expect.any(String) })
    now = 12 * 60 * 60_000
    expect(timed.check(`${timed.cookieName}=${value}`).isValid).toBe(true)
  })

  it('has another name on another platform, and a value of another purpose or name is none', () => {
    const other = createBrowserSessions('another token', () => 0)
    const here = createBrowserSessions(token, () => 0)
    expect(here.cookieName).toMatch(/^corral_session_[0-9a-f]{8}$/)
    expect(other.cookieName).not.toBe(here.cookieName)
    expect(here.check(`${here.cookieName}=${loginCode(token, 0)}`)).toEqual({ isValid: false })
    expect(here.check(`x${here.cookieName}=${here.open({ token })}`)).toEqual({ isValid: false })
    expect(here.check(`${here.cookieName}=`)).toEqual({ isValid: false })
    expect(here.check(undefined)).toEqual({ isValid: false })
  })

  it('a link carries its code behind the address, where no server logs it', () => {
    const link = loginLink('http://localhost:8080', token, 0)
    expect(link).toMatch(/^http:\/\/localhost:8080\/login#[\w.-]+$/)
    const fresh = createBrowserSessions(token, () => 1)
    expect(fresh.open({ code: link.split('#')[1] ?? '' })).toBeDefined()
  })

  it('codes that are too old to be used are forgotten, the others stay used', () => {
    let now = 0
    const timed = createBrowserSessions(token, () => now)
    const first = loginCode(token, 0)
    expect(timed.open({ code: first })).toBeDefined()
    now = 5 * 60_000
    expect(timed.open({ code: first })).toBeUndefined()
    expect(timed.open({ code: loginCode(token, now) })).toBeDefined()
    expect(timed.open({ code: first })).toBeUndefined()
  })
})
