import { describe, expect, it } from 'vitest'
import { CorralError, errorBody, errorResponse } from './corral-error.js'
import { type ErrorCodeEntry, errorCodeEntry, errorCodes, isErrorCode } from './error-codes.js'
import { renderErrorsMarkdown } from './errors-markdown.js'
import { failureOf } from './response-failure.js'
import { isTaskCause, taskCause, taskCauses } from './task-causes.js'
import { mergeWarnings, taskWarning, taskWarnings } from './task-warnings.js'

const codes = Object.entries<ErrorCodeEntry>(errorCodes)

describe('the error table', () => {
  it.each(codes)('%s is complete and can be sent', async (code, entry) => {
    expect(code).toMatch(/^[A-Z][A-Za-z]+$/)
    expect(entry.httpStatus).toBeGreaterThanOrEqual(400)
    expect(entry.summary).toMatch(/\.$/)
    expect(entry.hint).toMatch(/\.$/)
    if (!isErrorCode(code)) throw new Error('unreachable')
    const response = errorResponse(code, 'it happened')
    expect(await response.json()).toEqual({ error: { code, message: 'it happened', hint: entry.hint } })
  })

  it('does not take names of Object for codes', () => {
    expect(isErrorCode('constructor')).toBe(false)
    expect(isTaskCause('toString')).toBe(false)
    expect(errorCodeEntry('SomethingNew')).toMatchObject({ retryable: false })
  })

  it('survives the wire: what was sent is what is thrown', async () => {
    const received = await failureOf(errorResponse('DiskFull', 'no room'), 'PUT /x')
    expect(received).toBeInstanceOf(CorralError)
    expect(received).toMatchObject({ code: 'DiskFull', message: 'no room', retryable: false })
  })

  it.each([
    { what: 'a page of HTML', response: new Response('<html>', { status: 502 }), code: 'ProtocolViolation' },
    {
      what: 'an unknown code',
      response: Response.json({ error: { code: 'X', message: 'm' } }, { status: 404 }),
      code: 'NotFound',
    },
    { what: 'an empty body', response: new Response(null, { status: 409 }), code: 'AlreadyExists' },
    { what: 'a strange status', response: new Response('', { status: 418 }), code: 'BadRequest' },
  ])('reads $what by its status', async ({ response, code }) => {
    expect((await failureOf(response, 'GET /x')).code).toBe(code)
  })
})

describe('the cause table', () => {
  it.each(Object.entries(taskCauses))('%s tells what happened and what to do', (code, entry) => {
    expect(code).toMatch(/^[A-Z][A-Za-z]+$/)
    expect([entry.summary, entry.hint].every((text) => text.endsWith('.'))).toBe(true)
  })

  it('gives a cause its hint and, unless told better, its summary', () => {
    expect(taskCause('BranchNotFound', 'no branch "x"')).toEqual({
      code: 'BranchNotFound',
      message: 'no branch "x"',
      hint: taskCauses.BranchNotFound.hint,
    })
    expect(taskCause('Timeout').message).toBe(taskCauses.Timeout.summary)
  })
})

describe('the document', () => {
  it('has a row for every code and every cause, and no broken table', () => {
    const text = renderErrorsMarkdown()
    for (const code of [...Object.keys(errorCodes), ...Object.keys(taskCauses)])
      expect(text).toContain(`| \`${code}\` |`)
    const columns = text
      .split('\n')
      .filter((line) => line.startsWith('|'))
      .map((line) => line.split('|').length)
    expect(new Set(columns)).toEqual(new Set([5, 7, 8]))
  })

  it('hints from the table unless a better one is given', () => {
    expect(errorBody('NotFound', 'm', 'look there').error.hint).toBe('look there')
  })
})

describe('the warning table', () => {
  it.each(Object.entries(taskWarnings))('%s tells what happened and what to do', (code, entry) => {
    expect(code).toMatch(/^[A-Z][A-Za-z]+$/)
    expect([entry.summary, entry.hint].every((text) => text.endsWith('.'))).toBe(true)
  })

  it('names the path it is about', () => {
    expect(taskWarning('PathLeftOut', { path: 'a b' })).toEqual({
      code: 'PathLeftOut',
      message: `${taskWarnings.PathLeftOut.summary} ${taskWarnings.PathLeftOut.hint}`,
      path: 'a b',
    })
  })

  it('keeps each warning once and says when there were too many', () => {
    const many = Array.from({ length: 150 }, (_, index) => taskWarning('LargeFile', { path: `f${index}` }))
    expect(mergeWarnings(many.slice(0, 3), many.slice(1, 4))).toEqual(many.slice(0, 4))
    const cut = mergeWarnings(many, [])
    expect(cut).toHaveLength(100)
    expect(cut.at(-1)?.code).toBe('WarningsCut')
    expect(mergeWarnings(cut, many).at(-1)?.code).toBe('WarningsCut')
  })
})
