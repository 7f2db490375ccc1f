import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { corePermissions, electionPermissions, extensionPermissions, rbacFiles } from '../../scripts/generate/rbac.js'
import { grantsOf, ourRoles } from './harness/our-roles.js'
import { permissionProbes } from './harness/permission-probes.js'

const config = join(import.meta.dirname, '../../config')

it.each([...rbacFiles()])('config/%s is what the table of permissions says', (name, text) => {
  expect(readFileSync(join(config, name), 'utf8')).toBe(text)
})

it('grants no verb twice and none by a wildcard', () => {
  const all = [...corePermissions, ...extensionPermissions, ...electionPermissions]
  const grants = all.flatMap(({ group, resource, verbs }) => verbs.map((verb) => `${verb} ${group}/${resource}`))
  expect(new Set(grants).size).toBe(grants.length)
  expect(grants.filter((grant) => grant.includes('*'))).toEqual([])
})

it('has a probe for every permission, which fails without it on a real server', () => {
  const probed = permissionProbes.flatMap(({ grants }) => grants)
  expect([...probed].sort()).toEqual([...grantsOf(ourRoles())].sort())
})
