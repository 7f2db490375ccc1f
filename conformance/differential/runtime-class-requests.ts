import { type Asked, core, create, patch, pod, store } from './asked.js'

const classes = '/apis/node.k8s.io/v1/runtimeclasses'
const runtimeClass = (part: object, name = 'x'): object => ({
  apiVersion: 'node.k8s.io/v1',
  kind: 'RuntimeClass',
  metadata: { name },
  ...part,
})
const pods = (specs: readonly object[]): Asked[] => specs.map((spec) => create(`${core}/pods`, pod(spec)))

/** RuntimeClasses, right and wrong, and pods that name one. Classes belong to the cluster, so their names carry the namespace. */
export const runtimeClasses: readonly Asked[] = [
  ...[
    {},
    { handler: '' },
    { handler: 'Run_C' },
    { handler: 'runsc' },
    { handler: 'runsc', overhead: {} },
    { handler: 'runsc', overhead: { podFixed: { cpu: '-1', memory: '1Mi' } } },
    { handler: 'runsc', scheduling: { nodeSelector: { 'a b': 'c' } } },
    { handler: 'runsc', scheduling: { nodeSelector: { a: 'b c' } } },
    { handler: 'runsc', scheduling: { tolerations: [{ operator: 'Equal' }] } },
    { handler: 'runsc', scheduling: { tolerations: [{ key: 'a', operator: 'Exists', value: 'b' }] } },
    { handler: 'runsc', scheduling: { nodeSelector: { a: 'b' }, tolerations: [{ key: 'a', operator: 'Exists' }] } },
  ].map((part) => create(classes, runtimeClass(part))),
  store(classes, runtimeClass({ handler: 'plain' }, '{ns}-plain')),
  store(classes, runtimeClass({ handler: 'heavy', overhead: { podFixed: { cpu: '250m' } } }, '{ns}-heavy')),
  store(
    classes,
    runtimeClass(
      { handler: 'placed', scheduling: { nodeSelector: { a: 'b' }, tolerations: [{ key: 'k', operator: 'Exists' }] } },
      '{ns}-placed',
    ),
  ),
  patch(`${classes}/{ns}-plain`, 'merge', { handler: 'other' }),
  patch(`${classes}/{ns}-plain`, 'merge', { metadata: { labels: { a: 'b' } } }),
  ...pods([
    { runtimeClassName: '{ns}-missing' },
    { runtimeClassName: 'Not A Name' },
    { runtimeClassName: '' },
    { runtimeClassName: '{ns}-plain' },
    { runtimeClassName: '{ns}-plain', overhead: { cpu: '1' } },
    { runtimeClassName: '{ns}-heavy' },
    { runtimeClassName: '{ns}-heavy', overhead: { cpu: '0.25' } },
    { runtimeClassName: '{ns}-heavy', overhead: { cpu: '1' } },
    { overhead: { cpu: '1' } },
    { runtimeClassName: '{ns}-placed' },
    { runtimeClassName: '{ns}-placed', nodeSelector: { a: 'c' } },
    { runtimeClassName: '{ns}-placed', nodeSelector: { z: 'c' } },
    { runtimeClassName: '{ns}-placed', tolerations: [{ key: 'k', operator: 'Exists', effect: 'NoSchedule' }] },
    { runtimeClassName: '{ns}-placed', tolerations: [{ operator: 'Exists' }] },
    { runtimeClassName: '{ns}-missing', containers: [{ name: 'BAD' }] },
  ]),
  // Of the cluster, not of the namespace: they are taken away by name.
  ...['plain', 'heavy', 'placed'].map((name) => ({ method: 'DELETE', path: `${classes}/{ns}-${name}` })),
]
