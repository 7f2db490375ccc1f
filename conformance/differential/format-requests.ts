import { type Asked, container, core, create, get, group, of, patch, pod, sandbox, sandboxes, stored } from './asked.js'

const yaml = 'application/yaml'
const meta = (kind: string, rest = 'g=meta.k8s.io;v=v1'): string => `application/json;as=${kind};${rest}`
const inYaml = (path: string, body: string): Asked => ({ ...create(path, body), type: yaml })
const named = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n'

/** What is answered in YAML, and which of several formats is taken. */
const answers: readonly Asked[] = [
  get(stored.configMap, yaml),
  get(`${core}/configmaps/none`, yaml),
  get(`${core}/configmaps?labelSelector=app%3Dx`, yaml),
  get(`${sandboxes}/kept`, yaml),
  get('/apis/apps', yaml),
  get(stored.configMap, `application/yaml;as=PartialObjectMetadata;g=meta.k8s.io;v=v1`),
  get(stored.configMap, 'application/yaml;q=0.9, application/json;q=0.1'),
  get(stored.configMap, 'application/json;q=0.9, application/yaml;q=0.1'),
  get(stored.configMap, 'text/html, */*;q=0.1'),
  get('/apis/apps', 'application/xml'),
  get(stored.configMap, `application/json;q=0.1, ${meta('PartialObjectMetadata')};q=0.9`),
  get(`${core}/configmaps?labelSelector=nobody`, meta('Table', 'v=v1')),
  get(`${core}/configmaps?labelSelector=nobody`, meta('Table', 'g=meta.k8s.io')),
  get(`${core}/configmaps?labelSelector=nobody`, meta('Table', 'g=other;v=v1')),
  get(`${core}/configmaps?labelSelector=app%3Dx&includeObject=Nope`, meta('Table')),
  { ...create(sandboxes, { ...sandbox, metadata: { name: 'one' } }), accept: yaml },
]

/** Bodies in YAML, as Kubernetes reads it. */
const bodies: readonly Asked[] = [
  inYaml(`${core}/configmaps`, `${named}data: {a: "yes", b: "0644"}\n`),
  inYaml(`${core}/configmaps`, `${named}data: {a: yes}\n`),
  inYaml(`${core}/configmaps`, `${named}data: {a: y}\n`),
  inYaml(`${core}/configmaps`, `${named}data: {a: 12:30, b: 2026-01-01, c: 1.2.3}\n`),
  inYaml(`${core}/configmaps`, `${named}data: {a: 5}\n`),
  inYaml(`${core}/configmaps`, `${named}data: {<<: {a: "1"}, b: "2"}\n`),
  inYaml(`${core}/configmaps`, `${named}---\n${named.replace('one', 'two')}`),
  inYaml(`${core}/configmaps`, 'a: [\n'),
  inYaml(`${core}/configmaps`, '- a\n'),
  inYaml(
    `${core}/pods`,
    'kind: Pod\nmetadata: {name: one}\nspec:\n  containers: [{name: c, image: "i:1"}]\n  terminationGracePeriodSeconds: 010\n  volumes:\n  - {name: a, secret: {secretName: s, defaultMode: 0644}}\n  - {name: b, secret: {secretName: s, defaultMode: 0o600}}\n',
  ),
  { ...inYaml('', `${named}nope: 1\n`), path: `${core}/configmaps?dryRun=All&fieldValidation=Strict` },
  { method: 'DELETE', path: `${stored.configMap}?dryRun=All`, type: yaml, body: 'propagationPolicy: Never\n' },
  { method: 'DELETE', path: `${core}/configmaps/none`, type: yaml, body: 'propagationPolicy: Background\n' },
]

const first = { ...of('v1', 'ConfigMap', { data: { a: 'b' } }), metadata: { name: 'kept' } }

/** Options of reading, and bodies that are not the object of their path. */
const others: readonly Asked[] = [
  ...[
    'sendInitialEvents=false',
    'sendInitialEvents=true&resourceVersionMatch=NotOlderThan',
    'watch=1&continue=x',
    'watch=1&resourceVersionMatch=Exact&resourceVersion=1',
    'watch=1&sendInitialEvents=true&resourceVersionMatch=Exact',
    'fieldSelector=%20metadata.name%3Da',
  ].map((query) => get(`${core}/configmaps?${query}`)),
  get(`${stored.configMap}?watch=1`),
  get(`${core}/configmaps/none?watch=1`),
  get(`${core}/endpoints/none`),
  get(`${core}/endpoints?labelSelector=a%20b`),
  { method: 'POST', path: '/api/v1/configmaps', body: of('v1', 'ConfigMap') },
  { method: 'DELETE', path: '/api/v1/configmaps?labelSelector=nobody' },
  { method: 'PUT', path: `${stored.configMap}?dryRun=All`, body: { data: {} } },
  { method: 'PUT', path: `${sandboxes}/kept?dryRun=All`, body: { ...sandbox, metadata: {} } },
  { method: 'PUT', path: '/api/v1/namespaces/{ns}/finalize?dryRun=All', body: {} },
  patch(stored.configMap, 'merge', { metadata: { name: 'other' } }),
  patch(stored.configMap, 'json', [{ op: 'replace', path: '', value: {} }]),
  patch(stored.configMap, 'merge', { metadata: { managedFields: [] } }),
  patch(stored.configMap, 'merge', { metadata: { managedFields: [{}] } }),
  patch(stored.configMap, 'merge', { metadata: { generateName: 'x-' } }),
  patch(stored.configMap, 'apply', first),
  { ...patch('', 'apply', first), path: `${stored.configMap}?dryRun=All&fieldManager=second` },
  {
    ...patch('', 'apply', { ...first, metadata: { name: 'none', uid: 'u' } }),
    path: `${core}/configmaps/none?dryRun=All&fieldManager=second`,
  },
  patch(`${stored.pod}/status`, 'merge', {
    metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'x', uid: 'u' }] },
    status: { phase: 'Running' },
  }),
  ...[
    [
      `${group('rbac.authorization.k8s.io/v1')}/roles`,
      { rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }] },
    ],
    [`${core}/endpoints`, {}],
    [`${core}/services`, { spec: { ports: [{ port: 80 }] } }],
    [`${core}/secrets`, {}],
    [`${core}/pods`, { spec: { containers: [container] } }],
  ].map(([path, rest]) => ({
    method: 'PUT',
    path: `${String(path)}/put?dryRun=All&fieldManager=tester`,
    body: { metadata: { name: 'put' }, ...(rest as object) },
  })),
  { method: 'DELETE', path: `${stored.configMap}?dryRun=All`, body: pod({}) },
  { method: 'DELETE', path: `${stored.configMap}?dryRun=Some` },
]

export const formats: readonly Asked[] = [...answers, ...bodies, ...others]
