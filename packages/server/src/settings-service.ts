import type {
  ConnectionCheck,
  KubeContextList,
  KubeNameList,
  PatchSettingsRequest,
  SettingsView,
} from '@corral/protocol'

/** Settings of the platform, and what its kubeconfig and cluster offer for them. */
export interface SettingsService {
  get(): Promise<SettingsView>
  /** `Conflict` where `revision` is given and is not the present one. */
  change(patch: PatchSettingsRequest): Promise<SettingsView>
  /** Looks at the cluster of the saved settings, changed by `patch`, which is not saved. Rejects what makes no sense. */
  test(patch: PatchSettingsRequest, signal: AbortSignal): Promise<AsyncIterable<ConnectionCheck>>
  contexts(): Promise<KubeContextList>
  namespaces(context: string | undefined): Promise<KubeNameList>
  runtimeClasses(context: string | undefined): Promise<KubeNameList>
}
