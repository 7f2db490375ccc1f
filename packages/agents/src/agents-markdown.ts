import * as z from 'zod'
import type { AgentAdapter } from './agent-adapter.js'
import { type AgentCapability, agentCapabilityNames, capabilitySummaries } from './agent-capabilities.js'
import { agentAdapters } from './agent-registry.js'
import { providers } from './providers/provider-registry.js'

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
const table = (head: readonly string[], rows: readonly (readonly string[])[]): string[] => [
  row(head),
  row(head.map(() => '---')),
  ...rows.map(row),
]

/** docs/agents.md, from the registries alone. */
export function renderAgentsMarkdown(): string {
  const adapters = [...agentAdapters.values()]
  return [
    '# Agents and model providers',
    '',
    'Generated from the registries in `packages/agents` by `npm run generate`. Do not edit.',
    '',
    '## Agents',
    '',
    ...table(['name', 'what it is', 'install', 'speaks', 'options'], adapters.map(agentRow)),
    '',
    '`speaks`: the provider whose API it uses; the first one where the request names none with `provider`. An agent that',
    'speaks none uses a model only where a provider is named.',
    '',
    '## What each can do',
    '',
    ...table(
      ['', ...adapters.map(({ name }) => name)],
      agentCapabilityNames.map((name) => [
        `\`${name}\`: ${capabilitySummaries[name]}`,
        ...adapters.map((adapter) => cell(adapter, name)),
      ]),
    ),
    '',
    'How messages and questions reach a running agent: [conversations.md](conversations.md).',
    '',
    '## Providers',
    '',
    ...table(
      ['name', 'key', 'address', 'prices known'],
      [...providers.values()].map((provider) => [
        `\`${provider.name}\``,
        `\`corral secret set ${provider.secret}\`${provider.keyVariable ? ` or \`${provider.keyVariable}\`` : ''}`,
        `${provider.defaultBaseUrl}${provider.baseUrlVariable ? ` (\`${provider.baseUrlVariable}\`)` : ''}`,
        `${Object.keys(provider.prices).length} models`,
      ]),
    ),
    '',
    'Servers that speak one of these APIs are added with `corral endpoint add`. Prices are list prices of a date;',
    '`prices.json` in the data directory overrides them and adds others. A model without a price has an unknown cost.',
    '',
  ].join('\n')
}

function agentRow({ name, title, summary, install, speaks, options }: AgentAdapter): string[] {
  const schema = z.toJSONSchema(options, { unrepresentable: 'any' }) as { properties?: object }
  const names = Object.keys(schema.properties ?? {}).map((option) => `\`${option}\``)
  return [
    `\`${name}\``,
    `${title}: ${summary}`,
    install ? `\`corral agent install ${name}\` (${install.package} ${install.version})` : 'nothing to install',
    speaks?.join(', ') ?? 'what is named',
    names.join(', '),
  ]
}

function cell({ capabilities }: AgentAdapter, name: AgentCapability): string {
  const capability = capabilities[name]
  return capability === true ? 'yes' : `no: ${capability.no}`
}
