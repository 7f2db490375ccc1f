import type { KubeClient } from '@corral/kube'
import type { Logger } from '@corral/ports'
import {
  isConflict,
  isNotFound,
  oomKillsAnnotation,
  type Pod,
  Pods,
  type Stored,
  writeOomKills,
} from '@corral/resources'
import type { OomReport } from '../isolation/isolation.js'
import type { PodEvents } from '../pod-events.js'
import { reference } from './status-writer.js'

/** Tells a pod's users, by an event and an annotation, that the kernel ended processes of it. Never rejects. */
export async function reportOomKills(
  pod: Stored<Pod>,
  { kills, lastAt }: OomReport,
  ports: { client: KubeClient; events: PodEvents; log: Logger },
): Promise<void> {
  // The same words every time: repeats raise the count of one event.
  ports.events.event(pod, 'Warning', 'OOMKilling', 'the kernel ended a process of this pod for want of memory')
  const annotations = { [oomKillsAnnotation]: writeOomKills({ kills, lastAt }) }
  try {
    // With the uid in it the patch is refused for another pod of the same name.
    await ports.client.patch(Pods, reference(pod), {
      type: 'merge',
      body: { metadata: { uid: pod.metadata.uid, annotations } },
    })
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) ports.log.debug('kills not written to the pod', { error })
  }
}
