import { deepEqual } from 'node:assert/strict'
import { type Check, check } from '../harness/check.js'

/** A part of an object, and the fields a server complains about; 400 where it cannot be read at all. */
type Row = readonly [part: object, refused: readonly string[] | 400]

const containerRows: readonly Row[] = [
  [{ image: 5 }, 400],
  [{ name: 'Bad_Name' }, ['spec.containers[0].name']],
  [{ name: 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' }, ['spec.containers[0].name']],
  [{ ports: [{ containerPort: 0 }] }, ['spec.containers[0].ports[0].containerPort']],
  [{ ports: [{ containerPort: 70000 }] }, ['spec.containers[0].ports[0].containerPort']],
  [{ ports: [{ containerPort: 80, protocol: 'XYZ' }] }, ['spec.containers[0].ports[0].protocol']],
  [{ ports: [{ name: 'Bad Name', containerPort: 80 }] }, ['spec.containers[0].ports[0].name']],
  [{ env: [{ name: '' }] }, ['spec.containers[0].env[0].name']],
  [{ env: [{ name: 'A', value: 5 }] }, 400],
  [{ env: [{ name: 'A', valueFrom: {} }] }, ['spec.containers[0].env[0].valueFrom']],
  [{ imagePullPolicy: 'Sometimes' }, ['spec.containers[0].imagePullPolicy']],
  [{ resources: { requests: { cpu: 'abc' } } }, 400],
  [{ resources: { requests: { cpu: '2' }, limits: { cpu: '1' } } }, ['spec.containers[0].resources.requests']],
  [{ resources: { requests: { cpu: '-1' } } }, ['spec.containers[0].resources.requests[cpu]']],
  [
    { livenessProbe: { httpGet: { port: 80 }, exec: { command: ['a'] } } },
    ['spec.containers[0].livenessProbe.httpGet'],
  ],
  [{ livenessProbe: {} }, ['spec.containers[0].livenessProbe']],
  [{ livenessProbe: { httpGet: { port: 0 } } }, ['spec.containers[0].livenessProbe.httpGet.port']],
  [
    { livenessProbe: { tcpSocket: { port: 80 }, periodSeconds: -1 } },
    ['spec.containers[0].livenessProbe.periodSeconds'],
  ],
  [
    {
      volumeMounts: [
        { name: 'v', mountPath: '/a' },
        { name: 'v', mountPath: '/a' },
      ],
    },
    [
      'spec.containers[0].volumeMounts[0].name',
      'spec.containers[0].volumeMounts[1].mountPath',
      'spec.containers[0].volumeMounts[1].name',
    ],
  ],
  [{ securityContext: { runAsUser: -1 } }, ['spec.containers[0].securityContext.runAsUser']],
  [{ terminationMessagePolicy: 'X' }, ['spec.containers[0].terminationMessagePolicy']],
  [{ lifecycle: { preStop: {} } }, ['spec.containers[0].lifecycle.preStop']],
  [{ command: 'x' }, 400],
  [{ stdin: 'x' }, 400],
]

const podSpecRows: readonly Row[] = [
  [{ dnsPolicy: 'X' }, ['spec.dnsPolicy']],
  [{ activeDeadlineSeconds: 0 }, ['spec.activeDeadlineSeconds']],
  [{ nodeName: 'Bad Node' }, ['spec.nodeName']],
  [{ hostname: 'Bad' }, ['spec.hostname']],
  [{ subdomain: 'Bad_' }, ['spec.subdomain']],
  [{ serviceAccountName: 'Bad_' }, ['spec.serviceAccountName']],
  [{ nodeSelector: { 'a b': 'c' } }, ['spec.nodeSelector']],
  [{ volumes: [{ name: 'a' }, { name: 'a' }] }, ['spec.volumes[1].name']],
  [{ volumes: [{ name: 'Bad_' }] }, ['spec.volumes[0].name']],
  [{ volumes: [{ name: 'a', emptyDir: {}, hostPath: { path: '/' } }] }, ['spec.volumes[0].hostPath']],
  [{ volumes: [{ name: 'a', hostPath: { path: '' } }] }, ['spec.volumes[0].hostPath.path']],
  [{ volumes: [{ name: 'a', configMap: {} }] }, ['spec.volumes[0].configMap.name']],
  [
    { volumes: [{ name: 'a', secret: { secretName: 'x', defaultMode: 9999 } }] },
    ['spec.volumes[0].secret.defaultMode'],
  ],
  [{ volumes: [{ name: 'a', persistentVolumeClaim: {} }] }, ['spec.volumes[0].persistentVolumeClaim.claimName']],
  [{ tolerations: [{ operator: 'Nope' }] }, ['spec.tolerations[0].operator']],
  [{ tolerations: [{ key: 'a', operator: 'Exists', value: 'x' }] }, ['spec.tolerations[0].operator']],
  [{ containers: [] }, ['spec.containers']],
  [{ priority: 'x' }, 400],
  [{ hostAliases: [{ ip: 'nope' }] }, ['spec.hostAliases[0].ip']],
]

const podMetadataRows: readonly Row[] = [
  [{ labels: { a: 'b c' } }, ['metadata.labels']],
  [{ labels: 'x' }, 400],
  [{ generation: 'x' }, 400],
  [{ creationTimestamp: 'nope' }, 400],
  [
    { ownerReferences: [{ name: 'x' }] },
    ['metadata.ownerReferences.apiVersion', 'metadata.ownerReferences.kind', 'metadata.ownerReferences.uid'],
  ],
  [
    {
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Pod', name: 'a', uid: '1', controller: true },
        { apiVersion: 'v1', kind: 'Pod', name: 'b', uid: '2', controller: true },
      ],
    },
    ['metadata.ownerReferences'],
  ],
  [{ annotations: { 'Bad Key!': 'x' } }, ['metadata.annotations']],
]

const configMapRows: readonly Row[] = [
  [{ data: { 'a b': 'c' } }, ['data[a b]']],
  [{ data: { a: 5 } }, 400],
  [{ data: { a: '1' }, binaryData: { a: 'YQ==' } }, ['data[a]']],
  [{ binaryData: { a: '!!!' } }, 400],
  [{ immutable: 'x' }, 400],
  [{ data: [] }, 400],
]

const secretRows: readonly Row[] = [
  [{ data: { a: '!!' } }, 400],
  [{ type: 'kubernetes.io/tls', data: {} }, ['data[tls.crt]', 'data[tls.key]']],
  [{ type: 'kubernetes.io/dockerconfigjson' }, ['data[.dockerconfigjson]']],
  [{ stringData: { 'a b': 'x' } }, ['data[a b]']],
  [{ type: 'kubernetes.io/basic-auth' }, ['data[password]', 'data[username]']],
  [{ type: 'kubernetes.io/service-account-token' }, ['metadata.annotations[kubernetes.io/service-account.name]']],
]

const serviceRows: readonly Row[] = [
  [{}, ['spec.ports']],
  [{ ports: [] }, ['spec.ports']],
  [{ ports: [{ port: 0 }] }, ['spec.ports[0].port', 'spec.ports[0].targetPort']],
  [{ ports: [{ port: 80 }, { port: 81 }] }, ['spec.ports[0].name', 'spec.ports[1].name']],
  [{ ports: [{ port: 80, protocol: 'X' }] }, ['spec.ports[0].protocol']],
  [{ ports: [{ port: 80, targetPort: 99999 }] }, ['spec.ports[0].targetPort']],
  [{ type: 'X', ports: [{ port: 80 }] }, ['spec.type']],
  [{ clusterIP: 'nope', ports: [{ port: 80 }] }, ['spec.clusterIPs[0]']],
  [{ type: 'ExternalName' }, ['spec.externalName']],
  [{ type: 'ExternalName', externalName: 'Bad Name' }, ['spec.externalName']],
  [{ sessionAffinity: 'X', ports: [{ port: 80 }] }, ['spec.sessionAffinity']],
  [{ selector: { a: 'b c' }, ports: [{ port: 80 }] }, ['spec.selector']],
  [
    {
      ports: [
        { port: 80, name: 'a' },
        { port: 81, name: 'a' },
      ],
    },
    ['spec.ports[1].name'],
  ],
  [
    {
      ports: [
        { port: 80, name: 'a' },
        { port: 80, name: 'b' },
      ],
    },
    ['spec.ports[1]'],
  ],
]

const persistentVolumeClaimRows: readonly Row[] = [
  [{}, ['spec.accessModes', 'spec.resources[storage]']],
  [{ accessModes: ['X'], resources: { requests: { storage: '1Gi' } } }, ['spec.accessModes']],
  [{ accessModes: ['ReadWriteOnce'], resources: {} }, ['spec.resources[storage]']],
  [{ accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '0' } } }, ['spec.resources[storage]']],
  [{ accessModes: ['ReadWriteOnce'], resources: { requests: { storage: 'x' } } }, 400],
]

