import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadAll } from 'js-yaml'
import { upstreamDirectory } from '../../tools/oracle/index.js'
import type { ObjectSchema } from './schema-object.js'

/** The part of a definition that this comparison reads and changes. */
export interface Definition {
  apiVersion: string
  kind: string
  metadata: { name: string; annotations?: Record<string, string> }
  spec: {
    group: string
    names: { plural: string; kind: string }
    versions: { name: string; schema: { openAPIV3Schema: ObjectSchema } }[]
  }
}

export const twinGroup = (group: string): string => group.replace(/agents\.x-k8s\.io$/, 'upstream.example.com')

/** Upstream's four definitions, from its Go module, in groups of their own so that they stand beside ours. */
export async function upstreamTwins(): Promise<Definition[]> {
  const directory = join(await upstreamDirectory(), 'k8s', 'crds')
  const files = readdirSync(directory).filter((name) => name.endsWith('.yaml'))
  const documents = files.flatMap((name) => loadAll(readFileSync(join(directory, name), 'utf8')))
  return (documents as Definition[]).map((crd) => {
    const group = twinGroup(crd.spec.group)
    const { names, versions } = crd.spec
    return {
      apiVersion: crd.apiVersion,
      kind: crd.kind,
      metadata: { name: `${names.plural}.${group}` },
      spec: { ...crd.spec, group, versions },
    }
  })
}
