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

/** A request with what the platform gives every task. A sandbox that is named has the class of its own template. */
export function withDefaults(
  request: CompleteTaskRequest,
  defaults: Pick<CreateTaskRequest, 'timeout_seconds' | 'limits' | 'runtime_class_name'> = {},
): CompleteTaskRequest {
  const { runtime_class_name: runtimeClass, limits, ...others } = defaults
  const isPlaced = request.sandbox?.pool !== undefined || request.sandbox?.template !== undefined
  return {
    ...others,
    ...(runtimeClass === undefined || isPlaced ? {} : { runtime_class_name: runtimeClass }),
    ...request,
    ...(limits ? { limits: { ...limits, ...request.limits } } : {}),
  }
}
