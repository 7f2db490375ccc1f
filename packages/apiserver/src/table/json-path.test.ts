import { expect, it } from 'vitest'
import { compileJsonPath } from './index.js'

const object = {
  spec: {
    replicas: 3,
    ports: [
      { name: 'a', port: 1 },
      { name: 'b', port: 2 },
    ],
  },
  metadata: { labels: { 'app.kubernetes.io/name': 'web' } },
  status: {
    conditions: [
      { type: 'Ready', status: 'True' },
      { type: 'Other', status: 'False' },
    ],
  },
}

it.each<[path: string, values: unknown[]]>([
  ['.spec.replicas', [3]],
  ['{.spec.replicas}', [3]],
  ['$.spec.replicas', [3]],
  ['.spec.ports[1].name', ['b']],
  ['.spec.ports[-1].name', ['b']],
  ['.spec.ports[*].port', [1, 2]],
  ['.spec.ports[0:1].name', ['a']],
  [".metadata.labels['app.kubernetes.io/name']", ['web']],
  ['.metadata.labels.app\\.kubernetes\\.io/name', ['web']],
  [".status.conditions[?(@.type=='Ready')].status", ['True']],
  ['.status.conditions[?(@.type == "Other")].status', ['False']],
  ['.spec.ports[?(@.port>1)].name', ['b']],
  ['.spec.ports[?(@.name!="a")].port', [2]],
  ['..port', [1, 2]],
  ['.spec.none.deeper', []],
  ['.constructor', []],
])('%s', (path, values) => {
  expect(compileJsonPath(path)(object)).toEqual(values)
})

it.each(['.a[', '.a[?(@.b ~ 1)]', '.a[x]', ']'])('refuses %s', (path) => {
  expect(() => compileJsonPath(path)).toThrow(/invalid/)
})
