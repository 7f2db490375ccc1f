import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { corralProgram, type PlatformProcess, startPlatformProcess, waitUntil } from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

let platform: PlatformProcess
beforeAll(async () => {
  platform = await startPlatformProcess()
})
afterAll(() => platform?.[Symbol.asyncDispose]())

describe('a sandbox goes by the name its user gave', () => {
  it('`sandbox create box`, then exec, shell, list and rm with that name', async () => {
    const created = await platform.corral(['sandbox', 'create', 'box'])
    expect(created).toMatchObject({ code: 0, stdout: 'box\n' })
    expect(await platform.corral(['sandbox', 'exec', 'box', '--', 'echo', 'inside'])).toMatchObject({
      code: 0,
      stdout: 'inside\n',
    })
    const shell = await platform.corral(['sandbox', 'shell', 'box'], { stdin: 'echo from the shell; exit 3\n' })
    expect(shell).toMatchObject({ code: 3, stdout: 'from the shell\n' })
    const { stdout } = await platform.corral(['sandbox', 'list'])
    expect(stdout).toMatch(/^NAME +OF +READY/)
    expect(stdout).toMatch(/^box +claim box +True/m)
    expect(stdout).toMatch(/^default-\S+ +pool default/m)

    // The objects are Kubernetes': the sandbox itself has another name, which works as well.
    const { sandboxes } = JSON.parse((await platform.corral(['sandbox', 'list', '--json'])).stdout) as {
      sandboxes: { name: string; sandbox: string }[]
    }
    const inner = sandboxes.find(({ name }) => name === 'box')!.sandbox
    expect(await platform.corral(['sandbox', 'exec', inner, '--', 'true'])).toMatchObject({ code: 0, stderr: '' })

    expect(await platform.corral(['sandbox', 'rm', 'box'])).toMatchObject({ code: 0, stdout: 'removed box\n' })
    const gone = await platform.corral(['sandbox', 'exec', 'nowhere', '--', 'true'])
    expect(gone).toMatchObject({ code: 1, stderr: expect.stringContaining('there is no sandbox "nowhere"') })
  })
})

it('`sandbox forward` tells all its ports in one JSON document, leads to them, and ends with Ctrl-C', async () => {
  expect(await platform.corral(['sandbox', 'create', 'served'])).toMatchObject({ code: 0 })
  const server = `for (const p of [3001, 3002]) require("http").createServer((_, r) => r.end("port " + p)).listen(p)`
  const inside = ['sandbox', 'exec', 'served', '--', 'sh', '-c', `nohup node -e '${server}' >/dev/null 2>&1 &`]
  expect(await platform.corral(inside)).toMatchObject({ code: 0 })
  const args = ['sandbox', 'forward', 'served', '3001', '3002', '--json', '--data-dir', platform.dataDir]
  const forward = spawn(process.execPath, [corralProgram, ...args], { env: platform.environment() })
  const said = text(forward.stdout)
  let printed = ''
  forward.stdout.on('data', (chunk) => {
    printed += String(chunk)
  })
  type Document = { name: string; ports: { address: string; local: number; remote: number }[] }
  const { name, ports } = await waitUntil('it tells its ports', () => {
    try {
      return JSON.parse(printed) as Document
    } catch {
      return undefined
    }
  })
  expect([name, ports.map(({ remote }) => remote)]).toEqual(['served', [3001, 3002]])
  for (const { address, local, remote } of ports)
    await waitUntil(`port ${remote} answers`, async () => {
      const answer = await fetch(`http://${address}:${local}/`).catch(() => undefined)
      return (await answer?.text()) === `port ${remote}`
    })
  forward.kill('SIGINT')
  const [code] = (await once(forward, 'exit')) as [number]
  expect(code).toBe(0)
  expect(JSON.parse(await said)).toEqual({ name, ports })
})

