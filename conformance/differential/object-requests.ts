import { type Asked, container, core, create, group, of, pod } from './asked.js'

/** What a server makes of an object: defaults, what it fills in, and who owns which field. */
export const objects: readonly Asked[] = [
  ...[
    {},
    { hostNetwork: true, containers: [{ ...container, ports: [{ containerPort: 80 }, { containerPort: 81 }] }] },
    { restartPolicy: 'Never', terminationGracePeriodSeconds: -1, securityContext: { runAsUser: 5 }, priority: 0 },
    {
      volumes: [
        { name: 'a' },
        { name: 'b', configMap: { name: 'x' } },
        { name: 'c', secret: { secretName: 'x' } },
        { name: 'd', hostPath: { path: '/x' } },
        { name: 'e', downwardAPI: { items: [{ path: 'p', fieldRef: { fieldPath: 'metadata.name' } }] } },
        { name: 'g', persistentVolumeClaim: { claimName: 'x' } },
        { name: 'h', emptyDir: { medium: 'Memory', sizeLimit: '64Mi' } },
      ],
    },
    {
      containers: [
        {
          ...container,
          image: 'example/c',
          livenessProbe: { httpGet: { port: 80 } },
          readinessProbe: { exec: { command: ['a'] } },
          startupProbe: { grpc: { port: 80 } },
          lifecycle: { preStop: { httpGet: { port: 'http' } } },
          env: [
            { name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
            { name: 'B', value: '' },
          ],
          resources: { limits: { cpu: '500m', memory: '0.5Gi' } },
        },
      ],
    },
    { containers: [{ ...container, resources: { requests: { cpu: '1500m' }, limits: { cpu: 2, memory: '1e3' } } }] },
    { initContainers: [{ name: 'i', image: 'example/i:latest' }], tolerations: [{ key: 'a', operator: 'Exists' }] },
    {
      affinity: { nodeAffinity: {} },
      nodeSelector: { a: 'b' },
      hostname: 'h',
      subdomain: 's',
      enableServiceLinks: false,
    },
    { topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'a', whenUnsatisfiable: 'DoNotSchedule' }] },
  ].map((spec) => create(`${core}/pods`, pod(spec))),
  ...[
    { ports: [{ port: 80 }] },
    { ports: [{ port: 80 }], clusterIP: 'None' },
    { ports: [{ port: 80 }], clusterIP: 'None', selector: { a: 'b' } },
    { ports: [{ port: 80, targetPort: 'http', name: 'a', appProtocol: 'http' }], selector: { a: 'b' } },
    { type: 'ExternalName', externalName: 'a.example.com' },
    { ports: [{ port: 80 }], sessionAffinity: 'ClientIP' },
    { ports: [{ port: 80 }], publishNotReadyAddresses: true, internalTrafficPolicy: 'Local' },
  ].map((spec) => create(`${core}/services`, of('v1', 'Service', { spec }))),
  create(`${core}/configmaps`, of('v1', 'ConfigMap', { data: { a: 'b' }, binaryData: { c: 'YQ==' }, immutable: true })),
  create(
    `${core}/configmaps`,
    of('v1', 'ConfigMap', { data: {}, metadata: { generateName: 'x', name: 'one', labels: {} } }),
  ),
  create(`${core}/secrets`, of('v1', 'Secret', { stringData: { a: 'b' }, data: { c: 'YQ==' } })),
  create(`${core}/secrets`, of('v1', 'Secret', { type: 'kubernetes.io/basic-auth', stringData: { username: 'x' } })),
  create(`${core}/serviceaccounts`, of('v1', 'ServiceAccount', { automountServiceAccountToken: false })),
  create(`${core}/events`, {
    ...of('v1', 'Event', { involvedObject: { kind: 'Pod', name: 'p', namespace: '{ns}' }, reason: 'R', message: 'm' }),
    type: 'Normal',
    firstTimestamp: '2026-01-01T00:00:00Z',
    lastTimestamp: '2026-01-01T00:00:00Z',
    count: 1,
    source: { component: 'x' },
  }),
  create('/api/v1/namespaces', of('v1', 'Namespace', { metadata: { name: 'one-{ns}', labels: { a: 'b' } } })),
  create(`${group('coordination.k8s.io/v1')}/leases`, {
    ...of('coordination.k8s.io/v1', 'Lease'),
    spec: { holderIdentity: 'x', leaseDurationSeconds: 15, renewTime: '2026-01-01T00:00:00.123456Z' },
  }),
  ...[
    { podSelector: {} },
    { podSelector: { matchLabels: { a: 'b' } }, ingress: [{}], egress: [] },
    { podSelector: {}, egress: [{ to: [{ podSelector: {} }, { namespaceSelector: {} }], ports: [{ port: 53 }] }] },
    { podSelector: {}, policyTypes: ['Egress'], egress: [{ ports: [{ port: 1, endPort: 9, protocol: 'UDP' }] }] },
  ].map((spec) =>
    create(`${group('networking.k8s.io/v1')}/networkpolicies`, of('networking.k8s.io/v1', 'NetworkPolicy', { spec })),
  ),
  create(`${group('discovery.k8s.io/v1')}/endpointslices`, {
    ...of('discovery.k8s.io/v1', 'EndpointSlice'),
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.0.0.1'] }],
    ports: [{ port: 80 }],
  }),
  create(`${group('apps/v1')}/deployments`, {
    ...of('apps/v1', 'Deployment'),
    spec: {
      selector: { matchLabels: { a: 'b' } },
      template: { metadata: { labels: { a: 'b' } }, spec: { containers: [container] } },
    },
  }),
  create(`${group('apps/v1')}/replicasets`, {
    ...of('apps/v1', 'ReplicaSet'),
    spec: {
      selector: { matchLabels: { a: 'b' } },
      template: { metadata: { labels: { a: 'b' } }, spec: { containers: [container] } },
    },
  }),
  create(`${group('policy/v1')}/poddisruptionbudgets`, {
    ...of('policy/v1', 'PodDisruptionBudget'),
    spec: { minAvailable: 1, selector: { matchLabels: { a: 'b' } } },
  }),
  create(`${group('rbac.authorization.k8s.io/v1')}/roles`, {
    ...of('rbac.authorization.k8s.io/v1', 'Role'),
    rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }],
  }),
  create(`${group('rbac.authorization.k8s.io/v1')}/rolebindings`, {
    ...of('rbac.authorization.k8s.io/v1', 'RoleBinding'),
    roleRef: { kind: 'ClusterRole', name: 'view' },
    subjects: [
      { kind: 'ServiceAccount', name: 'x', namespace: '{ns}' },
      { kind: 'User', name: 'u' },
    ],
  }),
  create('/apis/storage.k8s.io/v1/storageclasses', {
    ...of('storage.k8s.io/v1', 'StorageClass'),
    provisioner: 'example.com/x',
  }),
  create(`${group('agents.x-k8s.io/v1beta1')}/sandboxes`, {
    ...of('agents.x-k8s.io/v1beta1', 'Sandbox'),
    spec: { podTemplate: { spec: { containers: [container] } } },
  }),
]

