import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { buildSync } from 'esbuild'
import { expect, it } from 'vitest'

it('reapChildren waits for children that end and ends those that do not', async () => {
  const resolveDir = fileURLToPath(new URL('.', import.meta.url))
  const contents = `import { reapChildren } from './process-table.js'
    import { spawn } from 'node:child_process'
    const children = [spawn('sleep', ['0.2']), spawn('sleep', ['600'])]
    await reapChildren(1000)
    console.log(JSON.stringify(children.map(({ pid, signalCode }) => ({ pid, signalCode }))))
    process.exit()`
  const [bundle] = buildSync({
    stdin: { contents, resolveDir, loader: 'ts' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    write: false,
  }).outputFiles
  const parent = spawn(process.execPath, ['--input-type=module', '-e', bundle?.text ?? ''], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let said = ''
  parent.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString()
  })
  await once(parent, 'close')
  const [brief, endless] = JSON.parse(said) as { pid: number; signalCode: string | null }[]
  expect([brief?.signalCode, endless?.signalCode]).toEqual([null, 'SIGKILL'])
  const left = spawnSync('ps', ['-o', 'pid=', '-p', `${brief?.pid},${endless?.pid}`], { encoding: 'utf8' })
  expect(left.stdout.trim()).toBe('')
})
