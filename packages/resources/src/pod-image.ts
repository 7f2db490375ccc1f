/**
 * On a Pod of one container, or in a claim's `additionalPodMetadata`: the imported image whose root file system the container
 * has, whatever its own image runs. Set or changed while the pod runs it restarts the container; volumes and network stay.
 */
export const imageAnnotation = 'corral.dev/image'

/**
 * The pod condition that says how the annotation was followed; its message begins with the name of the image and a colon.
 * - `Applied` (True): the container runs in it and is ready.
 * - `Starting` (False), `NotFound` (False): it was not imported on this node; the container goes on as it was.
 */
export const imageCondition = 'corral.dev/Image'

const lacksWord = '; tasks need what it lacks: '

/** The message of the condition: `what` about the image `name`, and what the sandbox of a task would miss in it. */
export function imageMessage(name: string, what: string, lacks: readonly string[] = []): string {
  return `${name}: ${what}${lacks.length > 0 ? `${lacksWord}${lacks.join(', ')}` : ''}`
}

/** What such a message says the image lacks. */
export function imageLacks(message: string): string[] {
  const start = message.lastIndexOf(lacksWord)
  return start < 0 ? [] : message.slice(start + lacksWord.length).split(', ')
}

/** What `image` of an environment and the annotation may name. */
export function isImageName(text: string): boolean {
  return /^[a-z0-9]+([._/:-][A-Za-z0-9]+)*$/.test(text) && text.length <= 200
}
