import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as resources from '@corral/resources'
import { expect, it } from 'vitest'
import { serverPermissions } from '../../packages/cli/src/install/permissions.js'

const packages = join(import.meta.dirname, '../../packages')
/**
 * Nodes attach snapshots, open addresses by name and change limits on one machine: no server of a cluster asks for these. A person
 * restores, with rights of their own.
 */
const notInClusters = /environment\/(build\/attach-snapshot|network-phase|sandbox-resources)\.ts$|^restore-tasks\.ts$/
const verbs: Readonly<Record<string, string>> = { find: 'get', updateStatus: 'update' }

/** `resource verb` of every call that the code behind `corral server` makes on a kind it names. */
function calls(): Set<string> {
  const used = new Set<string>()
  const use = (kindName: string, verb: string, subresource = ''): void => {
    const kind = (resources as Record<string, unknown>)[kindName] as { group: string; plural: string } | undefined
    if (!kind?.plural) throw new TypeError(`${kindName} is no kind`)
    used.add(`${kind.plural}${subresource} ${verb}`)
  }
  for (const directory of ['tasks/src', 'server/src'])
    for (const file of readdirSync(join(packages, directory), { recursive: true, encoding: 'utf8' })) {
      if (!file.endsWith('.ts') || file.includes('.test') || notInClusters.test(file)) continue
      const text = readFileSync(join(packages, directory, file), 'utf8')
      for (const [, verb = '', kind = ''] of text.matchAll(
        /client\s*\.(get|find|list|create|updateStatus|update|patch|apply|delete)\(\s*([A-Z]\w+)/g,
      ))
        use(kind, verbs[verb] ?? verb, verb === 'updateStatus' ? '/status' : '')
      for (const [, kind = ''] of text.matchAll(/createInformer\(\{[^}]*kind: ([A-Z]\w+)/g))
        for (const verb of ['list', 'watch']) use(kind, verb)
      // The object page of the web interface reads any kind of its table.
      for (const [, kind = ''] of text.matchAll(/^ {2}\w+: ([A-Z]\w+) as ResourceKind<KubeObject>/gm)) use(kind, 'get')
    }
  return used
}

it('the role of the server has every verb its code uses, and none that it does not', () => {
  const granted = serverPermissions
    .filter(({ resource }) => resource !== 'leases') // the election's, in `packages/kube`
    .flatMap(({ resource, verbs: names }) => names.map((verb) => `${resource} ${verb}`))
  expect([...calls()].sort()).toEqual(granted.sort())
})
