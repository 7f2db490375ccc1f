import type { ASTNode } from '@marcbachmann/cel-js'
import { type JsonSchema, mapValueSchema } from '../schema/json-schema.js'
import { celName } from './cel-value.js'

/** Schemas of the variables in reach; undefined is a value of unknown shape. */
type Scope = ReadonlyMap<string, JsonSchema | undefined>

const MACROS = new Set(['all', 'exists', 'exists_one', 'existsOne', 'filter', 'map'])

/** Calls whose argument is a regular expression, under the names the engine knows. */
const PATTERN_CALLS = new Set(['re2Matches', 'find'])

/** What the tree of an expression says about the variables it reads. */
export interface ExpressionFields {
  readonly usesOldSelf: boolean
  /** CEL names of the fields read from `self` and `oldSelf`; undefined when they are used as a whole. */
  readonly only: ReadonlySet<string> | undefined
  /** Regular expressions that stand in the text. */
  readonly patterns: readonly string[]
  /** Fields selected that the schema does not have. */
  readonly undefinedFields: readonly string[]
}

/** Walks an expression once. `schema` is that of `self`. */
export function inspectExpression(ast: ASTNode, schema: JsonSchema): ExpressionFields {
  const names = new Set<string>()
  const undefinedFields: string[] = []
  const patterns: string[] = []
  let usesOldSelf = false
  let usesWhole = false

  const visit = (node: ASTNode, scope: Scope): JsonSchema | undefined => {
    if (node.op === 'id') {
      const name = String(node.args)
      if (name === 'oldSelf') usesOldSelf = true
      if (name === 'self' || name === 'oldSelf') usesWhole = true
      return scope.get(name)
    }
    if (node.op === '.' || node.op === '.?') return visitField(node.args as [ASTNode, string], scope)
    if (node.op === '[]' || node.op === '[?]') {
      const [base, index] = node.args as [ASTNode, ASTNode]
      const of = visit(base, scope)
      visit(index, scope)
      return of && (of.items ?? mapValueSchema(of))
    }
    if (node.op === 'rcall') return visitCall(node.args as [string, ASTNode, ASTNode[]], scope)
    for (const child of childNodes(node.args)) visit(child, scope)
    return undefined
  }

  const visitField = ([base, field]: [ASTNode, string], scope: Scope): JsonSchema | undefined => {
    const root = base.op === 'id' ? String(base.args) : ''
    const wasWhole = usesWhole
    const of = visit(base, scope)
    if ((root === 'self' || root === 'oldSelf') && scope.has(root)) {
      usesWhole = wasWhole
      names.add(field)
    }
    if (!of) return undefined
    const found = fieldSchema(of, field)
    if (found === 'undefined') undefinedFields.push(field)
    return typeof found === 'object' ? found : undefined
  }

  const visitCall = ([name, receiver, args]: [string, ASTNode, ASTNode[]], scope: Scope): undefined => {
    const of = visit(receiver, scope)
    const [variable, ...bodies] = args
    if (PATTERN_CALLS.has(name) && variable?.op === 'value' && typeof variable.args === 'string')
      patterns.push(variable.args)
    if (!MACROS.has(name) || variable?.op !== 'id') {
      for (const argument of args) visit(argument, scope)
      return undefined
    }
    // Over a list the variable is an item, over a map it is a key.
    const inner = new Map(scope).set(String(variable.args), of?.items)
    for (const body of bodies) visit(body, inner)
    return undefined
  }

  visit(
    ast,
    new Map([
      ['self', schema],
      ['oldSelf', schema],
    ]),
  )
  return { usesOldSelf, only: usesWhole ? undefined : names, undefinedFields, patterns }
}

function fieldSchema(schema: JsonSchema, field: string): JsonSchema | 'undefined' | 'unknown' {
  const values = mapValueSchema(schema)
  if (values) return values
  if (schema.additionalProperties === true || schema['x-kubernetes-preserve-unknown-fields']) return 'unknown'
  if (schema.type !== 'object') return schema.type ? 'undefined' : 'unknown'
  for (const [name, child] of Object.entries(schema.properties ?? {})) if (celName(name) === field) return child
  const isTypeMeta = field === 'metadata' || field === 'apiVersion' || field === 'kind'
  return isTypeMeta ? 'unknown' : 'undefined'
}

const text: JsonSchema = { type: 'string' }
const objectMeta: JsonSchema = { type: 'object', properties: { name: text, generateName: text } }

/** What rules may see of an object besides its own fields, whatever its schema says of them. */
export function withObjectMeta(schema: JsonSchema): JsonSchema {
  return { ...schema, properties: { ...schema.properties, apiVersion: text, kind: text, metadata: objectMeta } }
}

function* childNodes(args: unknown): Iterable<ASTNode> {
  if (Array.isArray(args)) for (const each of args) yield* childNodes(each)
  else if (typeof args === 'object' && args !== null && 'op' in args) yield args as ASTNode
}