describe('standard input without a terminal', () => {
  beforeAll(async () => {
    expect(await platform.corral(['sandbox', 'create', 'input'])).toMatchObject({ code: 0 })
  })

  it.each([
    { what: 'a file', open: (path: string) => openSync(path, 'r'), stdout: 'from the file\n' },
    { what: '/dev/null', open: () => openSync('/dev/null', 'r'), stdout: '' },
  ])('is $what: `sandbox exec -i` passes it on and ends', ({ open, stdout }) => {
    const path = join(platform.directory, 'input.txt')
    writeFileSync(path, 'from the file\n')
    const input = open(path)
    const result = spawnSync(
      process.execPath,
      [corralProgram, 'sandbox', 'exec', '-i', 'input', '--data-dir', platform.dataDir, '--', 'cat'],
      { stdio: [input, 'pipe', 'pipe'], encoding: 'utf8', env: platform.environment() },
    )
    closeSync(input)
    expect(result).toMatchObject({ status: 0, stdout, stderr: '' })
  })

  it('is closed: a shell started with `<&-` ends as well', () => {
    const line = 'exec "$0" "$1" sandbox exec -i input --data-dir "$2" -- cat <&-'
    const result = spawnSync('/bin/sh', ['-c', line, process.execPath, corralProgram, platform.dataDir], {
      encoding: 'utf8',
      env: platform.environment(),
    })
    expect(result).toMatchObject({ status: 0, stdout: '', stderr: '' })
  })

  it('is a pipe that stays open: the command ends when the one inside does', async () => {
    const child = spawn(
      process.execPath,
      [corralProgram, 'sandbox', 'exec', '-i', 'input', '--data-dir', platform.dataDir, '--', 'head', '-1'],
      { stdio: ['pipe', 'pipe', 'inherit'], env: platform.environment() },
    )
    child.stdin.write('first\n')
    const [output, code] = await Promise.all([
      text(child.stdout),
      new Promise((resolve) => child.once('exit', resolve)),
    ])
    expect([code, output]).toEqual([0, 'first\n'])
  })
})

describe('what people type', () => {
  const corral = (...args: string[]) => platform.corral(['sandbox', ...args])

  beforeAll(async () => {
    expect(await corral('create', 'typed')).toMatchObject({ code: 0 })
  })

  it('`create ""` of a variable that is not set makes no sandbox under a name nobody knows', async () => {
    expect(await corral('create', '')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('the argument <name> is empty'),
    })
  })

  it('`create` of a name that is taken says so, not which request was refused', async () => {
    expect(await corral('create', 'typed')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^corral: there is a sandbox "typed" already\nhint: .*`corral sandbox rm typed`/),
    })
  })

  it('`exec --json` prints the output and the exit code as JSON', async () => {
    const { code, stdout } = await corral('exec', 'typed', '--json', '--', 'sh', '-c', 'echo a; echo b >&2; exit 4')
    expect(code).toBe(4)
    expect(JSON.parse(stdout)).toEqual({ exitCode: 4, stdout: 'a\n', stderr: 'b\n' })
  })

  it('`cp FILE typed:/dir/` puts it into the directory, and the way back keeps that it can be run', async () => {
    const script = join(platform.directory, 'run.sh')
    writeFileSync(script, '#!/bin/sh\n', { mode: 0o755 })
    expect(await corral('cp', script, 'typed:/workspace/new/')).toMatchObject({ code: 0 })
    expect(await corral('exec', 'typed', '--', 'stat', '-c', '%F %a', '/workspace/new/run.sh')).toMatchObject({
      stdout: 'regular file 755\n',
    })
    expect(await corral('cp', 'typed:/workspace/new/run.sh', join(platform.directory, 'back/'))).toMatchObject({
      code: 0,
    })
    expect(statSync(join(platform.directory, 'back', 'run.sh')).mode & 0o111).toBe(0o111 & ~process.umask())
  })

  it('`cp -` copies standard input into a file, and a file to standard output with nothing else', async () => {
    const cp = (from: string, to: string, stdin = '') => platform.corral(['sandbox', 'cp', from, to], { stdin })
    expect(await cp('-', 'typed:/workspace/piped', 'one\ntwo')).toMatchObject({
      code: 0,
      stdout: 'copied - to typed:/workspace/piped\n',
    })
    expect(await cp('typed:/workspace/piped', '-')).toMatchObject({ code: 0, stdout: 'one\ntwo' })
    expect(await cp('-', 'typed:/workspace/')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('name the file that - is copied to'),
    })
    expect(await cp('typed:/workspace', '-')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('/workspace is a directory'),
    })
  })

  it('Ctrl-C ends the command inside as well', async () => {
    const args = [
      'sandbox',
      'exec',
      'typed',
      '--data-dir',
      platform.dataDir,
      '--',
      'sh',
      '-c',
      'echo begun; sleep 98765',
    ]
    const running = spawn(process.execPath, [corralProgram, ...args], { env: platform.environment() })
    await once(running.stdout, 'data')
    running.kill('SIGINT')
    expect(await once(running, 'exit')).toEqual([130, null])
    const find = 'for f in /proc/[0-9]*/cmdline; do tr "\\0" " " < $f; echo; done 2>/dev/null | grep -c "[s]leep 98765"'
    expect(await corral('exec', 'typed', '--', 'sh', '-c', find)).toMatchObject({ stdout: '0\n' })
  })

  it('`logs --tail` of no number is told', async () => {
    expect(await corral('logs', 'typed', '--tail', 'x')).toMatchObject({ code: 2 })
  })

  it('`rm` of several removes those that are there and names those that are not', async () => {
    expect(await corral('rm', 'nowhere', 'typed')).toMatchObject({
      code: 1,
      stdout: 'removed typed\n',
      stderr: expect.stringContaining('there is no sandbox "nowhere"'),
    })
  })
})
