import type { InstallValues } from './install-values.js'
import { bindingObject, corePermissions, electionPermissions, extensionPermissions, roleObject } from './permissions.js'
import { restrictedContainer, restrictedPod } from './pod-security.js'

const name = 'corral-controller'
export const controllerLabels: { app: string } = { app: name }

/** `corral controller` with its rights: cluster-wide, since sandboxes may be made in any namespace. */
export function controllerObjects(values: InstallValues): object[] {
  const { namespace, controllers } = values
  const account = { name, namespace }
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
                args: ['controller', '--extensions', '--leader-elect=true'],
                ports: [
                  { name: 'metrics', containerPort: 8080, protocol: 'TCP' },
                  { name: 'health', containerPort: 8081, protocol: 'TCP' },
                ],
                livenessProbe: { httpGet: { path: '/healthz', port: 'health' }, periodSeconds: 10, timeoutSeconds: 5 },
                readinessProbe: { httpGet: { path: '/readyz', port: 'health' }, periodSeconds: 10, timeoutSeconds: 5 },
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
