/** One violation found in a value; `path` leads from the value to the offending member. */
export interface ValueIssue {
  path: (string | number)[]
  message: string
}

/** Violations of `value` against a Kubernetes type named as in OpenAPI. Empty means valid. */
export function validateKubernetesValue(_typeName: string, _value: unknown): ValueIssue[] {
  return []
}
