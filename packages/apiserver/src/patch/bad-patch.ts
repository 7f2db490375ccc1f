import { KubeError } from '@corral/resources'

export function badPatch(message: string): KubeError {
  return new KubeError('BadRequest', message, { status: 400 })
}
