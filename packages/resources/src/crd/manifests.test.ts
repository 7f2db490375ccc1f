import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { extname, join } from 'node:path'
import { load } from 'js-yaml'
import { describe, expect, it } from 'vitest'
import { crdFiles, emitEmbeddedCrds } from '../../../../scripts/generate/crds.js'
import type { CustomResourceDefinition, JSONSchemaProps } from '../generated/core-types.js'
import { embeddedCrds } from './embedded.js'
import { crdManifests } from './manifests.js'

const ROOT = join(import.meta.dirname, '../../../..')
const UPSTREAM = join(
  process.env.GOMODCACHE ?? join(process.env.GOPATH ?? join(homedir(), 'go'), 'pkg/mod'),
  'sigs.k8s.io/agent-sandbox@v1.0.3/k8s/crds',
)

const crd = (set: 'cluster' | 'embedded', plural: string): CustomResourceDefinition => {
  const found = crdManifests(set).find(({ spec }) => spec.names.plural === plural)
  if (!found) throw new Error(`no CRD ${plural}`)
  return found
}

describe('CRD manifests', () => {
  it('are committed as generated', () => {
    const files = crdFiles()
    const committed = readdirSync(join(ROOT, 'config/crds'), { recursive: true, encoding: 'utf8' })
    expect(committed.filter((path) => extname(path) !== '').sort()).toEqual([...files.keys()].sort())
    const stale = [...files].filter(
      ([path, content]) => readFileSync(join(ROOT, 'config/crds', path), 'utf8') !== content,
    )
    expect(stale.map(([path]) => path)).toEqual([])
  })

  it('are what the embedded server gets', () => {
    expect(embeddedCrds()).toEqual(crdManifests('embedded'))
    expect(readFileSync(join(import.meta.dirname, '../generated/embedded-crds.ts'), 'utf8')).toBe(emitEmbeddedCrds())
  })

  it.skipIf(!existsSync(UPSTREAM))('equal upstream 1.0.3 in all but words (needs its Go module)', () => {
    for (const ours of crdManifests('cluster')) {
      if (ours.spec.group === 'corral.dev') continue
      const file = `${ours.spec.group}_${ours.spec.names.plural}.yaml`
      const theirs = load(readFileSync(join(UPSTREAM, file), 'utf8')) as CustomResourceDefinition
      expect(ours.spec).toEqual(withoutWords(theirs.spec))
    }
  })

  it('S3-7: serve v1alpha1 in the embedded set only, deprecated in these words', () => {
    expect(
      crdManifests('cluster').flatMap(({ spec }) =>
        spec.versions.map((version) => `${spec.names.kind} ${version.name}`),
      ),
    ).toEqual([
      'Sandbox v1beta1',
      'SandboxClaim v1beta1',
      'SandboxTemplate v1beta1',
      'SandboxWarmPool v1beta1',
      'AgentTask v1alpha1',
      'Project v1alpha1',
      'Environment v1alpha1',
    ])
    const warnings = embeddedCrds().flatMap(({ spec }) =>
      spec.versions.flatMap((version) => version.deprecationWarning ?? []),
    )
    expect(warnings).toEqual([
      'agents.x-k8s.io/v1alpha1 Sandbox is deprecated; use agents.x-k8s.io/v1beta1 Sandbox instead',
      'extensions.agents.x-k8s.io/v1alpha1 SandboxClaim is deprecated; use extensions.agents.x-k8s.io/v1beta1 SandboxClaim instead',
      'extensions.agents.x-k8s.io/v1alpha1 SandboxTemplate is deprecated; use extensions.agents.x-k8s.io/v1beta1 SandboxTemplate instead',
      'extensions.agents.x-k8s.io/v1alpha1 SandboxWarmPool is deprecated; use extensions.agents.x-k8s.io/v1beta1 SandboxWarmPool instead',
    ])
  })

  it('S2-C4: offer scale on pools, and on the old Sandbox only', () => {
    const scaled = embeddedCrds().flatMap(({ spec }) =>
      spec.versions
        .filter((version) => version.subresources?.scale)
        .map((version) => `${spec.names.plural} ${version.name}`),
    )
    expect(scaled).toEqual(['sandboxes v1alpha1', 'sandboxwarmpools v1beta1', 'sandboxwarmpools v1alpha1'])
  })

  it('state the immutable volume claims of v1beta1 and nothing of the kind on v1alpha1', () => {
    const [beta, alpha] = crd('embedded', 'sandboxes').spec.versions.map(specSchema)
    expect(beta?.['x-kubernetes-validations']?.map((rule) => rule.message)).toEqual([
      'volumeClaimTemplates is immutable',
    ])
    expect(alpha).not.toHaveProperty('x-kubernetes-validations')
    expect(alpha?.properties).toMatchObject({ replicas: { minimum: 0, maximum: 1, default: 1 } })
    expect(alpha?.properties).not.toHaveProperty('operatingMode')
  })

  it('make a task immutable but for cancelRequested, keepSandbox, priority, decision, messages and answers', () => {
    const schema = crd('cluster', 'agenttasks').spec.versions.map(specSchema)[0]
    const immutable = schema?.['x-kubernetes-validations']?.map((rule) => rule.message?.split(' ')[0]).sort()
    const mutable = ['cancelRequested', 'keepSandbox', 'priority', 'decision', 'messages', 'answers']
    expect(immutable).toEqual(
      Object.keys(schema?.properties ?? {})
        .filter((name) => !mutable.includes(name))
        .sort(),
    )
    expect(schema?.properties?.timeoutSeconds).toMatchObject({
      type: 'integer',
      format: 'int32',
      minimum: 1,
      default: 1800,
    })
  })

  it('explain every field of a task', () => {
    const task = embeddedCrds().find(({ spec }) => spec.names.kind === 'AgentTask')
    const schema = task?.spec.versions[0]?.schema?.openAPIV3Schema
    const unexplained = (at: string, { properties = {}, items }: JSONSchemaProps): string[] => [
      ...(items ? unexplained(`${at}[]`, items as JSONSchemaProps) : []),
      ...Object.entries(properties).flatMap(([name, field]) => [
        ...(field.description ? [] : [`${at}.${name}`]),
        ...unexplained(`${at}.${name}`, field),
      ]),
    ]
    expect(schema?.description).toBeTruthy()
    // Type, metadata and conditions are those of every kind.
    expect(unexplained('', schema ?? {}).filter((path) => !path.startsWith('.status.conditions[]'))).toEqual([
      ...['.apiVersion', '.kind', '.metadata'],
    ])
  })

  it('are structural: every node has a type, int-or-string or open content', () => {
    const untyped = embeddedCrds().flatMap(({ metadata, spec }) =>
      spec.versions.flatMap((version) =>
        untypedNodes(version.schema?.openAPIV3Schema ?? {}, `${metadata?.name} ${version.name}`),
      ),
    )
    expect(untyped).toEqual([])
  })
})

function specSchema(version: CustomResourceDefinition['spec']['versions'][number]): JSONSchemaProps | undefined {
  return version.schema?.openAPIV3Schema?.properties?.spec
}

function untypedNodes(schema: JSONSchemaProps, path: string): string[] {
  const typed = schema.type ?? schema['x-kubernetes-int-or-string'] ?? schema['x-kubernetes-preserve-unknown-fields']
  const children = Object.entries(schema.properties ?? {})
  if (typeof schema.items === 'object' && !Array.isArray(schema.items)) children.push(['[]', schema.items])
  if (typeof schema.additionalProperties === 'object') children.push(['{}', schema.additionalProperties])
  return [...(typed ? [] : [path]), ...children.flatMap(([name, child]) => untypedNodes(child, `${path}.${name}`))]
}

/** Descriptions go; a property that happens to be called `description` stays. */
function withoutWords(value: unknown, areProperties = false): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutWords(item))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(
    ([key, member]) => areProperties || key !== 'description' || typeof member !== 'string',
  )
  return Object.fromEntries(
    entries.map(([key, member]) => [key, withoutWords(member, key === 'properties' && !areProperties)]),
  )
}
