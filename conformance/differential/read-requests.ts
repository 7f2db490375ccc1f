import { type Asked, core, get, stored } from './asked.js'

export const lists: readonly Asked[] = [
  ...[
    'labelSelector=a%20b',
    'labelSelector=a%20in%20(b',
    'labelSelector=a%3E5,b%3Cx',
    'labelSelector=-a',
    'fieldSelector=a',
    'fieldSelector=spec.nope%3Dx',
    'fieldSelector=metadata.name%3Da%5C,b',
    'resourceVersionMatch=Exact',
    'resourceVersionMatch=Exact&resourceVersion=0',
    'resourceVersionMatch=Nope&resourceVersion=5',
    'resourceVersion=x',
    'resourceVersion=-1',
    'sendInitialEvents=true',
    'watch=1&sendInitialEvents=true',
    'watch=1&resourceVersionMatch=NotOlderThan&resourceVersion=0',
    'watch=1&resourceVersion=x',
    'continue=x',
    'continue=x&resourceVersion=5',
    'limit=x',
    'timeoutSeconds=x',
  ].map((query) => get(`${core}/configmaps?${query}`)),
  get(`${stored.configMap}?resourceVersion=x`),
  get(`${core}/configmaps`, 'application/xml'),
  get(`${core}/configmaps`, 'application/cbor'),
  get(`${core}/configmaps`, 'application/json;as=Nope;g=meta.k8s.io;v=v1'),
  get(`${core}/configmaps`, 'application/json;as=Table;g=meta.k8s.io;v=v9'),
  get(stored.configMap, 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1'),
  get(`${core}/configmaps?labelSelector=app%3Dx`, 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'),
]

export const streams: readonly Asked[] = [
  get(`${stored.pod}/exec?command=x&stdout=1`),
  get(`${stored.pod}/exec?stdout=1`),
  get(`${stored.pod}/exec?command=x`),
  get(`${stored.pod}/exec?command=x&stdout=1&container=none`),
  get(`${stored.pod}/attach`),
  get(`${stored.pod}/portforward`),
  get(`${core}/pods/none/exec?command=x&stdout=1`),
  get(`${stored.pod}/log`),
  get(`${stored.pod}/log?container=none`),
  get(`${stored.pod}/log?sinceSeconds=5&sinceTime=2026-01-01T00:00:00Z`),
  get(`${stored.pod}/log?sinceSeconds=-1&tailLines=-1&limitBytes=0`),
  get(`${stored.pod}/log?tailLines=x`),
  get(`${stored.pod}/log?sinceTime=nope`),
  get(`${core}/pods/none/log`),
  {
    method: 'POST',
    path: `${stored.pod}/eviction?dryRun=All`,
    body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'other' } },
  },
  {
    method: 'POST',
    path: `${core}/pods/none/eviction`,
    body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'none' } },
  },
  {
    method: 'POST',
    path: `${stored.pod}/binding`,
    body: { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'kept' }, target: {} },
  },
  {
    method: 'POST',
    path: `${core}/serviceaccounts/none/token`,
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
  },
  {
    method: 'POST',
    path: `${core}/serviceaccounts/default/token`,
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 5 } },
  },
]

const table = 'application/json;as=Table;g=meta.k8s.io;v=v1'

/** Columns of the kinds, from a list without rows. */
export const tables: readonly Asked[] = [
  ...[
    'pods',
    'services',
    'configmaps',
    'secrets',
    'serviceaccounts',
    'persistentvolumeclaims',
    'events',
    'endpoints',
  ].map((plural) => get(`${core}/${plural}?labelSelector=nobody`, table)),
  ...['namespaces', 'nodes', 'persistentvolumes'].map((plural) => get(`/api/v1/${plural}?labelSelector=nobody`, table)),
  ...[
    'coordination.k8s.io/v1/leases',
    'networking.k8s.io/v1/networkpolicies',
    'discovery.k8s.io/v1/endpointslices',
    'apps/v1/deployments',
    'apps/v1/replicasets',
    'policy/v1/poddisruptionbudgets',
    'storage.k8s.io/v1/storageclasses',
    'rbac.authorization.k8s.io/v1/clusterrolebindings',
    'admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
    'agents.x-k8s.io/v1beta1/sandboxes',
    'extensions.agents.x-k8s.io/v1beta1/sandboxclaims',
  ].map((path) => get(`/apis/${path}?labelSelector=nobody`, table)),
]
