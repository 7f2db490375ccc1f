import type { PatchSettingsRequest, SettingsView } from '@corral/protocol'

/** The settings as the form holds them: text until it is sent. */
export interface SettingsDraft {
  readonly provider: 'embedded' | 'kubernetes'
  readonly context: string
  readonly namespace: string
  readonly runtimeClass: string
  readonly timeoutMinutes: string
  readonly maxCost: string
  readonly maxTokens: string
}

export function draftOf(view: SettingsView): SettingsDraft {
  const number = (value: number | undefined): string => (value === undefined ? '' : String(value))
  return {
    provider: view.provider,
    context: view.context ?? '',
    namespace: view.namespace ?? '',
    runtimeClass: view.runtime_class ?? '',
    timeoutMinutes: number(view.timeout_seconds === undefined ? undefined : view.timeout_seconds / 60),
    maxCost: number(view.max_cost_usd),
    maxTokens: number(view.max_tokens),
  }
}

type Checked =
  | { readonly patch: PatchSettingsRequest }
  | { readonly problems: Partial<Record<keyof SettingsDraft, string>> }

const name = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/

/** What a draft asks for: every field, so that a field that was emptied is taken away. */
export function patchOf(draft: SettingsDraft): Checked {
  const problems: Partial<Record<keyof SettingsDraft, string>> = {}
  const text = (value: string): string | null => value.trim() || null
  const number = (field: keyof SettingsDraft, isWhole: boolean, factor = 1): number | null => {
    const value = draft[field].trim()
    if (value === '') return null
    const parsed = Number(value)
    if (!(parsed > 0) || (isWhole && !Number.isInteger(parsed)))
      problems[field] = isWhole ? 'A whole number above 0, or nothing.' : 'A number above 0, or nothing.'
    return Math.round(parsed * factor * 1e6) / 1e6
  }
  for (const field of ['namespace', 'runtimeClass'] as const)
    if (draft[field].trim() !== '' && !name.test(draft[field].trim()))
      problems[field] = 'Small letters, digits and hyphens.'
  const patch: PatchSettingsRequest = {
    provider: draft.provider,
    context: draft.provider === 'kubernetes' ? text(draft.context) : null,
    namespace: draft.provider === 'kubernetes' ? text(draft.namespace) : null,
    runtime_class: text(draft.runtimeClass),
    timeout_seconds: number('timeoutMinutes', false, 60),
    max_cost_usd: number('maxCost', false),
    max_tokens: number('maxTokens', true),
  }
  return Object.keys(problems).length > 0 ? { problems } : { patch }
}

export const isChanged = (draft: SettingsDraft, view: SettingsView): boolean =>
  JSON.stringify(draft) !== JSON.stringify(draftOf(view))

/** Whether what is saved differs from where the sandboxes of this process run. */
export function needsRestart({ provider, context, namespace, active }: SettingsView): boolean {
  if (provider !== active.provider) return true
  return (
    provider === 'kubernetes' &&
    ((context ?? active.context) !== active.context || (namespace ?? active.namespace) !== active.namespace)
  )
}

/** Runtime classes people know by other names. */
export const runtimeTitle = (className: string): string =>
  ({
    gvisor: 'gVisor (gvisor)',
    runsc: 'gVisor (runsc)',
    kata: 'Kata Containers (kata)',
    'kata-qemu': 'Kata Containers (kata-qemu)',
  })[className] ?? className