const leaseRows: readonly Row[] = [
  [{ leaseDurationSeconds: 0 }, ['spec.leaseDurationSeconds']],
  [{ leaseDurationSeconds: -1 }, ['spec.leaseDurationSeconds']],
  [{ leaseTransitions: -1 }, ['spec.leaseTransitions']],
  [{ renewTime: 'x' }, 400],
  [{ holderIdentity: 5 }, 400],
]

const networkPolicyRows: readonly Row[] = [
  [{ podSelector: { matchLabels: { a: 'b c' } } }, ['spec.podSelector.matchLabels']],
  [{ podSelector: {}, policyTypes: ['X'] }, ['spec.policyTypes[0]']],
  [{ podSelector: {}, ingress: [{ from: [{}] }] }, ['spec.ingress[0].from[0]']],
  [{ podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr: 'x' } }] }] }, ['spec.ingress[0].from[0].ipBlock.cidr']],
  [{ podSelector: {}, ingress: [{ ports: [{ port: 0 }] }] }, ['spec.ingress[0].ports[0].port']],
  [
    { podSelector: {}, egress: [{ to: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['11.0.0.0/16'] } }] }] },
    ['spec.egress[0].to[0].ipBlock.except[0]'],
  ],
]

interface Refusals {
  readonly collection: string
  readonly rows: readonly Row[]
  /** A whole object around the part. */
  around(part: object): object
}

