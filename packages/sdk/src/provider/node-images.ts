/** Whether one of the names a node gives its images means the image a user asks for. */
export function isSameImage(onNode: string, wanted: string): boolean {
  return fullName(onNode) === fullName(wanted)
}

/** `python` as nodes write it: `docker.io/library/python:latest`. */
function fullName(image: string): string {
  const [first = '', ...rest] = image.split('/')
  const hasHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost')
  const named = hasHost ? image : `docker.io/${rest.length > 0 ? '' : 'library/'}${image}`
  const last = named.slice(named.lastIndexOf('/'))
  return /[:@]/.test(last) ? named : `${named}:latest`
}
