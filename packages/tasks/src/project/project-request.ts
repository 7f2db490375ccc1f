import type { KubeClient } from '@corral/kube'
import type { CompleteTaskRequest, CreateTaskRequest } from '@corral/protocol'
import { projectLabel } from '@corral/resources'
import { TaskError } from '../task-error.js'
import { withProject } from './project-defaults.js'
import { settingsFrom } from './project-object.js'
import { getProject } from './project-service.js'

/** A request with what its project gives. Throws `ProjectNotFound`, and `Invalid` where no repository is named. */
export async function completeRequest(
  client: Pick<KubeClient, 'get'>,
  namespace: string,
  request: CreateTaskRequest,
): Promise<CompleteTaskRequest> {
  if (request.labels?.[projectLabel] !== undefined)
    throw new TaskError('Invalid', `labels.${projectLabel}: is set by the platform`, {
      hint: 'Name the project in `project`.',
    })
  const { project, repo } = request
  if (project !== undefined)
    return withProject(project, settingsFrom(await getProject(client, namespace, project)), request)
  if (repo === undefined) throw new TaskError('Invalid', 'repo: is required where no project names it')
  return { ...request, repo }
}
