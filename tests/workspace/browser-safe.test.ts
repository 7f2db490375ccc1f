import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { expect, it } from 'vitest'

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')

it('the clients of protocol can be bundled for a browser, without the schemas of Kubernetes', async () => {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: ['packages/protocol/src/index.ts'],
    platform: 'browser',
    conditions: ['corral-source'],
    format: 'esm',
    bundle: true,
    write: false,
    metafile: true,
    logLevel: 'silent',
  })
  const ours = Object.keys(metafile.inputs).filter((path) => path.startsWith('packages/resources/'))
  expect(ours.map((path) => path.replace('packages/resources/src/', '')).sort()).toEqual([
    'pod-image.ts',
    'pod-resources.ts',
    'quantity.ts',
    'task-words.ts',
  ])
})

it('the entry of the SDK for browsers can be bundled without anything of Node', async () => {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: ['packages/sdk/src/browser.ts'],
    platform: 'browser',
    conditions: ['corral-source'],
    format: 'esm',
    bundle: true,
    write: false,
    metafile: true,
    logLevel: 'silent',
  })
  expect(Object.keys(metafile.inputs)).toContain('packages/resources/src/index.ts')
})
