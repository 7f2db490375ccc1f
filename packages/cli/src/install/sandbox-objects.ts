import { defaultPool, defaultTemplate } from '../platform/defaults.js'
import { restrictedPod, sandboxContainer } from '../platform/pod-security.js'
import type { InstallValues } from './install-values.js'

/** The template and pool of tasks that name none, held to Pod Security's `restricted`. */
export function sandboxObjects({ namespace, sandbox }: InstallValues): object[] {
  const { spec, ...template } = defaultTemplate
  const { annotations: _ours, ...podMetadata } = spec.podTemplate.metadata ?? {}
  const podSpec = spec.podTemplate.spec ?? { containers: [] }
  const [container] = podSpec.containers
  return [
    {
      ...template,
      metadata: { ...template.metadata, namespace },
      spec: {
        ...spec,
        podTemplate: {
          ...(Object.keys(podMetadata).length > 0 ? { metadata: podMetadata } : {}),
          spec: {
            ...podSpec,
            securityContext: restrictedPod,
            imagePullSecrets: sandbox.pullSecrets,
            containers: [
              {
                ...container,
                image: sandbox.image,
                imagePullPolicy: sandbox.pullPolicy,
                resources: sandbox.resources,
                securityContext: sandboxContainer,
              },
            ],
            ...sandbox.pod,
          },
        },
      },
    },
    poolObject(namespace, sandbox.replicas),
  ]
}

function poolObject(namespace: string, replicas: unknown): object {
  const pool = defaultPool(0)
  return { ...pool, metadata: { ...pool.metadata, namespace }, spec: { ...pool.spec, replicas } }
}
