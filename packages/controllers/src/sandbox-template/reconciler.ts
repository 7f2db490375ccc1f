import type { KubeClient } from '@corral/kube'
import { isNotFound, NetworkPolicies, type SandboxTemplate, SandboxTemplates, type Stored } from '@corral/resources'
import type { Reconcile } from '@corral/runtime'
import type { ExtensionsState } from '../shared/cluster-state.js'
import { labels } from '../shared/names.js'
import type { Tracer } from '../shared/tracing.js'
import { planTemplate, policyName, type TemplateAction } from './plan.js'

export interface TemplatePorts {
  client: KubeClient
  state: ExtensionsState
  tracer: Tracer
}

/** Labels templates with their hash and keeps the NetworkPolicy of managed ones. */
export function templateReconciler(ports: TemplatePorts): Reconcile {
  return async ({ key, namespace, signal }) => {
    const template = ports.state.templates.get(key)
    if (!template) return {}
    await ports.tracer.span('ReconcileSandboxTemplate', template, {}, async () => {
      const policy = ports.state.networkPolicies.get(`${namespace}/${policyName(template)}`)
      for (const action of planTemplate({ template, policy })) await perform(action, template, ports, signal)
    })
    return {}
  }
}

async function perform(
  action: TemplateAction,
  template: Stored<SandboxTemplate>,
  { client, state }: TemplatePorts,
  signal: AbortSignal,
): Promise<void> {
  const { name, namespace = '' } = template.metadata
  switch (action.kind) {
    case 'labelTemplate': {
      const body = { metadata: { labels: { [labels.templateRefHash]: action.value } } }
      const patched = await client.patch(SandboxTemplates, { name, namespace }, { type: 'merge', body }, { signal })
      state.templates.remember(patched)
      return
    }
    case 'createPolicy':
      state.networkPolicies.remember(await client.create(NetworkPolicies, action.policy, { signal }))
      return
    case 'replacePolicy':
      state.networkPolicies.remember(await client.update(NetworkPolicies, action.policy, { signal }))
      return
    case 'deletePolicy':
      try {
        await client.delete(NetworkPolicies, { name: action.name, namespace }, { signal })
      } catch (error) {
        if (!isNotFound(error)) throw error
      }
      return
    case 'refuse':
      throw new Error(action.message)
  }
}
