import { fieldTable } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { encodeProtobuf } from './encode.test-suite.js'
import recorded from './fixtures/kubectl-1.33.json' with { type: 'json' }
import { decodeProtobuf, isProtobuf } from './index.js'

const bytesOf = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, 'hex'))

describe('bodies recorded from kubectl 1.33', () => {
  const expected: Record<keyof typeof recorded, object> = {
    configmap: {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'settings' },
      data: { colour: 'green', size: '3' },
    },
    secret: { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'token' }, data: { key: 'czNjcmV0' } },
    namespace: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team-a' }, spec: {}, status: {} },
    serviceaccount: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot' } },
    deployment: {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', labels: { app: 'web' } },
      spec: {
        replicas: 0,
        selector: { matchLabels: { app: 'web' } },
        strategy: {},
        template: {
          metadata: { labels: { app: 'web' } },
          spec: {
            containers: [{ name: 'web', image: 'example.org/web:1', ports: [{ containerPort: 8080 }], resources: {} }],
          },
        },
      },
      status: {},
    },
    service: {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web', labels: { app: 'web' } },
      spec: {
        type: 'ClusterIP',
        selector: { app: 'web' },
        ports: [{ name: '80-http', protocol: 'TCP', port: 80, targetPort: 'http' }],
      },
      status: { loadBalancer: {} },
    },
    token: {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: {},
      spec: { expirationSeconds: 600 },
    },
    caniSelf: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { namespace: 'default', verb: 'create', resource: 'pods' } },
    },
    whoami: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
    role: {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      rules: [{ verbs: ['get', 'list'], apiGroups: [''], resources: ['pods'] }],
    },
    pdb: {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      spec: { minAvailable: '50%', selector: { matchLabels: { app: 'web' } } },
    },
  }

  it.each(Object.keys(recorded) as (keyof typeof recorded)[])('%s', (name) => {
    expect(decodeProtobuf(bytesOf(recorded[name]))).toMatchObject(expected[name])
  })
})

describe('check 22-24: what is encoded from JSON decodes to it', () => {
  it.each<{ what: string; object: { apiVersion: string; kind: string; [field: string]: unknown } }>([
    {
      what: 'a pod with inlined sources, a probe, quantities and pointers to zero',
      object: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'p', creationTimestamp: '2026-01-02T03:04:05Z', annotations: { empty: '' } },
        spec: {
          terminationGracePeriodSeconds: 0,
          automountServiceAccountToken: false,
          securityContext: { runAsUser: 0, fsGroup: 1000 },
          volumes: [
            { name: 'a', emptyDir: { sizeLimit: '1Gi' } },
            { name: 'b', secret: { secretName: 's', optional: false, defaultMode: 0 } },
            { name: 'c', emptyDir: {} },
          ],
          containers: [
            {
              name: 'c',
              env: [{ name: 'K', valueFrom: { secretKeyRef: { name: 's', key: 'k', optional: false } } }],
              resources: { limits: { cpu: '500m', memory: '64Mi' } },
              livenessProbe: { httpGet: { path: '/', port: 'http' }, periodSeconds: 5 },
              readinessProbe: { tcpSocket: { port: 80 } },
              ports: [{ containerPort: 80 }],
            },
          ],
          tolerations: [{ key: 'k', tolerationSeconds: 0 }],
        },
        status: {},
      },
    },
    {
      what: 'a lease with micro times',
      object: {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name: 'l' },
        spec: { renewTime: '2026-01-02T03:04:05.000123Z', leaseTransitions: 0 },
      },
    },
    {
      what: 'delete options under any group',
      object: {
        apiVersion: 'apps/v1',
        kind: 'DeleteOptions',
        gracePeriodSeconds: 0,
        preconditions: { uid: 'u' },
        propagationPolicy: 'Foreground',
      },
    },
    {
      what: 'a network policy that selects everything',
      object: {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'NetworkPolicy',
        metadata: { name: 'n' },
        spec: { podSelector: {}, policyTypes: ['Egress'] },
      },
    },
    {
      what: 'a review with wrapped lists',
      object: {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenReview',
        metadata: {},
        spec: { token: 't' },
        status: { user: { username: 'me', extra: { scopes: ['a', 'b'] } } },
      },
    },
    {
      what: 'a schema with embedded JSON and either-or fields',
      object: {
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: 'c' },
        spec: {
          group: 'g.io',
          names: { plural: 'c', kind: 'C' },
          scope: 'Namespaced',
          versions: [
            {
              name: 'v1',
              served: true,
              storage: false,
              schema: {
                openAPIV3Schema: {
                  type: 'object',
                  properties: {
                    list: { type: 'array', items: { type: 'string' }, default: ['a', 1] },
                    map: { type: 'object', additionalProperties: { type: 'integer', minimum: 0 } },
                    open: { type: 'object', additionalProperties: true },
                  },
                },
              },
            },
          ],
        },
      },
    },
  ])('$what', ({ object }) => {
    expect(decodeProtobuf(encodeProtobuf(object, fieldTable))).toMatchObject(object)
  })
})

describe('bytes that are no object', () => {
  const valid = bytesOf(recorded.deployment)

  it('are refused or read, never a crash, whatever byte is cut or changed', () => {
    let refused = 0
    for (let i = 0; i < valid.length; i++) {
      for (const bytes of [valid.subarray(0, i), valid.with(i, valid[i]! ^ 0xff)]) {
        try {
          decodeProtobuf(bytes)
        } catch (error) {
          expect(error).toMatchObject({ status: 400 })
          refused++
        }
      }
    }
    expect(refused).toBeGreaterThan(valid.length)
  })

  it('are told by their first four', () => {
    expect(isProtobuf(valid)).toBe(true)
    expect(isProtobuf(new TextEncoder().encode('{}'))).toBe(false)
  })

  it('a kind without a protobuf form is named', () => {
    const body = encodeProtobuf({ apiVersion: 'v1', kind: 'ConfigMap' }, fieldTable)
    const text = Buffer.from(body).toString('latin1').replace('ConfigMap', 'ConfigNap')
    expect(() => decodeProtobuf(new Uint8Array(Buffer.from(text, 'latin1')))).toThrow(/ConfigNap/)
  })
})