const pod = (spec: object, metadata: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'one', ...metadata },
  spec: { containers: [{ name: 'c', image: 'x:1' }], ...spec },
})
const of = (apiVersion: string, kind: string, part: object): object => ({
  apiVersion,
  kind,
  metadata: { name: 'one' },
  ...part,
})

const refusals: readonly Refusals[] = [
  {
    collection: '/api/v1/pods',
    rows: containerRows,
    around: (part) => pod({ containers: [{ name: 'c', image: 'x:1', ...part }] }),
  },
  { collection: '/api/v1/pods', rows: podSpecRows, around: (part) => pod(part) },
  { collection: '/api/v1/pods', rows: podMetadataRows, around: (part) => pod({}, part) },
  { collection: '/api/v1/configmaps', rows: configMapRows, around: (part) => of('v1', 'ConfigMap', part) },
  { collection: '/api/v1/secrets', rows: secretRows, around: (part) => of('v1', 'Secret', part) },
  { collection: '/api/v1/services', rows: serviceRows, around: (spec) => of('v1', 'Service', { spec }) },
  {
    collection: '/api/v1/persistentvolumeclaims',
    rows: persistentVolumeClaimRows,
    around: (spec) => of('v1', 'PersistentVolumeClaim', { spec }),
  },
  {
    collection: '/apis/coordination.k8s.io/v1/leases',
    rows: leaseRows,
    around: (spec) => of('coordination.k8s.io/v1', 'Lease', { spec }),
  },
  {
    collection: '/apis/networking.k8s.io/v1/networkpolicies',
    rows: networkPolicyRows,
    around: (spec) => of('networking.k8s.io/v1', 'NetworkPolicy', { spec }),
  },
]

const count = refusals.reduce((sum, { rows }) => sum + rows.length, 0)

export const coreValidation: readonly Check[] = [
  check(140, `${count} objects of core kinds with something wrong are refused, naming the field`, async (t) => {
    const namespace = await t.ns()
    for (const { collection, rows, around } of refusals) {
      const path = collection.replace(/\/([^/]+)$/, `/namespaces/${namespace}/$1?dryRun=All`)
      for (const [part, refused] of rows) {
        const answer = await t.post(path, around(part))
        const causes = (answer.body.details?.causes ?? []) as { field: string }[]
        const fields = [...new Set(causes.map(({ field }) => field))].sort()
        const found = answer.status === 422 ? fields : answer.status
        deepEqual(found, refused, `${collection} ${JSON.stringify(part)}: ${answer.text.slice(0, 300)}`)
      }
    }
  }),
]
