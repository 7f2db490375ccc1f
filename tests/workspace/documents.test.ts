import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { renderErrorsMarkdown } from '@corral/protocol'
import { describe, expect, it } from 'vitest'
import { version } from '../../packages/cli/src/version.js'
import { pagesOf } from '../documents/printed-commands.js'

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

describe('documents', () => {
  it('docs/errors.md is what the tables say', () => {
    expect(read('docs/errors.md')).toBe(renderErrorsMarkdown())
  })

  it('the version of the CLI is that of the workspace', () => {
    expect(version).toBe((JSON.parse(read('package.json')) as { version: string }).version)
  })

  it.each(readdirSync(join(root, 'packages')))('packages/%s has a README', (name) => {
    expect(read(`packages/${name}/README.md`).length).toBeGreaterThan(100)
  })

  it('every link between documents leads somewhere', () => {
    const pages = pagesOf(root)
    const broken = pages.flatMap((page) =>
      [...read(page).matchAll(/\]\((?!https?:|#|mailto:)([^)#]+)(?:#[^)]*)?\)/g)]
        .map(([, target = '']) => target)
        .filter((target) => !existsSync(join(root, dirname(page), target)))
        .map((target) => `${page}: ${target}`),
    )
    expect(broken).toEqual([])
  })

  it('S0-C1 S0-C31 S0-C32 S0-C33 S0-C34 S0-O14: the proof of concept has its files, and a README from need to clean-up', () => {
    const page = read('examples/poc/README.md')
    for (const version of ['v1alpha1', 'v1beta1'])
      expect(readdirSync(join(root, 'examples/poc', version))).toEqual(
        expect.arrayContaining(['1-template.yaml', '3-claim.yaml']),
      )
    const steps = ['You need', 'kubectl apply -f', 'kubectl wait', 'kubectl port-forward', 'curl -s', 'kubectl logs']
    const places = [...steps, 'corral orchestrate', 'kubectl delete'].map((step) => page.indexOf(step))
    expect(places).toEqual([...places].sort((left, right) => left - right))
    expect(places[0]).toBeGreaterThan(0)
    for (const option of ['--template', '--namespace', '--task-id "task-$(date +%s)"', '--message', '--local'])
      expect(page).toContain(option)
  })

  it.each([
    {
      id: 'S2-S1',
      page: 'docs/sdk.md',
      beside: 'packages/resources/README.md',
      tells: ['exec', 'files', 'create', 'delete', 'list', 'SandboxBuilder', 'sandboxSchema', 'zod'],
    },
    {
      id: 'S2-S2',
      page: 'docs/provider.md',
      beside: 'docs/web.md',
      tells: ['createProvider', 'create', 'recover', 'cleanup', 'Sessions', 'getMetrics', 'Events', 'Settings'],
    },
    {
      id: 'S2-S3',
      page: 'docs/cluster.md',
      beside: 'docs/troubleshooting.md',
      tells: ['minikube.sh', 'GVISOR=1', '## Install', '## Runtime classes', '## Debug', '## Uninstall'],
    },
    {
      id: 'S2-S4, S2-D6',
      page: 'docs/migration.md',
      beside: 'docs/compatibility.md',
      tells: ['From agents in Docker', 'From v1alpha1', "From upstream's controllers", 'Back:', 'corral convert'],
    },
  ])('$id: $page and $beside tell what a reader comes for', ({ page, beside, tells }) => {
    const text = `${read(page)}\n${read(beside)}`
    expect(tells.filter((word) => !text.includes(word))).toEqual([])
  })

  it('S2-S4: every way of docs/migration.md says how to go back', () => {
    const ways = read('docs/migration.md').split(/^## /m).slice(1)
    expect(ways.length).toBeGreaterThan(3)
    const oneWay = ways.filter((way) => !/\bBack:|one at a time/.test(way)).map((way) => way.split('\n')[0])
    expect(oneWay).toEqual([])
  })
})