/** Addresses that are written in a way only some read the same: accepted with a warning, or refused. */
export const addresses: readonly Asked[] = [
  ...[
    { externalIPs: ['010.1.2.3'] },
    { externalIPs: ['::ffff:1.2.3.4'] },
    { externalIPs: ['FD00::1'] },
    { externalIPs: ['nope'] },
    { externalIPs: ['127.0.0.1'] },
    { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false, loadBalancerIP: '010.1.2.3' },
    { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false, loadBalancerSourceRanges: ['10.1.2.3/8'] },
    { type: 'LoadBalancer', loadBalancerSourceRanges: ['nope'] },
    { internalTrafficPolicy: 'X' },
    { externalTrafficPolicy: 'Local' },
    { ipFamilyPolicy: 'X' },
    { ipFamilies: ['IPv5'] },
    { type: 'NodePort', clusterIP: 'None' },
    { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 0 } } },
    { ports: [{ port: 80, appProtocol: 'bad value!' }] },
    { ports: [{ port: 80, nodePort: 30000 }] },
  ].map((spec) => create(`${core}/services`, of('v1', 'Service', { spec: { ports: [{ port: 80 }], ...spec } }))),
  ...['10.1.2.3/8', '010.0.0.0/8', '::ffff:1.2.3.0/120', 'FD00::/8', '10.0.0.0/08', '10.0.0.0'].map((cidr) =>
    create(`${group('networking.k8s.io/v1')}/networkpolicies`, {
      ...of('networking.k8s.io/v1', 'NetworkPolicy'),
      spec: { podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr } }] }] },
    }),
  ),
  ...[
    { hostAliases: [{ ip: '010.1.2.3', hostnames: ['a'] }] },
    { dnsConfig: { nameservers: ['010.1.2.3'] } },
    { dnsConfig: { nameservers: ['nope'] } },
    { dnsPolicy: 'None' },
    { containers: [{ ...container, ports: [{ containerPort: 80, hostIP: '010.1.2.3' }] }] },
    {
      containers: [
        {
          ...container,
          env: [
            { name: 'A', value: '1' },
            { name: 'A', value: '2' },
          ],
        },
      ],
    },
    { containers: [{ ...container, ports: [{ containerPort: 80 }, { containerPort: 80 }] }] },
    { containers: [{ ...container, resources: { requests: { memory: '100m' } } }] },
    { nodeSelector: { 'beta.kubernetes.io/arch': 'amd64' } },
    { terminationGracePeriodSeconds: -5 },
    { imagePullSecrets: [{}] },
    { volumes: [{ name: 'a', gitRepo: { repository: 'x' } }] },
    { initContainers: [container] },
    { ephemeralContainers: [{ name: 'e', image: 'x' }] },
  ].map((spec) => create(`${core}/pods`, pod(spec))),
  ...[
    { addressType: 'IPv4', endpoints: [{ addresses: ['010.1.2.3'] }] },
    { addressType: 'IPv6', endpoints: [{ addresses: ['FD00::1'] }] },
    { addressType: 'IPv4', endpoints: [{ addresses: ['nope'] }] },
    { addressType: 'IPv4', endpoints: [{ addresses: ['127.0.0.1'] }] },
    { addressType: 'IPv4', endpoints: [{ addresses: [] }] },
    { addressType: 'Other', endpoints: [] },
    { endpoints: [] },
  ].map((slice) =>
    create(`${group('discovery.k8s.io/v1')}/endpointslices`, {
      ...of('discovery.k8s.io/v1', 'EndpointSlice'),
      ...slice,
    }),
  ),
]
