const verbs: Readonly<Record<string, string>> = {
  GET: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
}

/**
 * A request to the API in the words of kubectl, for messages that people read: `get sandboxes/a in namespace b`. A path
 * that is no resource keeps its name.
 */
export function requestWords({ method, path }: { method: string; path: string }): string {
  const [plain = ''] = path.split('?', 1)
  const match = /^\/(?:api|apis\/[^/]+)\/[^/]+(?:\/namespaces\/([^/]+)(?=\/))?\/([^/]+)(?:\/([^/]+))?(?:\/(.+))?$/.exec(
    plain,
  )
  const verb = verbs[method] ?? method.toLowerCase()
  if (!match) return `${verb} ${plain}`
  const [, namespace, plural = '', name, subresource] = match
  const isWatch = /[?&]watch=(true|1)/.test(path)
  const what = [plural, name, subresource]
    .filter((part) => part !== undefined)
    .map(decoded)
    .join('/')
  const where = namespace === undefined ? '' : ` in namespace ${decoded(namespace)}`
  return `${isWatch ? 'watch' : verb === 'get' && name === undefined ? 'list' : verb} ${what}${where}`
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
