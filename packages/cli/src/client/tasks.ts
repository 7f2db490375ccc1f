import { TasksClient } from '@corral/protocol'

export interface PlatformAddress {
  url: string
  token: string
}

/** The client of a platform's task API. */
export function tasksClient({ url, token }: PlatformAddress): TasksClient {
  return new TasksClient({ baseUrl: url, token })
}
