import type { Container, Pod } from '@corral/resources'
import { LaunchError } from './launch-error.js'

/** Who the process believes to be where nothing names a user: an ordinary one. */
export const defaultUser = 1000

/** The uid and gid the container's processes see. Throws where `runAsNonRoot` forbids the result. */
export function innerUser(pod: Pod, container: Container): { uid: number; gid: number } {
  const own = container.securityContext
  const shared = pod.spec?.securityContext
  const uid = own?.runAsUser ?? shared?.runAsUser ?? defaultUser
  const gid = own?.runAsGroup ?? shared?.runAsGroup ?? (uid === 0 ? 0 : defaultUser)
  const mustNotBeRoot = own?.runAsNonRoot ?? shared?.runAsNonRoot ?? false
  if (mustNotBeRoot && uid === 0) {
    const { name, namespace, uid: podUid } = pod.metadata ?? {}
    const subject = `(pod: "${name}_${namespace}(${podUid})", container: ${container.name})`
    throw new LaunchError('CreateContainerConfigError', `container's runAsUser breaks non-root policy ${subject}`)
  }
  return { uid, gid }
}
