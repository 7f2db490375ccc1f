/** The pages by address. Addresses are shared with the API, so that a link to a task works for both. */
export type Route =
  | {
      readonly page: 'tasks'
      readonly view: 'list' | 'board'
      readonly query: string
      readonly status: string
      readonly project: string
    }
  | { readonly page: 'task'; readonly id: string; readonly tab: TaskTab }
  | { readonly page: 'new' }
  | { readonly page: 'review'; readonly task: string }
  | { readonly page: 'compare'; readonly group: string }
  | { readonly page: 'projects' }
  | { readonly page: 'project'; readonly id: string }
  | { readonly page: 'sandboxes' }
  | { readonly page: 'pool'; readonly name: string }
  | { readonly page: 'usage' }
  | { readonly page: 'settings'; readonly section: string }
  | { readonly page: 'login' }
  | { readonly page: 'missing'; readonly path: string }

export const taskTabs = ['activity', 'changes', 'terminal', 'details'] as const
export type TaskTab = (typeof taskTabs)[number]

export function routeOf(url: URL): Route {
  const [first = '', second = '', third = '', ...rest] = url.pathname.split('/').slice(1).map(decoded)
  const parameter = (name: string): string => url.searchParams.get(name) ?? ''
  const isWhole = rest.length === 0
  if (first === '' && second === '')
    return {
      page: 'tasks',
      view: parameter('view') === 'board' ? 'board' : 'list',
      query: parameter('q'),
      status: parameter('status'),
      project: parameter('project'),
    }
  if (first === 'tasks' && second && isWhole) {
    const tab = taskTabs.find((name) => name === (third || 'activity'))
    if (tab) return { page: 'task', id: second, tab }
  }
  if (third === '' && isWhole) {
    if (first === 'projects' && second) return { page: 'project', id: second }
    if (first === 'pools' && second) return { page: 'pool', name: second }
    if (first === 'compare' && second) return { page: 'compare', group: second }
    if (first === 'settings') return { page: 'settings', section: second || 'sandboxes' }
    if (first === 'review' && second === '') return { page: 'review', task: parameter('task') }
    const alone = (['new', 'projects', 'sandboxes', 'usage', 'login'] as const).find((name) => name === first)
    if (alone && second === '') return { page: alone }
  }
  return { page: 'missing', path: url.pathname }
}

export function pathOf(route: Route): string {
  switch (route.page) {
    case 'tasks': {
      const query = new URLSearchParams()
      if (route.view === 'board') query.set('view', 'board')
      if (route.query) query.set('q', route.query)
      if (route.status) query.set('status', route.status)
      if (route.project) query.set('project', route.project)
      return query.size > 0 ? `/?${query}` : '/'
    }
    case 'task':
      return `/tasks/${encodeURIComponent(route.id)}${route.tab === 'activity' ? '' : `/${route.tab}`}`
    case 'project':
      return `/projects/${encodeURIComponent(route.id)}`
    case 'pool':
      return `/pools/${encodeURIComponent(route.name)}`
    case 'compare':
      return `/compare/${encodeURIComponent(route.group)}`
    case 'settings':
      return route.section === 'sandboxes' ? '/settings' : `/settings/${encodeURIComponent(route.section)}`
    case 'review':
      return route.task ? `/review?task=${encodeURIComponent(route.task)}` : '/review'
    case 'missing':
      return route.path
    default:
      return `/${route.page}`
  }
}

/** A path that is no valid encoding is some page that does not exist, not a failure of the program. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
