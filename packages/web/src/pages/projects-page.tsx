import type { ProjectView } from '@corral/protocol'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import {
  draftOf,
  emptyProject,
  newProjectOf,
  type ProjectDraft,
  projectProblem,
  settingsOf,
} from '../model/project-draft.js'
import { repositoryName } from '../model/status-words.js'
import { count } from '../model/time-words.js'
import { Age, Button, Empty, Loading, Problem } from '../parts/basics.js'
import { ProjectFields } from '../parts/project-fields.js'
import { api, codeOf, wordsOf } from '../state/api.js'
import { useKeys } from '../state/keys.js'
import { go } from '../state/location.js'
import { usePolled } from '../state/polled.js'
import { isLive, tasks } from '../state/stream.js'
import { attempt, say } from '../state/toasts.js'

/** Settings that tasks share, by name. */
export function ProjectsPage(): JSX.Element {
  const { value, failure, reload } = usePolled((signal) => api.projects.list({ signal }), 'projects')
  useKeys([{ keys: 'n', title: 'New project', run: () => go({ page: 'project', id: '_new' }) }])
  const projects = value?.projects ?? []
  return (
    <div class="page">
      <div class="bar">
        <h1>Projects</h1>
        <span class="grow" />
        <a class="button primary" href="/projects/_new">
          New project
        </a>
      </div>
      <div class="scroll">
        {failure !== undefined && <Problem {...wordsOf(failure)} onRetry={reload} />}
        {!value && failure === undefined && <Loading label="Loading projects" />}
        {value && projects.length === 0 && (
          <Empty title="There is no project" icon="folder">
            A project keeps repository, agent, instructions and checks under one name, so that a task only says what is
            to be done.
          </Empty>
        )}
        {projects.length > 0 && <ProjectTable projects={projects} />}
      </div>
    </div>
  )
}

function ProjectTable({ projects }: { projects: readonly ProjectView[] }): JSX.Element {
  const used = new Map<string, number>()
  for (const { project } of tasks.value.values()) if (project) used.set(project, (used.get(project) ?? 0) + 1)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: on a phone it scrolls, and keys must reach that
    <section class="table-box" tabIndex={0} aria-label="Projects, as a table">
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Project</th>
            <th scope="col">Repository</th>
            <th scope="col">Agent</th>
            <th scope="col">Checks</th>
            <th scope="col" class="right">
              Tasks
            </th>
            <th scope="col">Age</th>
          </tr>
        </thead>
        <tbody>
          {projects.map((project) => (
            <tr key={project.name}>
              <th scope="row">
                <a href={`/projects/${encodeURIComponent(project.name)}`}>{project.name}</a>
                {project.description && <span class="soft state-why">{project.description}</span>}
              </th>
              <td title={project.repo}>
                {project.repo ? repositoryName(project.repo) : <span class="soft">any</span>}
              </td>
              <td>{project.agent?.name ?? <span class="soft">default</span>}</td>
              <td>{(project.checks ?? []).map(({ name }) => name).join(', ') || <span class="soft">none</span>}</td>
              <td class="right">
                <a href={`/?project=${encodeURIComponent(project.name)}`}>
                  {count(used.get(project.name) ?? 0)} <span class="hidden">tasks of {project.name}</span>
                </a>
              </td>
              <td>
                <Age since={project.created_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

/** One project, or with the name `_new`, which no project can have, one that is to be made. */
export function ProjectPage({ name }: { name: string }): JSX.Element {
  const isNew = name === '_new'
  const { value, failure, reload } = usePolled(
    async (signal) => (isNew ? undefined : api.projects.get(name, { signal })),
    `project ${name}`,
  )
  const isMissing = codeOf(failure) === 'ProjectNotFound'
  return (
    <div class="page">
      <div class="bar">
        <h1>
          <a href="/projects">Projects</a> <span class="soft">/</span> {isNew ? 'New project' : name}
        </h1>
        <span class="grow" />
        {!isNew && <a class="button plain" href={`/?project=${encodeURIComponent(name)}`}>{`Tasks of ${name}`}</a>}
      </div>
      <div class="scroll">
        {isMissing && (
          <Empty title={`There is no project ${name}`} icon="folder" action={<a href="/projects">All projects</a>} />
        )}
        {!isMissing && failure !== undefined && <Problem {...wordsOf(failure)} onRetry={reload} />}
        {!isNew && !value && failure === undefined && <Loading label="Loading the project" />}
        {(isNew || value) && !isMissing && <ProjectForm key={isNew ? 'new' : name} project={value} onSaved={reload} />}
      </div>
    </div>
  )
}

function ProjectForm({ project, onSaved }: { project?: ProjectView | undefined; onSaved: () => void }): JSX.Element {
  // What the form began with: a change from elsewhere is a conflict when it is saved, and no field changes during typing.
  const [base, setBase] = useState(project)
  const [draft, setDraft] = useState<ProjectDraft>(project ? draftOf(project) : emptyProject)
  const [failure, setFailure] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const isNew = base === undefined
  const problem = projectProblem(draft)
  const isChanged = isNew || JSON.stringify(draft) !== JSON.stringify(draftOf(base))
  const save = async (): Promise<void> => {
    if (problem || isBusy) return
    setBusy(true)
    setFailure(undefined)
    try {
      const saved = isNew
        ? await api.projects.create(newProjectOf(draft))
        : await api.projects.replace(base.name, settingsOf(draft, base))
      say(`Project ${saved.name} is kept`)
      if (isNew) go({ page: 'project', id: saved.name })
      setBase(saved)
      setDraft(draftOf(saved))
      onSaved()
    } catch (error) {
      setFailure(error)
    } finally {
      setBusy(false)
    }
  }
  const remove = async (): Promise<void> => {
    if (!base || !window.confirm(`Remove project ${base.name}? Its tasks stay.`)) return
    const done = await attempt(async () => {
      await api.projects.remove(base.name)
      return true
    })
    if (done) go('/projects')
  }
  const showFresh = async (): Promise<void> => {
    const fresh = base && (await attempt(() => api.projects.get(base.name)))
    if (!fresh) return
    setBase(fresh)
    setDraft(draftOf(fresh))
    setFailure(undefined)
  }
  const isConflict = codeOf(failure) === 'ProjectChanged'
  return (
    <form
      class="project-form"
      onSubmit={(event) => {
        event.preventDefault()
        void save()
      }}
    >
      {failure !== undefined && <Problem {...wordsOf(failure)} />}
      {isConflict && (
        <Button icon="retry" onClick={() => void showFresh()}>
          Show it as it is now
        </Button>
      )}
      <ProjectFields draft={draft} isNew={isNew} onChange={(change) => setDraft((old) => ({ ...old, ...change }))} />
      <div class="dialog-foot">
        {base && (
          <Button kind="danger" icon="trash" disabled={!isLive.value} onClick={() => void remove()}>
            Remove
          </Button>
        )}
        <span class="grow" />
        <span class="soft">{isChanged ? (problem ?? '') : 'Nothing changed'}</span>
        <Button type="submit" kind="primary" disabled={Boolean(problem) || isBusy || !isChanged || !isLive.value}>
          {isNew ? 'Create project' : 'Save'}
        </Button>
      </div>
    </form>
  )
}
