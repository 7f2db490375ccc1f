import './styles/main.css'
import { effect, type Signal } from '@preact/signals'
import { type ComponentChildren, type JSX, render } from 'preact'
import { LoginPage } from './pages/login-page.js'
import { TasksPage } from './pages/tasks-page.js'
import { Empty, Loading, Problem } from './parts/basics.js'
import { Boundary } from './parts/boundary.js'
import { lazy } from './parts/lazy.js'
import { areKeysShown, isNewTaskOpen, isPaletteOpen } from './parts/overlays.js'
import { KeyHelp, Palette } from './parts/palette.js'
import { needsYou, Shell } from './parts/shell.js'
import { loadAgents } from './state/agents.js'
import { loadSession, session } from './state/api.js'
import { onKey, useKeys } from './state/keys.js'
import { followLinks, go, route } from './state/location.js'
import './state/notices.js'
import { areTasksKnown, startStream } from './state/stream.js'

const TaskPage = lazy(async () => (await import('./pages/task-page.js')).TaskPage)
const NewTask = lazy(
  async () => (await import('./parts/new-task.js')).NewTask,
  () => null,
)
const ReviewPage = lazy(async () => (await import('./pages/review-page.js')).ReviewPage)
const SandboxesPage = lazy(async () => (await import('./pages/sandboxes-page.js')).SandboxesPage)
const PoolPage = lazy(async () => (await import('./pages/sandboxes-page.js')).PoolPage)
const ComparePage = lazy(async () => (await import('./pages/compare-page.js')).ComparePage)
const ProjectsPage = lazy(async () => (await import('./pages/projects-page.js')).ProjectsPage)
const ProjectPage = lazy(async () => (await import('./pages/projects-page.js')).ProjectPage)
const SettingsPage = lazy(async () => (await import('./pages/settings-page.js')).SettingsPage)
const UsagePage = lazy(async () => (await import('./pages/usage-page.js')).UsagePage)

const toggle = (overlay: Signal<boolean>): void => {
  overlay.value = !overlay.value
}

function App(): JSX.Element {
  useKeys([
    { keys: 'mod+k', title: 'Search and commands', run: () => toggle(isPaletteOpen) },
    { keys: 'c', title: 'New task', run: () => toggle(isNewTaskOpen) },
    { keys: 'g t', title: 'Go to tasks', run: () => go('/') },
    { keys: 'g r', title: 'Go to review', run: () => go('/review') },
    { keys: 'g p', title: 'Go to projects', run: () => go('/projects') },
    { keys: 'g s', title: 'Go to sandboxes', run: () => go('/sandboxes') },
    { keys: 'g u', title: 'Go to usage', run: () => go('/usage') },
    { keys: 'g ,', title: 'Go to settings', run: () => go('/settings') },
    { keys: '?', title: 'All keys', run: () => toggle(areKeysShown) },
  ])
  if (session.value === undefined) return <Loading label="Connecting" />
  if (session.value === null) return <LoginPage />
  return (
    <>
      <Shell>
        <Boundary of={JSON.stringify(route.value)} instead={<Unshown />}>
          {page()}
        </Boundary>
      </Shell>
      <Palette />
      {isNewTaskOpen.value && <NewTask />}
      <KeyHelp />
    </>
  )
}

/** In place of a page that cannot be drawn: the way to the others stays. */
function Unshown(): JSX.Element {
  return (
    <div class="page">
      <Problem
        message="This page cannot be shown"
        hint="Something in it is not what it should be. The others work, and so does the command line."
        onRetry={() => window.location.reload()}
      />
    </div>
  )
}

function page(): ComponentChildren {
  const current = route.value
  switch (current.page) {
    case 'tasks':
      return <TasksPage route={current} />
    case 'new':
      isNewTaskOpen.value = true
      go('/', { replace: true })
      return null
    case 'login':
      go('/', { replace: true })
      return null
    case 'task':
      return <TaskPage key={current.id} id={current.id} tab={current.tab} />
    case 'review':
      return <ReviewPage task={current.task} />
    case 'compare':
      return <ComparePage key={current.group} group={current.group} />
    case 'projects':
      return <ProjectsPage />
    case 'project':
      return <ProjectPage key={current.id} name={current.id} />
    case 'sandboxes':
      return <SandboxesPage />
    case 'pool':
      return <PoolPage name={current.name} />
    case 'usage':
      return <UsagePage />
    case 'settings':
      return <SettingsPage section={current.section} />
    default:
      return (
        <div class="page">
          <Empty
            title="There is no such page"
            icon="search"
            action={
              <a class="button plain" href="/">
                All tasks
              </a>
            }
          >
            {window.location.pathname}
          </Empty>
        </div>
      )
  }
}

effect(() => {
  const count = session.value ? needsYou() : 0
  document.title = `${count > 0 ? `(${count}) ` : ''}Corral`
})

document.addEventListener('click', followLinks)
document.addEventListener('keydown', onKey)

const root = document.getElementById('app')
if (root) render(<App />, root)

async function start(): Promise<void> {
  const isLogin = window.location.pathname === '/login' && window.location.hash.length > 1
  // A login link signs in anew: the page of it does the rest.
  if (isLogin) session.value = null
  else await loadSession()
}

// With the first request, not after the answer that says who is signed in.
if (route.peek().page === 'task') TaskPage.preload()
effect(() => {
  // What people open next from the list is there when they do.
  if (!areTasksKnown.value) return
  const whenIdle = window.requestIdleCallback ?? ((work: () => void) => setTimeout(work, 200))
  whenIdle(() => {
    TaskPage.preload()
    NewTask.preload()
  })
})

effect(() => {
  if (session.value) loadAgents().catch(() => undefined) // the form works without the list
})

start().then(
  () => {
    if (session.value) startStream()
  },
  () => {
    // The server does not answer: what it is signed in to shows as soon as it does.
    setTimeout(() => window.location.reload(), 3_000)
  },
)
