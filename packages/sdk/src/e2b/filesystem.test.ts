import { describe, expect, it } from 'vitest'
import { SandboxError } from '../sandbox-error.js'
import type { SandboxHandle } from '../sandbox-handle.js'
import { InvalidArgumentError, NotFoundError } from './errors.js'
import { Filesystem } from './filesystem.js'

const notThere = () => new SandboxError('NotFound', 'no such file or directory')

/** A sandbox with these files by absolute path; a path that ends with a slash is a directory. */
function filesystem(content: Record<string, string> = {}) {
  const state = { isPaused: false, isReturned: false, made: [] as string[] }
  const info = (name: string, type: string) => ({
    name,
    type,
    size: 1,
    mode: '0644',
    modified_at: '2026-01-01T00:00:00Z',
  })
  const files = {
    async *readStream(path: string) {
      try {
        if (content[path] === undefined) throw notThere()
        for (const letter of content[path]) yield Buffer.from(letter)
      } finally {
        state.isReturned = true
      }
    },
    exists: async (path: string) => path in content,
    stat: async (path: string) => {
      if (`${path}/` in content) return info(path, 'directory')
      return path in content ? info(path, 'file') : undefined
    },
    mkdir: async (path: string) => {
      if (path in content) throw new SandboxError('NotADirectory', `"${path}" is not a directory`)
      state.made.push(path)
    },
    move: async (from: string, to: string) => {
      if (!(from in content)) throw notThere()
      content[to] = content[from] ?? ''
    },
    list: async () => [{ ...info('x', 'file'), path: 'x' }],
  }
  const shell = () => ({
    ok: async () => {
      if (state.isPaused) throw new SandboxError('SandboxNotReady', 'it is suspended')
      return { stdout: '/home/agent' }
    },
  })
  // Only what the file system calls is here.
  return { files: new Filesystem({ files, shell } as unknown as SandboxHandle), state }
}

describe('files through the surface of E2B', () => {
  it('are found by relative paths again after a pause in which one was asked for', async () => {
    const { files, state } = filesystem({ '/home/agent/a': 'x' })
    state.isPaused = true
    await expect(files.exists('a')).rejects.toMatchObject({ code: 'SandboxNotReady' })
    state.isPaused = false
    expect(await files.exists('a')).toBe(true)
  })

  it.each([
    { path: '.', at: '/home/agent/x' },
    { path: '', at: '/home/agent/x' },
    { path: '~', at: '/home/agent/x' },
    { path: '~/src/', at: '/home/agent/src/x' },
    { path: './src/../lib', at: '/home/agent/lib/x' },
    { path: '/tmp//a/.', at: '/tmp/a/x' },
  ])('in "$path" have clean absolute paths', async ({ path, at }) => {
    expect((await filesystem().files.list(path)).map((entry) => entry.path)).toEqual([at])
  })

  it('that are not there are told by the call that asks for their stream', async () => {
    await expect(filesystem().files.read('/nope', { format: 'stream' })).rejects.toBeInstanceOf(NotFoundError)
  })

  it('come whole as a stream, and one that is cancelled ends its transfer', async () => {
    const { files, state } = filesystem({ '/a': 'abc' })
    expect(await new Response(await files.read('/a', { format: 'stream' })).text()).toBe('abc')
    state.isReturned = false
    await (await files.read('/a', { format: 'stream' })).cancel()
    expect(state.isReturned).toBe(true)
  })

  it('in the place of a directory are refused, and a directory that is there is none that was made', async () => {
    const { files, state } = filesystem({ '/f': '', '/d/': '' })
    await expect(files.makeDir('/f')).rejects.toBeInstanceOf(InvalidArgumentError)
    expect(await files.makeDir('/d')).toBe(false)
    expect(state.made).toEqual([])
    expect(await files.makeDir('/e')).toBe(true)
  })

  it('are renamed into directories that are not there yet', async () => {
    const { files, state } = filesystem({ '/a': 'x' })
    expect((await files.rename('/a', '/new/deep/b')).path).toBe('/new/deep/b')
    expect(state.made).toEqual(['/new/deep'])
  })

  it('are not listed to a depth of nothing', async () => {
    await expect(filesystem().files.list('/', { depth: 0 })).rejects.toBeInstanceOf(InvalidArgumentError)
  })
})
