import { restrictedContainer, restrictedPod } from '../platform/pod-security.js'
import type { InstallValues } from './install-values.js'
import { bindingObject, corePermissions, electionPermissions, extensionPermissions, roleObject } from './permissions.js'

const name = 'corral-controller'
export const controllerLabels: { app: string } = { app: name }

/** `corral controller` with its rights: cluster-wide, since sandboxes may be made in any namespace. */
export function controllerObjects(values: InstallValues): object[] {
  const { namespace, controllers } = values
  const account = { name, namespace }
  const probe = (path: string, periodSeconds: number): object => ({
    httpGet: { path, port: 'health' },
    periodSeconds,
    timeoutSeconds: 5,
  })
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { ...account, labels: controllerLabels } },
    roleObject(name, corePermissions),
    bindingObject(name, account),
    roleObject(`${name}-extensions`, extensionPermissions),
    bindingObject(`${name}-extensions`, account),
    roleObject(`${name}-election`, electionPermissions, namespace),
    bindingObject(`${name}-election`, account, namespace),
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { ...account, labels: controllerLabels },
      spec: { selector: controllerLabels, ports: [{ name: 'metrics', port: 8080, targetPort: 'metrics' }] },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { ...account, labels: controllerLabels },
      spec: {
        replicas: 1,
        selector: { matchLabels: controllerLabels },
        template: {
          metadata: { labels: controllerLabels },
          spec: {
            serviceAccountName: name,
            enableServiceLinks: false,
            securityContext: restrictedPod,
            imagePullSecrets: values.pullSecrets,
            containers: [
              {
                name,
                image: values.image,
                imagePullPolicy: values.pullPolicy,
                args: [
                  ...['controller', '--extensions', '--leader-elect=true'],
                  `--enable-tracing=${String(controllers.isTracing)}`,
                ],
                env: controllers.extraEnv,
                ports: [
                  { name: 'metrics', containerPort: 8080, protocol: 'TCP' },
                  { name: 'health', containerPort: 8081, protocol: 'TCP' },
                ],
                // Without it the pod counts as ready only ten seconds after the first look, which comes too early.
                startupProbe: { ...probe('/readyz', 1), failureThreshold: 120 },
                livenessProbe: probe('/healthz', 10),
                readinessProbe: probe('/readyz', 10),
                resources: controllers.resources,
                securityContext: restrictedContainer,
              },
            ],
            ...controllers.placement,
          },
        },
      },
    },
  ]
}
