import type { z } from 'zod'
import { structuredCopy } from '../copies.js'
import type { KubeObject, ObjectMeta } from '../meta.js'
import { dns1123SubdomainError, labelValueError, qualifiedNameError } from '../names.js'

export interface BuildIssue {
  /** Dotted path of the member, as Kubernetes writes it: `spec.podTemplate.spec.containers[0].image`. */
  field: string
  message: string
}

/** What a builder holds is no valid object. `issues` lists every violation. */
export class BuildError extends Error {
  override readonly name: string = 'BuildError'
  readonly code = 'Invalid'
  constructor(
    what: string,
    readonly issues: readonly BuildIssue[],
  ) {
    super(`${what} is invalid: ${issues.map(({ field, message }) => `${field}: ${message}`).join('; ')}`)
  }
}

/**
 * Metadata and the final check shared by the builders. A builder is changed by its methods, each of which answers the
 * builder itself; `build` may be called any number of times and hands out independent objects.
 */
export abstract class ObjectBuilder<T extends KubeObject> {
  readonly #metadata: ObjectMeta
  readonly #schema: z.ZodType<T>

  protected constructor(name: string, schema: z.ZodType<T>) {
    this.#metadata = { name }
    this.#schema = schema
  }

  namespace(namespace: string): this {
    this.#metadata.namespace = namespace
    return this
  }

  /** Adds labels; a key given again takes the new value. */
  labels(labels: Readonly<Record<string, string>>): this {
    this.#metadata.labels = { ...this.#metadata.labels, ...labels }
    return this
  }

  /** Adds annotations; a key given again takes the new value. */
  annotations(annotations: Readonly<Record<string, string>>): this {
    this.#metadata.annotations = { ...this.#metadata.annotations, ...annotations }
    return this
  }

  /** The object, checked. Throws a `BuildError` that names every violation. */
  build(): T {
    const object = structuredCopy({ ...this.content(), metadata: this.#metadata })
    const parsed = this.#schema.safeParse(object)
    const schemaIssues = parsed.error?.issues.map(({ path, message }) => ({ field: fieldPath(path), message })) ?? []
    const issues = [...metadataIssues(this.#metadata), ...schemaIssues, ...this.semanticIssues()]
    if (!parsed.success || issues.length > 0) throw new BuildError(`${object.kind} "${this.#metadata.name}"`, issues)
    return parsed.data
  }

  /** Violations beyond the schema: what a server accepts and no controller could use. */
  protected semanticIssues(): BuildIssue[] {
    return []
  }

  /** apiVersion, kind and spec as collected so far. */
  protected abstract content(): { apiVersion: string; kind: string; spec: unknown }
}

function metadataIssues({ name = '', namespace, labels, annotations }: ObjectMeta): BuildIssue[] {
  const issues: BuildIssue[] = []
  const check = (field: string, problem: string | undefined): void => {
    if (problem) issues.push({ field, message: problem })
  }
  check('metadata.name', dns1123SubdomainError(name))
  if (namespace !== undefined) check('metadata.namespace', dns1123SubdomainError(namespace))
  for (const [key, value] of Object.entries(labels ?? {})) {
    check(`metadata.labels.${key}`, qualifiedNameError(key) ?? labelValueError(value))
  }
  // Annotation keys are checked in lower case: the server ignores case there.
  for (const key of Object.keys(annotations ?? {})) {
    check(`metadata.annotations.${key}`, qualifiedNameError(key.toLowerCase()))
  }
  return issues
}

function fieldPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`
    return text === '' ? String(part) : `${text}.${String(part)}`
  }, '')
}
